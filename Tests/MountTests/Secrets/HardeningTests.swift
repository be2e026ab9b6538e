import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// The crash reporter prints and reads the memory of a process that fails.
@Suite("Secrets: programs that crash", .waiting) struct HardeningTests {
    @Test(arguments: [nil, "enable=yes,interactive=no,color=no"])
    func `a program that crashes with a password is not reported`(setting: String?) throws {
        let place = try Place()
        var environment = place.environment
        environment["SWIFT_BACKTRACE"] = setting
        let program = try Child(
            [obscura, "export", place.vault, place.root + "/out", "--password-stdin"],
            environment: environment,
            input: .written, output: .collected, errors: .collected)
        try program.write("on")
        // Nobody but root may look into it once its memory is kept out of files.
        let isHardened = eventually {
            guard let environ = contents(ofFile: "/proc/\(program.id)/environ") else { return true }
            return environ.split(separator: 0).contains { $0.elementsEqual("SWIFT_BACKTRACE=enable=no".utf8) }
        }
        #expect(isHardened)
        program.kill(SIGSEGV)
        let ended = try program.finish(isAlone: true)
        #expect(ended.status == -SIGSEGV)
        #expect(ended.errors.isEmpty && ended.output.isEmpty, "\(ended.errors)\(ended.output)")
    }
}
