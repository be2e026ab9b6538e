import Foundation
package import LinuxIO
package import PhotoImaging
import TestSupport
package import VaultCatalogue

@testable import FileRequests
@testable package import PhotoLibrary

/// Makes texts that name their source in place of pictures, and counts. Bytes that hold "undecodable" are.
package final class StandInMaker: PictureMaking, @unchecked Sendable {
    package struct Order: Equatable {
        package var source: [UInt8]
        package var size: PictureSize
        package var format: PictureFormat
    }

    private let lock = NSLock()
    private let change = NSCondition()
    private var orderList: [Order] = []
    private var compositionCount = 0
    private var isHeldUp = false
    private var isShut = false
    /// Under `change`: how many may go while the others are held up.
    private var passes = 0
    /// Under `change`.
    private var cancelledCount = 0
    private var restCount = 0
    /// Under `lock`.
    private var hashCount = 0
    /// Under `lock`: pictures in the making, now and at most.
    private var atOnce = (now: 0, most: 0)

    /// Bytes of padding in each picture, so that it costs room.
    package var paddingBytes = 0
    /// Larger pictures are undecodable.
    package var sideMax = Int.max
    /// Sources on which an installed program hangs.
    package var hanging: Set<[UInt8]> = []
    /// Sources that are slow when they come first.
    package var postponed: Set<[UInt8]> = []
    /// Whether piles and sheets cannot be made.
    package var failsCompositions = false

    /// The types that it decodes.
    package var decodableTypes: Set<MediaType> {
        get { lock.withLock { types } }
        set { lock.withLock { types = newValue } }
    }
    private var types = ThumbnailWorkers.decodedTypes

    package init() {}

    package var orders: [Order] { lock.withLock { orderList } }
    package var compositions: Int { lock.withLock { compositionCount } }
    /// Pictures that were called off while they were made.
    package var cancellations: Int { change.withLock { cancelledCount } }
    /// The largest number of pictures that were made at the same time.
    package var mostAtOnce: Int { lock.withLock { atOnce.most } }
    /// Pictures that were hashed.
    package var hashed: Int { lock.withLock { hashCount } }
    package var rests: Int { lock.withLock { restCount } }

    /// From now on callers wait, until `letGo`.
    package func holdUp() { change.withLock { isHeldUp = true } }

    /// Lets one of those go that are held up.
    package func letOneGo() {
        change.withLock {
            passes = 1
            change.broadcast()
        }
    }

    package func letGo() {
        change.withLock {
            isHeldUp = false
            change.broadcast()
        }
    }

    package func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(source.byteCount))
        let count = bytes.withUnsafeMutableBytes { source.read(at: 0, into: $0) }
        lock.withLock {
            orderList.append(Order(source: bytes, size: size, format: format))
            atOnce.now += 1
            atOnce.most = max(atOnce.most, atOnce.now)
        }
        defer { lock.withLock { atOnce.now -= 1 } }
        let isCancelled = cancellation.during(wakeAll) {
            change.withLock {
                while isHeldUp && passes == 0 && !isShut && !cancellation.isCancelled { change.wait() }
                passes = max(0, passes - 1)
                if cancellation.isCancelled { cancelledCount += 1 }
                return isShut || cancellation.isCancelled
            }
        }
        if isCancelled { throw .cancelled }
        guard count == bytes.count else { throw .workerFailed }
        if lock.withLock({ postponed.remove(bytes) }) != nil { throw .slow }
        if hanging.contains(bytes) { throw .outOfTime }
        if bytes.firstRange(of: Array("undecodable".utf8)) != nil || size.width > sideMax {
            throw .undecodable
        }
        let text =
            Array(
                "\(size.width)x\(size.height) \(size.isFilled) of \(bytes.hashValue) ".utf8)
            + Self.hash(of: bytes)
        let padding = [UInt8](repeating: 7, count: paddingBytes)
        switch format {
        case .jpeg: return [0xFF, 0xD8, 0xFF] + text + padding + [0xFF, 0xD9]
        case .png: return pngHeader + text + padding
        }
    }

    /// The hash of a picture whose source holds "alike " and the hash in 16 hexadecimal digits; nil for any other.
    package func likenessHash(of jpeg: [UInt8], unless cancellation: Cancellation) throws(ThumbnailError)
        -> UInt64?
    {
        lock.withLock { hashCount += 1 }
        return UInt64(String(decoding: Self.hash(of: jpeg).dropFirst(6), as: UTF8.self), radix: 16)
    }

    private static func hash(of bytes: [UInt8]) -> [UInt8] {
        let mark = Array("alike ".utf8)
        guard let place = bytes.firstRange(of: mark)?.lowerBound else { return [] }
        return Array(bytes[place...].prefix(mark.count + 16))
    }

    package func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        lock.withLock { compositionCount += 1 }
        if failsCompositions { throw .undecodable }
        return Array("stack of \(pictures.count) \(pictures.first?.hashValue ?? 0)".utf8)
    }

    package func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        lock.withLock { compositionCount += 1 }
        return Array("sheet \(title): \(pictures.map(\.label).joined(separator: " "))".utf8)
    }

    private func wakeAll() { change.withLock { change.broadcast() } }

    package func releaseIdle() { lock.withLock { restCount += 1 } }

    package func shutDown() {
        change.withLock {
            isShut = true
            change.broadcast()
        }
    }

    /// Signature and header of a PNG of one pixel, without a right checksum.
    private var pngHeader: [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
            + [0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 1, 2, 3, 4]
    }
}

extension Fixture {
    /// The kept pictures of a photo.
    package func thumbnailRows(of ino: UInt64) throws -> [ThumbnailRow] {
        try library.session.locked { tree throws(FileError) in try tree.tables.thumbnails.rows(of: ino) }
    }

    /// A fixture whose pictures are made by a stand-in. Nothing is made ahead unless `settleMilliseconds` is given.
    package static func withStandIn(
        settleMilliseconds: Int64 = 1 << 40, _ change: (inout LibraryOptions) -> Void = { _ in }
    ) throws -> (Fixture, StandInMaker) {
        let fixture = try Fixture()
        let maker = StandInMaker()
        try fixture.close()
        try fixture.reopen {
            $0.pictureMaker = maker
            $0.settleMilliseconds = settleMilliseconds
            change(&$0)
        }
        return (fixture, maker)
    }
}

/// Runs on a thread of its own, whose end is waited for: it may wait for long.
package final class Background<R: Sendable>: @unchecked Sendable {
    private let change = NSCondition()
    private var found: R?

    package init(_ body: @escaping @Sendable () -> R) {
        Thread.detachNewThread { [self] in
            let result = body()
            change.withLock {
                found = result
                change.broadcast()
            }
        }
    }

    package func result() -> R {
        change.withLock {
            while true {
                if let found { return found }
                change.wait()
            }
        }
    }
}
