/// The place of a client's request in the server, for its answer.
package typealias RequestID = UInt32

/// The place of a piece in the memory that both processes share.
package typealias PieceIndex = UInt16

/// A door through which a file comes.
package enum Door: UInt8, Sendable {
    /// The page, for devices with a cookie.
    case page
    /// WebDAV, for apps with the password.
    case webdav
}

/// A file, or a piece of one, that a client is about to send.
package struct UploadHead: Equatable, Sendable {
    package var door: Door
    /// The device, as it calls itself: 16 random bytes that it keeps; empty for WebDAV.
    package var device: [UInt8] = []
    /// Below the album; each name can stand in a directory.
    package var path: [[UInt8]]
    /// Where in the file the body begins.
    package var offset: UInt64 = 0
    /// Bytes of the body; nil if the client does not tell.
    package var length: UInt64?
    /// Bytes of the file; nil if the client does not tell.
    package var total: UInt64?
    /// Milliseconds since 1970 of the last change, as the client tells it.
    package var modified: UInt64?
    /// SHA-256 of a sample of the file (`sampleRanges`); empty if there is none.
    package var sample: [UInt8] = []
    /// SHA-256 of the body; empty if there is none.
    package var bodyDigest: [UInt8] = []
    /// SHA-256 of the file; empty if there is none.
    package var fileDigest: [UInt8] = []

    package init(door: Door, path: [[UInt8]]) {
        self.door = door
        self.path = path
    }

    fileprivate func write(to packet: inout PacketWriter) {
        packet.add(door.rawValue)
        packet.add(counted: device)
        packet.add(path: path)
        packet.add(offset)
        for number in [length, total, modified] { packet.add(optional: number) }
        for digest in [sample, bodyDigest, fileDigest] { packet.add(counted: digest) }
    }

    fileprivate init?(_ packet: inout PacketReader) {
        guard let door = packet.number(UInt8.self).flatMap({ Door(rawValue: $0) }),
            let device = packet.fixed(PacketLimits.secretBytes),
            let path = packet.path(), !path.isEmpty, let offset = packet.number(UInt64.self),
            let length = packet.optionalNumber(), let total = packet.optionalNumber(),
            let modified = packet.optionalNumber(), let sample = packet.fixed(PacketLimits.digestBytes),
            let bodyDigest = packet.fixed(PacketLimits.digestBytes),
            let fileDigest = packet.fixed(PacketLimits.digestBytes)
        else { return nil }
        self.init(door: door, path: path)
        (self.device, self.offset, self.length, self.total) = (device, offset, length, total)
        (self.modified, self.sample, self.bodyDigest, self.fileDigest) = (
            modified, sample, bodyDigest, fileDigest
        )
    }
}

/// A question of a client that the parent answers.
package enum Question: Equatable, Sendable {
    /// How much of a file is there: HEAD of the page.
    case offset(UploadHead)
    /// Which of these files are in the space (`KnownQuery`): the body of the request.
    case known(device: [UInt8], body: [UInt8])
    /// The album and the files that this device has sent: JSON.
    case state(device: [UInt8])
    /// The thumbnail of a file that this device has sent, by its number.
    case thumbnail(device: [UInt8], number: UInt32)
    /// WebDAV's PROPFIND with the depth 0 or 1, HEAD, and MKCOL.
    case properties([[UInt8]], withChildren: Bool)
    case size([[UInt8]])
    case makeDirectory([[UInt8]])

    fileprivate func write(to packet: inout PacketWriter) {
        switch self {
        case .offset(let head):
            packet.add(UInt8(0))
            head.write(to: &packet)
        case .known(let device, let body):
            packet.add(UInt8(1))
            packet.add(counted: device)
            packet.add(counted: body)
        case .state(let device):
            packet.add(UInt8(2))
            packet.add(counted: device)
        case .thumbnail(let device, let number):
            packet.add(UInt8(3))
            packet.add(counted: device)
            packet.add(number)
        case .properties(let path, let withChildren):
            packet.add(UInt8(4))
            packet.add(path: path)
            packet.add(UInt8(withChildren ? 1 : 0))
        case .size(let path):
            packet.add(UInt8(5))
            packet.add(path: path)
        case .makeDirectory(let path):
            packet.add(UInt8(6))
            packet.add(path: path)
        }
    }

    fileprivate init?(_ packet: inout PacketReader) {
        func device() -> [UInt8]? {
            guard let device = packet.fixed(PacketLimits.secretBytes), !device.isEmpty else { return nil }
            return device
        }
        switch packet.number(UInt8.self) {
        case 0:
            guard let head = UploadHead(&packet) else { return nil }
            self = .offset(head)
        case 1:
            guard let device = device(), let body = packet.counted(max: PacketLimits.bodyBytes) else {
                return nil
            }
            self = .known(device: device, body: body)
        case 2:
            guard let device = device() else { return nil }
            self = .state(device: device)
        case 3:
            guard let device = device(), let number = packet.number(UInt32.self) else { return nil }
            self = .thumbnail(device: device, number: number)
        case 4:
            guard let path = packet.path(), let children = packet.number(UInt8.self), children < 2 else {
                return nil
            }
            self = .properties(path, withChildren: children == 1)
        case 5:
            guard let path = packet.path() else { return nil }
            self = .size(path)
        case 6:
            guard let path = packet.path(), !path.isEmpty else { return nil }
            self = .makeDirectory(path)
        default: return nil
        }
    }
}

