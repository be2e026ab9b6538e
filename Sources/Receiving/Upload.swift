import Encodings
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import ReceiveProtocol
import VaultCrypto

/// A file that is being received, under a working name beside its later one. For one thread at a time.
final class Upload {
    let head: UploadHead
    let directory: OpenDirectory
    /// Begins with a dot and ends in `.part`: no program takes it for a photo.
    let workingName: Name
    /// The working file; -1 once it is closed.
    private(set) var descriptor: Int32
    /// Bytes of the file that were written.
    private(set) var position: UInt64
    private let pieceBytes: Int
    private let digest: SHA256?
    /// The first error. Later bytes are discarded.
    private(set) var failure: Errno?

    /// Opens or makes the working file. Throws `Refusal`.
    init(_ head: UploadHead, in directory: OpenDirectory, _ limits: ReceiveLimits) throws(Refusal) {
        self.head = head
        self.directory = directory
        workingName = Self.workingName(head)
        pieceBytes = limits.pieceBytes
        digest = head.bodyDigest.isEmpty ? nil : SHA256()
        position = head.offset
        do throws(Errno) {
            descriptor = try directory.openFile(workingName, O_RDWR | O_CREAT)
        } catch { throw Refusal(error) }
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.isRegular else {
            close(descriptor)
            throw Refusal(Errno(EINVAL))
        }
        // The client's own offset counts: it may start again, but not after the bytes already here.
        guard head.offset <= found.byteCount else {
            close(descriptor)
            throw Refusal(status: ReceiveStatus.conflict, offset: found.byteCount)
        }
        if head.offset < found.byteCount, ftruncate(descriptor, off_t(head.offset)) != 0 { failure = .last }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Closes the working file, whose last bytes may find no room only now.
    func closeFile() throws(Errno) {
        let closing = descriptor
        descriptor = -1
        // It is closed also after EINTR.
        if close(closing) != 0, errno != EINTR { throw .last }
    }

    /// The working name of a file: the same for the same file of the same device, so that it goes on after an
    /// interruption, and one that no other device can guess.
    static func workingName(_ head: UploadHead) -> Name {
        let digest = SHA256()
        func add(_ bytes: [UInt8]) {
            withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { digest.update($0) }
            bytes.withUnsafeBytes { digest.update($0) }
        }
        add([head.door.rawValue])
        add(head.device)
        for name in head.path { add(name) }
        for number in [head.total, head.modified] { add(Array("\(number.map { "\($0)" } ?? "-")".utf8)) }
        add(head.sample)
        return Name(workingNameStart + hexText(digest.finish().prefix(16)) + workingNameEnd)
    }

    /// The working name that a file will have if the page sends it.
    static func workingName(_ query: KnownQuery, of device: [UInt8]) -> Name {
        var head = UploadHead(door: .page, path: [query.name])
        // The page gives an unknown time as 0.
        (head.device, head.total, head.modified, head.sample) = (
            device, query.size, query.modified ?? 0, query.sample
        )
        return workingName(head)
    }

    static let workingNameStart = ".obscura-"
    static let workingNameEnd = ".part"

    /// Whether the body ended where the client said it would.
    var isBodyWhole: Bool { head.length.map { position - head.offset == $0 } ?? true }

    /// Whether the file has all its bytes.
    var isFileWhole: Bool { head.total.map { position == $0 } ?? true }

    /// Writes bytes that came.
    func append(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil else { return }
        // libmicrohttpd counts as well; a server that lies must not fill the space.
        let room = (head.length ?? .max) - (position - head.offset)
        guard UInt64(bytes.count) <= room else {
            failure = Errno(EFBIG)
            return
        }
        digest?.update(bytes)
        var rest = bytes
        while !rest.isEmpty {
            let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(position))
            if count < 0, errno == EINTR { continue }
            if count <= 0 {
                failure = .last
                return
            }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            position += UInt64(count)
        }
    }

    /// Ends a body: true if its bytes are those that its digest is of, or it has none. Otherwise the file is as long as
    /// before.
    func endBody(isComplete: Bool) -> Bool {
        guard let digest else { return isComplete && isBodyWhole }
        if isComplete, isBodyWhole, digest.finish() == head.bodyDigest { return true }
        position = head.offset
        if ftruncate(descriptor, off_t(position)) != 0 { failure = failure ?? .last }
        return false
    }

    /// SHA-256 of the whole file, read back; nil if it cannot be read.
    func readBack() -> [UInt8]? {
        let digest = SHA256()
        var buffer = [UInt8](repeating: 0, count: pieceBytes)
        var offset: UInt64 = 0
        while true {
            let count = pread(descriptor, &buffer, buffer.count, off_t(offset))
            if count < 0, errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { return digest.finish() }
            buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += UInt64(count)
        }
    }
}

/// Statuses of HTTP that the parent answers with.
enum ReceiveStatus {
    static let done: UInt16 = 200
    static let created: UInt16 = 201
    static let noContent: UInt16 = 204
    static let multiStatus: UInt16 = 207
    static let invalid: UInt16 = 400
    static let missing: UInt16 = 404
    static let notAllowed: UInt16 = 405
    static let conflict: UInt16 = 409
    static let unprocessable: UInt16 = 422
    static let failed: UInt16 = 500
    static let noRoom: UInt16 = 507
}

/// Why a request is not served.
struct Refusal: Error {
    var answer: Answer
    /// For the terminal: nil where the client is told all that there is to tell.
    var reason: String?

    init(status: UInt16, offset: UInt64? = nil) { answer = Answer(status, offset: offset) }

    /// For a file that the space has no room for.
    static func noRoom(_ bytes: UInt64) -> Refusal {
        var refusal = Refusal(status: ReceiveStatus.noRoom)
        refusal.reason = "the space has no room for its \(sizeText(bytes))"
        return refusal
    }

    init(_ error: Errno) {
        reason = error.meansNoRoom ? "the space is full" : "\(error)"
        answer = Answer(error.meansNoRoom ? ReceiveStatus.noRoom : ReceiveStatus.failed)
        answer.kind = .text
        answer.body = Array("\(error)".utf8)
    }
}
