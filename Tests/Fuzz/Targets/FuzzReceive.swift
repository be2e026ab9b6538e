import Encodings
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import ReceiveProtocol
import TestSupport

@testable import Receiving

/// What strangers, phones and a server that was taken over say: fields of requests, then packets to a real inbox, whose
/// album is a directory here. Nothing outside of the album may change.
func fuzzReceive(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    if input.number(UInt8.self) & 1 == 0 { return fields(input.takeAll()) }
    let place = InboxPlayground()
    defer { place.remove() }
    place.use(&input)
}

private func fields(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    precondition(isFileName(photoName(bytes)))
    if let path = pathNames(text, below: "/dav") { precondition(path.allSatisfy(isFileName)) }
    if let decoded = percentDecoded(bytes) {
        precondition(percentDecoded(percentEncoded(decoded)) == decoded)
    }
    if let range = ContentRange(text) {
        precondition(range.length > 0 && range.last < range.total)
    }
    if let digest = sha256Digest(text) { precondition(digest.count == PacketLimits.digestBytes) }
    _ = cookie("__Host-session", in: text)
    _ = basicCredentials(text)
    _ = decimal(bytes)
    if let secret = SecretText.secret(bytes) {
        precondition(SecretText.secret(SecretText.text(secret).utf8) == secret)
    }
    for query in KnownQuery.parse(bytes) ?? [] { precondition(isFileName(query.name)) }
    bytes.withUnsafeBytes { packet in
        if let message = ServerMessage(packet) {
            precondition(message.bytes.withUnsafeBytes { ServerMessage($0) } == message)
        }
        if let message = ParentMessage(packet) {
            precondition(message.bytes.withUnsafeBytes { ParentMessage($0) } == message)
        }
    }
}

/// A directory in memory like the root of a space, and an inbox.
private final class InboxPlayground {
    private let root = "/dev/shm/fuzz-receive-\(getpid())"
    private let inbox: Inbox
    private let memory: UnsafeMutableRawBufferPointer

    private static let sizes: [UInt64] = [0, 1, 2, 5, 100, 4096, 70_000, 1 << 40, (1 << 62) - 1, .max]
    private static let names = ["a.jpg", "b.jpg", "link", "directory", "a (2).jpg", ".x", "é", "z"]

    init() {
        HostPath(root).withCString { _ = mkdir($0, 0o700) }
        for name in [
            "albums", "albums/Phone", "albums/Phone/directory", "moments", "moments/2024-05-01", "outside",
        ] {
            mkdir(root + "/" + name, 0o700)
        }
        symlink("../../outside", root + "/albums/Phone/link")
        symlink("../../outside/new", root + "/albums/Phone/z")
        var found = stat()
        precondition(stat(root, &found) == 0)
        let mount = ReceivingMount(directory: root, device: UInt64(found.st_dev))
        let limits = ReceiveLimits.least
        guard let pieces = PieceBuffer(limits) else { preconditionFailure("no memory") }
        // As the server maps it.
        let byteCount = limits.pieces * limits.pieceBytes
        let start = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, pieces.descriptor, 0)
        memory = UnsafeMutableRawBufferPointer(start: start, count: byteCount)
        inbox = Inbox(mount, album: ["Phone"], limits, pieces, record: ReceiveRecord(limits)) { _ in }
    }

    func use(_ input: inout Input) {
        var count = 0
        while !input.isEmpty, count < 64 {
            packet(&input)
            count += 1
        }
        inbox.close()
        precondition(
            (try? HostPath(root + "/outside").list())?.isEmpty == true, "written outside of the album")
        precondition((try? HostPath(root).list())?.count == 3, "written beside the album")
        let album = HostPath(root + "/albums/Phone")
        for name in (try? album.list()) ?? [] where name.bytes.first != UInt8(ascii: ".") {
            guard let status = try? album.appending(name).status() else { continue }
            precondition(status.isRegular || status.isDirectory || status.isSymbolicLink)
        }
    }

    private func packet(_ input: inout Input) {
        let kind = input.number(UInt8.self)
        let id = RequestID(kind >> 4)
        switch kind & 7 {
        case 0, 1: inbox.take(.begin(id, head(&input)))
        case 2, 3:
            let count = Int(input.number(UInt8.self))
            let index = PieceIndex(input.number(UInt8.self) % 4)
            let bytes = input.take(count)
            memory.copyBytes(from: bytes)
            inbox.take(.piece(id, index, count: count < 250 ? UInt32(bytes.count) : UInt32(count) << 6))
        case 4: inbox.take(.end(id, isComplete: input.number(UInt8.self) & 3 != 0))
        case 5: inbox.take(.ask(id, question(&input)))
        default:
            let packet = input.take(Int(input.number(UInt8.self)))
            packet.withUnsafeBytes { packet in
                if let message = ServerMessage(packet) { inbox.take(message) }
            }
        }
    }

    private func path(_ input: inout Input) -> [[UInt8]] {
        let byte = Int(input.number(UInt8.self))
        let name = Array(Self.names[byte % Self.names.count].utf8)
        return byte < 200 ? [name] : [Array(Self.names[byte / 8 % Self.names.count].utf8), name]
    }

    private func size(_ input: inout Input) -> UInt64 {
        let byte = input.number(UInt8.self)
        return byte < 128 ? UInt64(byte) : Self.sizes[Int(byte) % Self.sizes.count]
    }

    private func head(_ input: inout Input) -> UploadHead {
        let flags = input.number(UInt8.self)
        var head = UploadHead(door: flags & 1 == 0 ? .page : .webdav, path: path(&input))
        if flags & 1 == 0 { head.device = [UInt8](repeating: flags >> 7, count: PacketLimits.secretBytes) }
        if flags & 2 != 0 { head.offset = size(&input) }
        if flags & 4 != 0 { head.length = size(&input) }
        if flags & 8 != 0 { head.total = size(&input) }
        if flags & 16 != 0 { head.modified = size(&input) }
        if flags & 32 != 0 { head.bodyDigest = [UInt8](repeating: 1, count: PacketLimits.digestBytes) }
        if flags & 64 != 0 { head.fileDigest = [UInt8](repeating: 1, count: PacketLimits.digestBytes) }
        return head
    }

    private func question(_ input: inout Input) -> Question {
        let device = [UInt8](repeating: 0, count: PacketLimits.secretBytes)
        switch input.number(UInt8.self) % 7 {
        case 0: return .offset(head(&input))
        case 1: return .known(device: device, body: input.take(Int(input.number(UInt8.self))))
        case 2: return .state(device: device)
        case 3: return .thumbnail(device: device, number: UInt32(input.number(UInt8.self)))
        case 4: return .properties(path(&input), withChildren: true)
        case 5: return .size(path(&input))
        default: return .makeDirectory(path(&input))
        }
    }

    func remove() {
        munmap(memory.baseAddress, memory.count)
        for name in [
            "albums/Phone/directory", "albums/Phone", "albums", "moments/2024-05-01", "moments", "outside",
            "",
        ] {
            clear(root + "/" + name)
        }
    }

    /// Removes a directory and what is in it, two levels deep.
    private func clear(_ path: String) {
        let directory = HostPath(path)
        for name in (try? directory.list()) ?? [] {
            let inner = directory.appending(name)
            for deeper in (try? inner.list()) ?? [] { _ = inner.appending(deeper).withCString { unlink($0) } }
            _ = inner.withCString { Glibc.remove($0) }
        }
        rmdir(path)
    }
}
