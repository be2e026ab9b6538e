import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing

/// The helper by which all other tests start programs.
@Suite("System calls: programs that are started") struct ChildTests {
    private let much = String(repeating: "0123456789abcde\n", count: 65_536)

    private func start(_ line: String, _ input: Child.Input = .nothing) throws -> Child {
        try Child(
            ["bash", "-c", line], environment: Child.plainEnvironment, input: input, output: .collected,
            errors: .collected)
    }

    @Test func `more than a pipe holds goes in and out of both ends`() throws {
        let ended = try start("tee /dev/stderr", .text(much)).finish(isAlone: true)
        #expect(ended.status == 0 && ended.output == much && ended.errors == much)
        // Also while nobody waits for it.
        let child = try start("printf %s \"$(cat)\" | tee /dev/stderr", .text(much))
        #expect(eventually { !child.isRunning })
        #expect(child.errors?.present() == String(much.dropLast()))
    }

    @Test func `a program that does not read its input ends no other`() throws {
        #expect(try start("exit 7", .text(much)).finish().status == 7)
        let child = try start("exec sleep 1000", .written)
        child.kill(SIGKILL)
        #expect(try child.finish().status == -SIGKILL)
        // A program that another test has just started has a copy of the pipe for a moment.
        #expect(
            eventually {
                do { try child.write("late") } catch { return error as? Errno == Errno(EPIPE) }
                return false
            })
    }

    @Test func `a started program gets its words and descriptors, and nothing else`() throws {
        setenv("OBSCURA_TRIAL", "1", 1)
        defer { unsetenv("OBSCURA_TRIAL") }
        let open = fcntl(STDOUT_FILENO, F_DUPFD, 77)
        defer { close(open) }
        let child = try Child(
            ["sh", "-c", "pwd; cat; echo $NAME$OBSCURA_TRIAL; ps -o sid= $$; ls /proc/self/fd"],
            environment: ["PATH": "/bin", "NAME": "value"], directory: "/usr", input: .written,
            output: .collected, asSession: true)
        #expect(child.output?.next(upTo: "\n") == "/usr")
        try child.write("one\n")
        #expect(child.output?.next(upTo: "\n") == "one")
        child.closeInput()
        let words = try child.finish(isAlone: true).lines.map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(words == ["value", "\(child.id)", "0", "1", "2", "3"])
        #expect(throws: Errno.noEntry) { try Child(["no-such-program"]) }
        #expect(throws: Errno.noEntry) { try Child(["true"], directory: "/nowhere") }
    }

    @Test func `output that it leaves open is waited for no longer than told`() throws {
        let child = try start("echo one; echo two >&2; sleep 1000 >&2 & echo $! ")
        let ended = try child.finish()
        #expect(ended.lines.first == "one" && ended.errors == "two\n")
        #expect(throws: PipeReader.KeptOpen.self) { _ = try child.errors?.rest(secondsMax: 1) }
        #expect(Glibc.kill(try #require(ended.lines.last.flatMap { pid_t($0) }), SIGKILL) == 0)
        #expect(try child.errors?.rest() == "")
    }

    @Test func `a late program is killed with all that it started`() throws {
        #expect(try start("exec sleep 1000").wait(secondsMax: 0) == .signalled(SIGKILL))
        let (id, output) = try {
            let child = try start("sleep 1000 & sleep 1000 & echo; wait")
            #expect(child.output?.next(upTo: "\n") == "")
            return (child.id, try #require(child.output))
        }()
        #expect(try output.rest() == "")
        // Not even as a zombie.
        #expect(Glibc.kill(id, 0) == -1 && errno == ESRCH)
    }

    @Test func `programs started at the same moment keep no pipe of each other's open`() throws {
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<8 {
                do {
                    let (slow, quick) = (try start("exec sleep 1000"), try start("exit 0"))
                    #expect(try quick.output?.rest(secondsMax: 300) == "" && slow.isRunning)
                } catch {
                    Issue.record(error)
                }
            }
        }
    }
}
