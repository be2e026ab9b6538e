package import FileRequests
import Foundation

extension Fixture {
    /// Records the notices for a kernel.
    package final class Recorder: TreeObserver, @unchecked Sendable {
        private let lock = NSLock()
        private var entryList: [(UInt64, String)] = []
        private var attributeList: [UInt64] = []
        private var isSlow = false
        /// As if the kernel had not heard of anything yet.
        package var hasUnsent: Bool {
            get { lock.withLock { isSlow } }
            set { lock.withLock { isSlow = newValue } }
        }
        package func invalidateEntry(parent: UInt64, name: Name, isInDay: Bool) {
            lock.withLock { entryList.append((parent, name.description)) }
        }
        package func dropEntry(parent: UInt64, name: Name, isInDay: Bool) {
            invalidateEntry(parent: parent, name: name, isInDay: isInDay)
        }
        package func awaitLostNames(locked: [UInt64]) {}
        package func invalidateInode(_ ino: UInt64) { lock.withLock { attributeList.append(ino) } }
        package func invalidateAttributes(_ ino: UInt64) { lock.withLock { attributeList.append(ino) } }
        package var entries: [(UInt64, String)] { lock.withLock { entryList } }
        package var attributes: [UInt64] { lock.withLock { attributeList } }
    }
}
