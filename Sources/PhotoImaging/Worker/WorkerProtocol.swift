// What client and worker say to each other. Both are of one build, on one machine: a message is a few words
// in the machine's byte order in one packet of a SOCK_SEQPACKET socket. Pictures and thumbnails do not pass
// through the socket but through memory files that travel with the request:
//
//     worker → client   hello    [greeting]    once, when its sandbox has been tried
//     client → worker   request  [picture bytes, result bytes, box width, box height, type]
//                                + picture: memory file, sealed: neither its size nor a byte can change
//                                + result:  memory file, its size sealed
//     worker → client   reply    [outcome]
//
// The result file begins with the thumbnail's length in one word; the JPEG follows. One request at a time;
// whoever finds the socket closed ends. There is no other message: a worker that stalls is killed.

/// Constants both sides must agree on.
package enum WorkerProtocol {
    /// "OBSWORK" and the protocol's version: a worker of another build is not talked to.
    package static let greeting: UInt64 = 0x4F42_5357_4F52_4B01
    /// The only descriptor a worker inherits besides /dev/null on 0, 1 and 2.
    package static let socketDescriptor: Int32 = 3
    /// Bytes before the JPEG in the result file: its length.
    package static let resultHeaderBytes = 8

    /// Files larger than this are not decoded.
    package static let pictureBytesMax = 256 << 20
    /// Pictures that claim more pixels than this are not decoded.
    package static let pixelsMax = 400_000_000
    /// Longest side of a box.
    package static let boxPixelsMax = 4096
    /// Profiles larger than this are not copied into the thumbnail.
    package static let colorProfileBytesMax = 4 << 20
}

/// One picture to be made smaller.
package struct WorkerRequest: Equatable, Sendable {
    /// Length of the picture file.
    package var pictureBytes: Int
    /// Length of the result file.
    package var resultBytes: Int
    /// The upright thumbnail fits in here.
    package var box: PixelSize
    /// The picture's type.
    package var type: MediaType

    package init(pictureBytes: Int, box: PixelSize, type: MediaType) {
        self.pictureBytes = pictureBytes
        // 4:2:0 at its very worst (tjBufSize) takes 3 bytes a pixel, sides padded to 16, and 2048 bytes of
        // headers.
        let padded = PixelSize(width: (box.width + 15) & ~15, height: (box.height + 15) & ~15)
        resultBytes =
            WorkerProtocol.resultHeaderBytes + padded.width * padded.height * 3 + 2048
            + WorkerProtocol.colorProfileBytesMax
        self.box = box
        self.type = type
    }

    /// The packet's words.
    package var words: [UInt64] {
        [
            UInt64(pictureBytes), UInt64(resultBytes), UInt64(box.width), UInt64(box.height),
            UInt64(type.rawValue),
        ]
    }

    /// The request in a packet, or nil where it is none.
    package init?(words: [UInt64]) {
        guard words.count == 5, let type = UInt8(exactly: words[4]).flatMap(MediaType.init(rawValue:)),
            (1...UInt64(WorkerProtocol.pictureBytesMax)).contains(words[0]),
            (1...UInt64(WorkerProtocol.boxPixelsMax)).contains(words[2]),
            (1...UInt64(WorkerProtocol.boxPixelsMax)).contains(words[3])
        else { return nil }
        let box = PixelSize(width: Int(words[2]), height: Int(words[3]))
        self.init(pictureBytes: Int(words[0]), box: box, type: type)
        guard words[1] == UInt64(resultBytes) else { return nil }
    }
}

/// What became of a request.
package enum WorkerOutcome: UInt64, Sendable {
    /// The result file holds a JPEG.
    case done = 0
    /// The picture cannot be decoded, or is more than the limits allow.
    case refused = 1
    /// The process that decoded died of it.
    case crashed = 2
    /// The process could not confine itself and has not touched the picture.
    case unconfined = 3
}
