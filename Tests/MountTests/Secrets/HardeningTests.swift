import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// The crash reporter prints and reads the memory of a process that fails.
@Suite("Secrets: programs that crash", .waiting) struct HardeningTests {
    @Test(
        arguments: [nil, "enable=yes,interactive=no,color=no"],
        [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP])
    func `a program that crashes with a password is not reported`(setting: String?, signal: Int32) throws {
        let place = try Place()
        var environment = place.environment
        environment["SWIFT_BACKTRACE"] = setting
        let program = try Child(
            [obscura, "export", place.vault, place.root + "/out", "--password-stdin"],
            environment: environment,
            input: .written, output: .collected, errors: .collected)
        try program.write("on")
        // It waits for the rest of the password. Nobody but root may look into it then.
        let isReading = eventually { kernelText("/proc/\(program.id)/syscall")?.hasPrefix("0 0x0 ") ?? true }
        #expect(isReading)
        // A signal that somebody sends is no fault: the reporter would print, and the program go on.
        let status = try #require(kernelText("/proc/\(program.id)/status"))
        let caught = try #require(status.firstMatch(of: #/SigCgt:\s+([0-9a-f]+)/#)?.1)
        try #require(UInt64(caught, radix: 16)! & 1 << (signal - 1) == 0)
        program.kill(signal)
        let ended = try program.finish(isAlone: true)
        #expect(ended.status == -signal)
        #expect(ended.errors.isEmpty && ended.output.isEmpty, "\(ended.errors)\(ended.output)")
    }
}
