import Foundation
import Glibc
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// The abilities of a thumbnailer that a video has taken over.
    @Suite("Decoders: the box of installed programs") struct BoxTests {
        let home: DataHome

        init() throws { home = try DataHome() }

        /// A socket on which this process listens.
        private func listen() throws -> (descriptor: Int32, port: UInt16) {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(descriptor, address, size) | Glibc.listen(descriptor, 9)
                        | getsockname(descriptor, address, &size)
                }
            }
            try #require(result == 0)
            return (descriptor, UInt16(bigEndian: address.sin_port))
        }

        /// Harmless attempts, each of which succeeds for a program that is not boxed.
        private func attempts(port: UInt16) -> String {
            """
            try secret cat '\(home.root)/secret'
            try directory ls '\(home.root)/thumbnailers'
            try passwd cat /etc/passwd
            try network bash -c 'exec 9<>/dev/tcp/127.0.0.1/\(port)'
            try process kill -0 \(getpid())
            try memory head -c 1 /proc/\(getpid())/maps
            try environment test -n "$OBSCURA_TRIAL"
            """
        }

        /// Attempts that would do harm where they succeed outside.
        ///
        /// - Parameter descriptor: one of this process that is not closed on exec.
        private func harmful(descriptor: Int32) -> String {
            """
            try usr touch /usr/obscura-trial
            try root touch /obscura-trial
            try shared touch /dev/shm/obscura-trial
            try self sh -c ': >>"$0"' "$0"
            try input sh -c 'printf x >>"$0"' "$1"
            try sysctl test -w /proc/sys/kernel/core_pattern
            try trigger test -w /proc/sysrq-trigger
            try namespace unshare -U true
            try mount mount -t tmpfs none /tmp
            try descriptor test -e /proc/1/fd/\(descriptor)
            try bus test -e /run/dbus
            try disk sh -c 'test -e /sys/block || test -e /dev/sda || test -e /dev/vda'
            """
        }

        private func script(_ attempts: String) -> String {
            """
            printf '\(DataHome.reportHead)' >"$2"
            touch '\(home.root)/written'
            try() { local name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name yes"; else echo "$name no"; fi; }
            { \(attempts)
            } >>"$2"
            """
        }

        @Test func `a boxed program sees and reaches nothing`() throws {
            let (listener, port) = try listen()
            defer { close(listener) }
            try "secret".write(toFile: home.root + "/secret", atomically: true, encoding: .utf8)
            setenv("OBSCURA_TRIAL", "1", 1)
            defer { unsetenv("OBSCURA_TRIAL") }
            // Not closed on exec, and none of those that the box is given.
            let descriptor = fcntl(listener, F_DUPFD, 77)
            try #require(descriptor >= 77)
            defer { close(descriptor) }

            let all = attempts(port: port) + "\n" + harmful(descriptor: descriptor)
            try home.add(script(all), shell: "/bin/bash")
            let report = try home.installed().report()
            #expect(report.filter { $0.value != "no" }.isEmpty)
            #expect(report.count == 19)
            // Its writes in a directory of that name were in its own memory.
            #expect(!FileManager.default.fileExists(atPath: home.root + "/written"))

            // Outside each of the harmless ones works: it is the box that refuses them.
            try home.add(script(attempts(port: port)), shell: "/bin/bash")
            let output = home.root + "/output"
            try Child([home.root + "/a.sh", "/dev/null", output]).wait()
            let outside = reportLines(Array(try Data(contentsOf: URL(fileURLWithPath: output))))
            #expect(outside.count == 7)
            #expect(outside.filter { $0.value != "yes" }.isEmpty)
            #expect(FileManager.default.fileExists(atPath: home.root + "/written"))
        }

        @Test func `a boxed program has the processes, directories and limits of a box`() throws {
            try home.add(
                """
                printf '\(DataHome.reportHead)' >"$2"
                {
                    sed -n 's/^\\(CapEff\\|CapPrm\\|NoNewPrivs\\):\\t*/\\1 /p' /proc/self/status
                    echo environment $(env | sort)
                    echo root $(ls /)
                    echo home $(ls -A /tmp)
                    echo processes $(ls -d /proc/[0-9]*)
                    echo links $(ls -l /proc/1/fd | sed -n 's/.* -> //p' | sort -u)
                    echo oom $(cat /proc/self/oom_score_adj)
                    echo limits $(ulimit -c) $(sed -n 's/^Max processes  *\\([0-9]*\\) .*/\\1/p' /proc/self/limits)
                } >>"$2"
                """)
            let report = try home.installed().report()
            #expect(report["CapEff"] == "0000000000000000" && report["CapPrm"] == "0000000000000000")
            #expect(report["NoNewPrivs"] == "1")
            #expect(
                report["environment"]
                    == "GIO_USE_VFS=local HOME=/tmp LC_ALL=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin PWD=/tmp"
            )
            #expect(
                Set((report["home"] ?? "").split(separator: " ")).isSubset(of: [
                    "input.mp4", "output.png", Substring(home.root.dropFirst(5)),
                ]))
            #expect(
                (report["root"] ?? "").split(separator: " ").allSatisfy {
                    ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"]
                        .contains($0)
                })
            #expect((report["processes"] ?? "").split(separator: " ").count < 9)
            // The picture, its output, and nothing of ours.
            let links = (report["links"] ?? "").split(separator: " ").map(String.init)
            #expect(
                links.allSatisfy {
                    $0 == "/dev/null" || $0 == "/memfd:obscura" || $0 == "(deleted)" || $0.hasPrefix("pipe:")
                })
            #expect(report["oom"] == "1000")
            #expect(report["limits"] == "0 256")
        }

        /// Not even inside: /proc/sys lets root write also without capabilities.
        @Test func `a boxed program is never root outside`() throws {
            try home.add("sleep \(home.nap)")
            let installed = home.installed()
            let group = onThreads(1) { _ in _ = try? installed.report() }
            defer {
                installed.shutDown()
                group.wait()
            }
            #expect(eventually { home.processes.count >= 3 })
            for process in home.processes {
                let status = kernelText("/proc/\(process)/status") ?? ""
                let line = status.split(separator: "\n").first { $0.hasPrefix("Uid:") }
                let users = (line ?? "").split(whereSeparator: { $0 == "\t" || $0 == " " }).dropFirst()
                #expect(!users.contains("0"), "\(status)")
                if geteuid() == 0 { #expect(users.allSatisfy { (61_184...65_519).contains(Int($0) ?? 0) }) }
            }
        }
    }
}
