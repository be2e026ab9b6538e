import FileRequests
import LinuxIO

/// Counts the files of a session, each of them once: devices announce files again after a reload, and send bytes again
/// after an interruption.
package struct ReceiveCounter {
    /// The numbers so far.
    package struct Counts: Equatable, Sendable {
        /// Devices that opened the page with a code.
        package var devices = 0
        /// Files that were stored.
        package var files = 0
        /// Files that were there already.
        package var known = 0
        /// Files that failed and did not arrive later.
        package var failures = 0
        /// Bytes of files. Those that came again do not count.
        package var bytes: UInt64 = 0
        /// All bytes that came.
        package var traffic: UInt64 = 0
        /// Files that were announced or begun.
        package var filesExpected = 0
        /// Expected files that are complete.
        package var filesDone = 0
        /// Bytes of the others that did not come yet.
        package var bytesLeft: UInt64 = 0
        /// The name of the file that was begun last.
        package var name = ""
        /// Its size; 0 if the client does not tell.
        package var nameBytes: UInt64 = 0
    }

    private struct File {
        /// Nil if the client does not tell.
        var size: UInt64?
        /// Bytes that came, at most.
        var position: UInt64 = 0
        var isDone = false
        var hasFailed = false
        /// Whether `filesExpected` counts it: not one that was there before it was sent.
        var isExpected = true

        var bytesLeft: UInt64 { size.map { $0 - min($0, position) } ?? 0 }
    }

    private let filesMax: Int
    /// By their working names, which are the same for the same file of the same device.
    private var files: [Name: File] = [:]
    var counts = Counts()

    /// - Parameter filesMax: that are kept apart. Others count when they are stored, and not before.
    init(filesMax: Int) { self.filesMax = filesMax }

    /// A device asks about a file that it is about to send.
    mutating func announce(_ name: Name, size: UInt64, isKnown: Bool) {
        if isKnown {
            if files[name] != nil { return finish(name, isKnown: true) }
            counts.known += 1
            enter(name, File(size: size, position: size, isDone: true, isExpected: false))
        } else {
            // It was removed from the space meanwhile.
            if files[name]?.isDone == true { files[name] = nil }
            expect(name, size)
        }
    }

    mutating func begin(_ name: Name, size: UInt64?, offset: UInt64) {
        if let file = files[name], file.isDone, !file.isExpected {
            // Sent all the same.
            counts.known -= 1
            files[name] = nil
        }
        expect(name, size)
        change(name) { $0.position = max($0.position, offset) }
    }

    /// - Parameter end: where in the file they end.
    mutating func addBytes(_ count: Int, to name: Name, end: UInt64) {
        counts.traffic += UInt64(count)
        guard let file = files[name] else {
            counts.bytes += UInt64(count)
            return
        }
        counts.bytes += end - min(end, file.position)
        change(name) { $0.position = max($0.position, end) }
    }

    mutating func fail(_ name: Name, size: UInt64?) {
        expect(name, size)
        if files[name]?.hasFailed != true { counts.failures += 1 }
        change(name) { $0.hasFailed = true }
    }

    mutating func finish(_ name: Name, isKnown: Bool) {
        let file = files[name]
        // The answer was lost, and the file came again.
        if isKnown, file?.isDone == true { return }
        if isKnown { counts.known += 1 } else { counts.files += 1 }
        if file == nil || file?.isDone == true { counts.filesExpected += 1 }
        if file?.hasFailed == true { counts.failures -= 1 }
        counts.filesDone += 1
        change(name) { ($0.position, $0.isDone, $0.hasFailed) = ($0.size ?? $0.position, true, false) }
    }

    private mutating func expect(_ name: Name, _ size: UInt64?) {
        guard files[name] == nil, enter(name, File(size: size)) else { return }
        counts.filesExpected += 1
        counts.bytesLeft = sizeSum(counts.bytesLeft, size ?? 0)
    }

    @discardableResult private mutating func enter(_ name: Name, _ file: File) -> Bool {
        if files.count >= filesMax { files = files.filter { !$0.value.isDone } }
        guard files.count < filesMax else { return false }
        files[name] = file
        return true
    }

    private mutating func change(_ name: Name, _ body: (inout File) -> Void) {
        guard var file = files[name] else { return }
        let left = file.bytesLeft
        body(&file)
        files[name] = file
        counts.bytesLeft -= min(left - min(left, file.bytesLeft), counts.bytesLeft)
    }
}
