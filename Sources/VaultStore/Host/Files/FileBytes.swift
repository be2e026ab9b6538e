import Glibc
import LinuxIO
import VaultFormat

/// A part of a vault in files.
final class FileBytes: PartBytes {
    private let calls: any FileSystemCalls
    private let descriptor: Int32
    private let ownsDescriptor: Bool
    /// The first byte in the file, and the most bytes; nil for all of the file.
    private let place: (start: UInt64, bytesMax: UInt64)?

    /// The segment at a place; else the whole file.
    init(
        _ calls: any FileSystemCalls, _ descriptor: Int32, owned: Bool,
        at place: (SegmentPlace, SegmentLayout)? = nil
    ) {
        (self.calls, self.descriptor, ownsDescriptor) = (calls, descriptor, owned)
        self.place = place.map { place, layout in (layout.start(place), layout.segmentBytes) }
    }

    deinit { if ownsDescriptor { calls.close(descriptor) } }

    private var start: UInt64 { place?.start ?? 0 }

    func size() throws(Errno) -> UInt64 {
        let size = try calls.status(descriptor).size
        guard let place else { return size }
        return size > place.start ? min(size - place.start, place.bytesMax) : 0
    }

    func readAround(
        _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> (count: Int, unreadable: [Range<Int>]) {
        try calls.readAround(descriptor, bytes, at: start + offset)
    }

    func read(_ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try calls.readFully(descriptor, bytes, at: start + offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        try calls.writeFully(descriptor, bytes, at: start + offset)
    }

    func truncate(to size: UInt64) throws(Errno) { try calls.truncate(descriptor, to: start + size) }

    func sync() throws(Errno) {
        if place != nil { try calls.dataSync(descriptor) } else { try calls.sync(descriptor) }
    }

    func forget(_ range: Range<UInt64>) {
        calls.forget(descriptor, offset: start + range.lowerBound, length: UInt64(range.count))
    }
}

extension VaultFiles {
    func open(_ part: VaultPart, _ use: PartUse) throws(Errno) -> any PartBytes {
        let flags =
            switch use {
            case .reading: O_RDONLY
            case .writing: O_RDWR
            case .making: O_RDWR | O_CREAT
            case .replacing: O_RDWR | O_CREAT | O_TRUNC
            }
        switch part {
        case .header: return FileBytes(calls, header, owned: false)
        case .segment(let place, let layout):
            let file = try calls.openRegular(directory, layout.path(place), flags: flags, mode: 0o600)
            return FileBytes(calls, file, owned: true, at: (place, layout))
        case .copyLog:
            let file = try calls.openRegular(directory, CopyLog.name, flags: flags, mode: 0o600)
            return FileBytes(calls, file, owned: true)
        }
    }

    func name(of place: SegmentPlace, _ layout: SegmentLayout) -> String { layout.path(place) }

    func availableBytes() throws(Errno) -> UInt64 { try calls.hostStatus(directory).availableBytes }

    func isBare() throws(Errno) -> Bool {
        let names = try calls.list(directory)
        let headerBytes = try calls.status(header).size
        return headerBytes == 0 && names.allSatisfy { $0 == Self.headerName || $0 == CopyLog.name }
    }

    func makeSegmentsPlace(_ layout: SegmentLayout) throws(Errno) {
        if layout.isShared { return }
        do throws(Errno) { try calls.makeDirectory(directory, layout.directoryPath, mode: 0o700) } catch
            where error == .exists
        {}
    }

    func syncNames() throws(Errno) { try calls.sync(directory) }

    func syncSegmentNames(_ layout: SegmentLayout) throws(VaultError) {
        let directory = try openSegments(layout)
        defer { calls.close(directory) }
        do throws(Errno) { try calls.sync(directory) } catch { throw CopyTarget.failure(error) }
    }

    func removeLog() throws(Errno) { try calls.unlink(directory, CopyLog.name) }

    func removeHeader() throws(Errno) { try calls.unlink(directory, Self.headerName) }

    func requireFitting(_ header: Header) throws(VaultError) {
        let layout = header.layout
        if layout.isShared { return try requireSpacesFit(layout) }
        if fileBytes(SegmentLayout.sharedName) != nil {
            throw .foreignHeader("it describes one space, the vault has several")
        }
        let listing = try listing(layout)
        for number in listing.numbers + listing.distant {
            // A segment's file is as long as its written part.
            let bytes = fileBytes(layout.path(SegmentPlace(space: 0, number: number))) ?? 0
            guard bytes <= header.segmentBytes else {
                throw .foreignHeader("it describes smaller segments than the vault has")
            }
        }
    }

    private func requireSpacesFit(_ layout: SegmentLayout) throws(VaultError) {
        guard let size = fileBytes(SegmentLayout.sharedName) else {
            throw .foreignHeader("it describes \(layout.spaceCount) spaces, the vault has one")
        }
        guard size >= layout.rowBytes else {
            throw .foreignHeader("it describes larger segments than the vault has, or more spaces")
        }
        guard size % layout.rowBytes == 0 else {
            throw .foreignHeader(
                "it describes other spaces than the vault has (or growing the vault was interrupted: then truncate "
                    + "\(SegmentLayout.sharedName) to \(size / layout.rowBytes * layout.rowBytes) bytes)")
        }
    }
}
