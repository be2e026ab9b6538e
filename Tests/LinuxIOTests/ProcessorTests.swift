import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing

@Suite("System calls: threads bound to a processor") struct ProcessorTests {
    /// Those that the calling thread may use, as the kernel lists them: `0-3,8`.
    private static func processors() -> String {
        let lines = kernelText("/proc/thread-self/status") ?? ""
        let line = lines.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
        return String(line?.split(separator: "\t").last ?? "")
    }

    @Test func `what a bound thread starts is not bound`() throws {
        let all = Self.processors()
        let first = try #require(Int(all.prefix { $0.isNumber }))
        let seen = Mutex<[String: String]>([:])
        @Sendable func note(_ name: String) { seen.withLock { $0[name] = Self.processors() } }
        let (ends, done) = (try makePipe(), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            Processors.bindThread(to: first)
            note("bound")
            let thread = DispatchSemaphore(value: 0)
            startThread {
                note("thread")
                thread.signal()
            }
            thread.wait()
            let own = pthread_self()
            let helper = DispatchSemaphore(value: 0)
            // Each number waits for a thread of its own.
            onAllCores(2) { _ in
                if pthread_equal(own, pthread_self()) != 0 {
                    if coreCount > 1 { helper.wait() }
                } else {
                    note("helper")
                    helper.signal()
                }
            }
            let words = ["/bin/grep", "Cpus_allowed_list", "/proc/self/status"]
            let process = try? spawn(words, descriptors: [(ends.write, 1)])
            close(ends.write)
            if let process { _ = waitForEnd(of: process) }
            note("bound still")
            Processors.releaseThread()
            note("released")
            done.signal()
        }
        done.wait()
        let text = FileHandle(fileDescriptor: ends.read, closeOnDealloc: true).readDataToEndOfFile()
        let process = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace).last
        let found = seen.withLock { $0 }
        #expect(found["bound"] == "\(first)" && found["bound still"] == "\(first)")
        #expect(found["thread"] == all && found["released"] == all)
        #expect(coreCount == 1 || found["helper"] == all)
        #expect(process.map(String.init) == all)
    }

    @Test func `a processor that is not there binds nothing`() {
        let ended = DispatchSemaphore(value: 0)
        let seen = Mutex("")
        Thread.detachNewThread {
            Processors.bindThread(to: 1023)
            Processors.bindThread(to: 5000)
            Processors.bindThread(to: -1)
            seen.withLock { $0 = Self.processors() }
            ended.signal()
        }
        ended.wait()
        #expect(seen.withLock { $0 } == Self.processors())
    }
}
