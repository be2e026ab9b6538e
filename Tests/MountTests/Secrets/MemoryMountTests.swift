import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultCrypto

@testable import VaultStore

/// Keys and passwords in the memory of the process that serves a mount.
@Suite("Secrets: keys and passwords in memory", .serialized, .waiting) struct MemoryMountTests {
    private static let password = "jK7-Samarkand-9wQ-Marrakesh"
    /// Has a debug build stop where there is something to look at.
    private static let stopping = "OBSCURA_STOP_FOR_INSPECTION"

    /// Everything secret about the place's one space: its password, and all keys derived from it.
    private func secrets(_ place: Place) throws -> [(name: String, bytes: SecretBytes)] {
        let password = Array(Self.password.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let key = try Vault.unlock(place.vault, password: password).key
        let (_, header) = try Vault.open(place.vault, calls: LinuxCalls.shared, mayRepair: false)
        let stretched = try header.stretched(password, by: LocalStretcher())
        var result = [("password", password), ("stretched password", stretched), ("space key", key)]
        for purpose: StaticString in ["obscura 1 slot", "obscura 1 commitment"] {
            result.append(("\(purpose)", deriveKey(stretched, purpose: purpose)))
        }
        for purpose: StaticString in [
            "obscura 1 content", "obscura 1 descriptor", "obscura 1 page", "obscura 1 boot",
        ] { result.append(("\(purpose)", deriveKey(key, purpose: purpose))) }
        return result
    }

    /// The daemon and the workers it has started.
    private func family(_ daemon: pid_t) throws -> [pid_t] {
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc")
        return [daemon] + names.compactMap { pid_t($0) }.filter { stat($0).parent == daemon }
    }

    /// State and parent of a process, proc(5).
    private func stat(_ process: pid_t) -> (state: Substring, parent: pid_t) {
        let line = kernelText("/proc/\(process)/stat") ?? ""
        let words = line.split(separator: ")").last?.split(separator: " ") ?? []
        return words.count > 1 ? (words[0], pid_t(words[1]) ?? 0) : ("", 0)
    }

    /// A vault that the password opens, and photos beside it.
    private func makePlace() throws -> Place {
        let place = try Place()
        let changed = try place.run(
            [obscura, "passwd", place.vault, "--password-stdin"], "one\n\(Self.password)\n")
        try #require(changed.status == 0, "\(changed.errors)")
        for index in 0..<8 {
            try place.source("\(index).jpg", Photo(width: 900, height: 700, seed: UInt8(index)).bytes)
        }
        return place
    }

    /// A mount that has sealed and opened photos, pages, records and thumbnails.
    private func makeUsedMount() throws -> Place {
        let place = try makePlace()
        try place.mount(password: Self.password, variables: [Self.stopping + "=1"])
        try place.shell(
            """
            cp source/* D/albums; sync D; cat D/albums/*.jpg D/albums/.thumbs/*.jpg >/dev/null
            rm D/albums/1.jpg; mv D/albums/2.jpg D/albums/9.jpg; setfattr -n user.a -v b D/albums/9.jpg; sync D
            """)
        return place
    }

    @Test func `keys are in locked memory alone, passwords nowhere, and after unmount nothing is`() throws {
        guard geteuid() == 0 else {
            // Only root can read it: this keeps the user's other programs out.
            let place = try Place()
            try place.mount()
            let daemon = try #require(place.daemon)
            #expect(ProcessMemory(of: daemon) == nil && errno == EACCES)
            return try place.unmount()
        }
        let place = try makeUsedMount()
        let daemon = try #require(place.daemon)
        // The vault's lock is the daemon's: a copy of the header has the same key.
        let secrets = try withCopy(of: place) { try self.secrets($0) }
        for process in try family(daemon) {
            // A helper may have ended meanwhile, the daemon not.
            guard let memory = ProcessMemory(of: process) else {
                #expect(process != daemon && kill(process, 0) != 0)
                continue
            }
            defer { memory.close() }
            expectKept(memory.find(secrets), withKeys: process == daemon)
        }
        #if DEBUG
            defer { kill(daemon, SIGCONT) }
            try place.shell("patiently umount D")
            #expect(eventually { stat(daemon).state == "T" })
            let memory = try #require(ProcessMemory(of: daemon))
            defer { memory.close() }
            #expect(memory.find(secrets).map(\.description) == [])
        #endif
    }

    /// Secrets that are found are keys, in locked memory.
    private func expectKept(_ findings: [MemoryFinding], withKeys: Bool) {
        #expect(findings.filter { !$0.mapping.isLocked }.map(\.description) == [])
        let held = Set(findings.filter(\.mapping.isLocked).map(\.secret))
        // That they are found where they belong shows that looking works.
        let expected: Set = ["obscura 1 content", "obscura 1 descriptor", "obscura 1 page"]
        #expect(withKeys ? held.isSuperset(of: expected) : held.isEmpty)
        let stretched: Set = ["password", "stretched password", "obscura 1 slot", "obscura 1 commitment"]
        #expect(held.isDisjoint(with: stretched))
    }

    #if DEBUG
        @Test(arguments: ["import", "export"])
        func `import and export keep keys in locked memory, passwords nowhere, at their end nothing`(
            command: String
        ) throws {
            let place = try makePlace()
            if command == "export" {
                let words = [obscura, "import", place.vault, place.root + "/source", "--password-stdin"]
                try #require(try place.run(words, Self.password + "\n").status == 0)
            }
            let secrets = try self.secrets(place)
            let other = place.root + (command == "import" ? "/source" : "/out")
            let process = try start(place, [command, place.vault, other])
            // Once while it has its keys, and once at its end.
            for isEnd in [false, true] {
                try #require(eventually { stat(process.id).state == "T" })
                if let memory = ProcessMemory(of: process.id) {
                    defer { memory.close() }
                    let findings = memory.find(secrets)
                    if isEnd {
                        #expect(findings.map(\.description) == [])
                    } else {
                        expectKept(findings, withKeys: true)
                    }
                } else {
                    // Only root may look.
                    #expect(geteuid() != 0 && errno == EACCES)
                }
                process.kill(SIGCONT)
            }
            #expect(process.wait() == .exited(0))
            let words = [obscura, "check", place.vault, "--password-stdin"]
            #expect(try place.run(words, Self.password + "\n").status == 0)
        }

        /// Starts a command that stops itself, with the password on its standard input.
        private func start(_ place: Place, _ words: [String]) throws -> Child {
            try Child(
                [obscura] + words + ["--password-stdin"],
                environment: [Self.stopping: "1", "PATH": "/usr/bin:/bin"],
                input: .text("\(Self.password)\n"))
        }
    #endif

    /// Runs `body` on a place whose vault has the same header and segments.
    private func withCopy<R>(of place: Place, _ body: (Place) throws -> R) throws -> R {
        let copy = try Place()
        try copy.shell("rm -r V; cp -r '\(place.vault)' V")
        return try body(copy)
    }
}