/// A packet of the server to its parent.
package enum ServerMessage: Equatable, Sendable {
    /// The first packet: the server is confined; the SHA-256 of its certificate.
    case ready(fingerprint: [UInt8])
    /// A device has exchanged the code.
    case joined
    case begin(RequestID, UploadHead)
    /// Bytes of the upload that was begun under this number: the first ones of a piece of the shared memory, which is
    /// the parent's until it says `free`.
    case piece(RequestID, PieceIndex, count: UInt32)
    /// The body is complete, or the client is gone.
    case end(RequestID, isComplete: Bool)
    case ask(RequestID, Question)

    package var bytes: [UInt8] {
        var packet = PacketWriter()
        switch self {
        case .ready(let fingerprint):
            packet.add(UInt8(0))
            packet.add(counted: fingerprint)
        case .joined: packet.add(UInt8(1))
        case .begin(let id, let head):
            packet.add(UInt8(2))
            packet.add(id)
            head.write(to: &packet)
        case .piece(let id, let index, let count):
            packet.add(UInt8(3))
            packet.add(id)
            packet.add(index)
            packet.add(count)
        case .end(let id, let isComplete):
            packet.add(UInt8(4))
            packet.add(id)
            packet.add(UInt8(isComplete ? 1 : 0))
        case .ask(let id, let question):
            packet.add(UInt8(5))
            packet.add(id)
            question.write(to: &packet)
        }
        return packet.bytes
    }

    /// Nil for a packet that no server sends.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        var packet = unsafe PacketReader(bytes)
        switch packet.number(UInt8.self) {
        case 0:
            guard let fingerprint = packet.fixed(PacketLimits.digestBytes), !fingerprint.isEmpty else {
                return nil
            }
            self = .ready(fingerprint: fingerprint)
        case 1: self = .joined
        case 2:
            guard let id = packet.number(RequestID.self), let head = UploadHead(&packet) else { return nil }
            self = .begin(id, head)
        case 3:
            guard let id = packet.number(RequestID.self), let index = packet.number(PieceIndex.self),
                let count = packet.number(UInt32.self)
            else { return nil }
            self = .piece(id, index, count: count)
        case 4:
            guard let id = packet.number(RequestID.self), let flag = packet.number(UInt8.self), flag < 2
            else {
                return nil
            }
            self = .end(id, isComplete: flag == 1)
        case 5:
            guard let id = packet.number(RequestID.self), let question = Question(&packet) else { return nil }
            self = .ask(id, question)
        default: return nil
        }
        guard packet.isAtEnd else { return nil }
    }
}

/// The kind of an answer's body.
package enum BodyKind: UInt8, Sendable {
    case none, text, json, jpeg, xml
}

/// An answer to a request.
package struct Answer: Equatable, Sendable {
    /// Of HTTP (RFC 9110).
    package var status: UInt16
    /// How much of the file is there.
    package var offset: UInt64?
    /// For HEAD: the size of the file.
    package var size: UInt64?
    package var kind = BodyKind.none
    /// At most `PacketLimits.bodyBytes`.
    package var body: [UInt8] = []

    package init(_ status: UInt16, offset: UInt64? = nil) {
        self.status = status
        self.offset = offset
    }

    package init(_ kind: BodyKind, _ body: [UInt8], status: UInt16 = 200) {
        (self.status, self.kind, self.body) = (status, kind, body)
    }
}

/// A packet of the parent to its server.
package enum ParentMessage: Equatable, Sendable {
    /// Sent once, before anything is served: the four words, and the user's password for WebDAV (empty: no such door).
    case start(words: [UInt8], password: [UInt8])
    /// The code that the next device exchanges. It replaces the one before.
    case token([UInt8])
    case answer(RequestID, Answer)
    /// The bytes of a piece are written: the server may fill it again.
    case free(PieceIndex)

    package var bytes: [UInt8] {
        var packet = PacketWriter()
        switch self {
        case .start(let words, let password):
            packet.add(UInt8(0))
            packet.add(counted: words)
            packet.add(counted: password)
        case .token(let token):
            packet.add(UInt8(1))
            packet.add(counted: token)
        case .answer(let id, let answer):
            packet.add(UInt8(2))
            packet.add(id)
            packet.add(answer.status)
            packet.add(optional: answer.offset)
            packet.add(optional: answer.size)
            packet.add(answer.kind.rawValue)
            packet.add(counted: answer.body)
        case .free(let index):
            packet.add(UInt8(3))
            packet.add(index)
        }
        return packet.bytes
    }

    /// Nil for a packet that no parent sends.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        var packet = unsafe PacketReader(bytes)
        switch packet.number(UInt8.self) {
        case 0:
            guard let words = packet.counted(max: 256), let password = packet.counted(max: 256) else {
                return nil
            }
            self = .start(words: words, password: password)
        case 1:
            guard let token = packet.fixed(PacketLimits.secretBytes), !token.isEmpty else { return nil }
            self = .token(token)
        case 2:
            guard let id = packet.number(RequestID.self), let status = packet.number(UInt16.self),
                (200...599).contains(status), let offset = packet.optionalNumber(),
                let size = packet.optionalNumber(),
                let kind = packet.number(UInt8.self).flatMap({ BodyKind(rawValue: $0) }),
                let body = packet.counted(max: PacketLimits.bodyBytes)
            else { return nil }
            var answer = Answer(kind, body, status: status)
            (answer.offset, answer.size) = (offset, size)
            self = .answer(id, answer)
        case 3:
            guard let index = packet.number(PieceIndex.self) else { return nil }
            self = .free(index)
        default: return nil
        }
        guard packet.isAtEnd else { return nil }
    }
}
