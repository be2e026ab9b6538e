import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// Copies of a vault of one space from a cluster, to one, or between two.
///
/// The vault is locked, so that nothing changes meanwhile; the copy is new, so that no older one is at risk. Its header
/// is written last: without it nothing is a vault.
struct ClusterCopy {
    private let path: String
    private let destination: String
    private let calls: any FileSystemCalls

    typealias Progress = (UInt64, UInt64) throws(BackupError) -> Void

    private static let blockBytes = 1 << 20

    init(_ path: String, to destination: String, calls: any FileSystemCalls) {
        (self.path, self.destination, self.calls) = (path, destination, calls)
    }

    /// - Parameter progress: called with the bytes copied and the total, every MiB. Its error ends the copy.
    func run(_ progress: Progress) throws(BackupError) -> BackupReport {
        let (source, header) = try onSource { () throws(VaultError) in
            let source = try openHost(path, calls: calls)
            try source.lock()
            return (source, try Vault.readHeader(source, mayRepair: false))
        }
        guard !header.layout.isShared else {
            throw .source(
                .invalidSize("a vault of several spaces stays in files: objects would tell which are in use"))
        }
        guard let address = try onDestination({ () throws(VaultError) in try ClusterAddress(destination) })
        else { return try copyToFiles(source, header, progress) }
        let target = try onDestination { () throws(VaultError) in
            try VaultCluster.make(address, path: destination)
        }
        do throws(BackupError) { return try copy(source, target, header, progress) } catch {
            target.removeAll()
            throw error
        }
    }

    private func copyToFiles(
        _ source: any VaultHost, _ header: Header, _ progress: Progress
    ) throws(BackupError) -> BackupReport {
        var made = MadeFiles(calls: calls, path: destination)
        do throws(BackupError) {
            let target = try onDestination { () throws(VaultError) in
                let directory = try made.openRoot()
                try made.directory(SegmentLayout.directoryName)
                return VaultFiles(
                    calls: calls, directory: directory, header: try made.headerFile(), ownsHeader: true)
            }
            let report = try copy(source, target, header, progress)
            try onDestination { () throws(VaultError) in try target.syncDirectories(header.layout) }
            return report
        } catch {
            made.remove()
            throw error
        }
    }

    // MARK: Bytes

    private func copy(
        _ source: any VaultHost, _ target: any VaultHost, _ header: Header, _ progress: Progress
    ) throws(BackupError) -> BackupReport {
        let layout = header.layout
        let (from, numbers, bytes) = try onSource { () throws(VaultError) in
            let from = try source.segments(of: 0, layout)
            let numbers = try source.listing(layout).numbers
            var bytes: UInt64 = 0
            for number in numbers {
                bytes += try stored { () throws(StoreError) in try from.writtenBytes(number) }
            }
            return (from, numbers, bytes)
        }
        let to = try onDestination { () throws(VaultError) in
            try target.lock()
            return try target.segments(of: 0, layout)
        }
        var report = BackupReport()
        report.bytes = bytes + HeaderLayout.fileBytes
        report.missingSegments = (numbers.last ?? -1) + 1 - numbers.count
        var done: UInt64 = 0
        for number in numbers {
            try onDestination { () throws(VaultError) in
                try stored { () throws(StoreError) in try to.create(number) }
            }
            report.bytesWritten += try copy(number, from, to) { (count) throws(BackupError) in
                try progress(done, report.bytes)
                done += count
            }
        }
        var image = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        try onSource { () throws(VaultError) in
            do throws(Errno) { _ = try source.readHeader(at: 0, into: &image) } catch {
                throw .system(error, "cannot read the header")
            }
        }
        try onDestination { () throws(VaultError) in
            try stored { () throws(StoreError) in try to.sync() }
            do throws(Errno) { try target.writeHeader(image, at: 0) } catch {
                throw .system(error, "cannot write the header")
            }
        }
        report.bytesWritten += HeaderLayout.fileBytes
        return report
    }

    /// Copies the stored bytes of a segment. Returns how many there are.
    private func copy(
        _ number: Int, _ from: any SegmentHost, _ to: any SegmentHost,
        willCopy: (UInt64) throws(BackupError) -> Void
    ) throws(BackupError) -> UInt64 {
        let block = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.blockBytes, alignment: Geometry.pageBytes)
        defer { block.deallocate() }
        var (offset, copied) = (UInt64(0), UInt64(0))
        while true {
            let range = try onSource { () throws(VaultError) in
                try stored { () throws(StoreError) in try from.storedRange(number, from: offset) }
            }
            guard let range else { return copied }
            offset = range.lowerBound
            while offset < range.upperBound {
                let part = block.slice(0, Int(min(range.upperBound - offset, UInt64(block.count))))
                try willCopy(UInt64(part.count))
                try onSource { () throws(VaultError) in
                    try stored { () throws(StoreError) in try from.read(number, at: offset, into: part) }
                }
                try onDestination { () throws(VaultError) in
                    try stored { () throws(StoreError) in
                        try to.write(number, at: offset, UnsafeRawBufferPointer(part), .body)
                    }
                }
                offset += UInt64(part.count)
                copied += UInt64(part.count)
            }
        }
    }

    private func stored<R>(_ body: () throws(StoreError) -> R) throws(VaultError) -> R {
        do throws(StoreError) { return try body() } catch {
            throw VaultError(error, doing: "cannot copy a segment")
        }
    }
}
