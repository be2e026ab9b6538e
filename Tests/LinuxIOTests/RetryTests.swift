import Glibc
import Testing

@testable import LinuxIO

/// EINTR: `FileSystemCalls` promises that nobody sees it.
@Suite("System calls: interrupted calls") struct RetryTests {
    @Test(arguments: 0..<4) func `a call that signals interrupt is made again`(times: Int) throws {
        var left = times
        let result = try retryingInterrupts { () -> Int in
            guard left == 0 else {
                left -= 1
                errno = EINTR
                return -1
            }
            return 7
        }
        #expect(result == 7 && left == 0)
    }

    @Test func `any other error is told at once`() {
        var count = 0
        #expect(throws: Errno.inputOutput) {
            try retryingInterrupts { () -> Int in
                count += 1
                errno = EIO
                return -1
            }
        }
        #expect(count == 1)
    }
}
