// The messages between client and worker. Both are of one build, on one machine: a message is a few words in native
// byte order, in one packet of a SOCK_SEQPACKET socket. Pictures and thumbnails are not in the packets but in memory
// files whose descriptors come with the request:
//
//     worker → client   hello    [greeting]    once, after a test of its sandbox
//     client → worker   request  [job, picture bytes, result bytes, width, height, flags, type, quick ms]
//                                + picture: memory file, sealed: only the client can write it, its size is fixed.
//                                           It may still be filling; see ArrivingPicture.
//                                + result:  memory file, its size sealed
//                                + fonts:   for the labels of a sheet; may be none
//     worker → client   notice   [slowNotice]  at most once, when the picture has used its quick time
//     worker → client   reply    [outcome]
//
// The result file begins with the result's length in one word; the JPEG or PNG, or the hash, follows. There is one
// request at a time. A worker exits when its socket is closed. There is no other message: a stalled worker is killed.

/// Constants both sides must agree on.
package enum WorkerProtocol {
    /// "OBSWORK" and the protocol's version. A worker with another greeting is not used.
    package static let greeting: UInt64 = 0x4F42_5357_4F52_4B06
    /// Says that the decoding process has used the request's `quickMilliseconds`, and gives way to others from now on.
    /// No outcome has this number.
    package static let slowNotice: UInt64 = 0x51_0000
    /// Of a decoding process that gives way: it gets a third of the time of another one that wants the same processor.
    package static let slowNiceness: Int32 = 5
    /// The only descriptor a worker inherits besides /dev/null on 0, 1 and 2.
    package static let socketDescriptor: Int32 = 3
    /// Fonts in a request, at most.
    static let fontsMax = 4
    /// Descriptors in a request, at most: the picture, the result, and fonts.
    package static let descriptorsMax = 2 + fontsMax
    /// Bytes before the picture in its file; the first word counts the bytes that have arrived.
    package static let pictureHeaderBytes = 64
    /// Bytes before the picture in the result file: its length.
    package static let resultHeaderBytes = 8

    /// Bytes of a likeness hash.
    package static let hashBytes = 8
    /// Side of the box to which a picture is reduced before it is hashed, in pixels.
    package static let hashedSide = 256

    /// Files larger than this are not decoded.
    static let pictureBytesMax = 256 << 20
    /// Pictures that claim more pixels than this are not decoded.
    package static let pixelsMax = 400_000_000
    /// Longest side of a box, in pixels.
    package static let boxPixelsMax = 4096
    /// Profiles larger than this are not copied into the thumbnail.
    package static let colorProfileBytesMax = 4 << 20
}

/// A request for one picture, made from another one or from several.
package struct WorkerRequest: Equatable, Sendable {
    /// The content of the picture file and the result.
    package enum Job: UInt64, Sendable {
        /// A picture to reduce.
        case thumbnail = 0
        /// A ``CompositionRequest`` to draw as a stack.
        case stack = 1
        /// A ``CompositionRequest`` to draw as a contact sheet.
        case sheet = 2
        /// A JPEG whose likeness to others is to be hashed: the result is the hash, 8 bytes in native order; 0 if it
        /// has none.
        case likeness = 3
    }

    /// The kind of work.
    package var job: Job
    /// Length of the picture, in bytes.
    package var pictureBytes: Int
    /// Length of the result file, in bytes.
    package var resultBytes: Int
    /// The box that the upright result fits in or fills.
    package var size: PictureSize
    /// The file format of the result.
    package var format: PictureFormat
    /// The type of the picture, or of each tile.
    package var type: MediaType
    /// Processor time after which the decoding process gives way to others, with a notice; 0: at once, without one.
    package var quickMilliseconds = 0

    package init(
        _ job: Job, pictureBytes: Int, size: PictureSize, format: PictureFormat = .jpeg,
        type: MediaType = .jpeg
    ) {
        self.job = job
        self.pictureBytes = pictureBytes
        // 4:4:4 takes at most (tjBufSize) 6 bytes a pixel, sides padded to 16, and 2048 bytes of
        // headers. PNG stays below that: at most 4 bytes a pixel, 1 a row, and 0.1 % of them (zlib).
        let padded = PixelSize(width: (size.width + 15) & ~15, height: (size.height + 15) & ~15)
        resultBytes =
            WorkerProtocol.resultHeaderBytes + padded.width * padded.height * 6 + 2048
            + WorkerProtocol.colorProfileBytesMax * 2
        self.size = size
        self.format = format
        self.type = type
    }

    private static let isFilledBit: UInt64 = 1
    private static let isPNGBit: UInt64 = 2

    /// The packet's words.
    package var words: [UInt64] {
        let flags = (size.isFilled ? Self.isFilledBit : 0) | (format == .png ? Self.isPNGBit : 0)
        return [
            job.rawValue, UInt64(pictureBytes), UInt64(resultBytes), UInt64(size.width), UInt64(size.height),
            flags, UInt64(type.rawValue), UInt64(quickMilliseconds),
        ]
    }

    /// Parses a packet. Nil if it is not a valid request.
    package init?(words: [UInt64]) {
        let sides = 1...UInt64(WorkerProtocol.boxPixelsMax)
        guard words.count == 8, let job = Job(rawValue: words[0]),
            let type = UInt8(exactly: words[6]).flatMap(MediaType.init(rawValue:)),
            (1...UInt64(WorkerProtocol.pictureBytesMax)).contains(words[1]),
            sides.contains(words[3]), sides.contains(words[4]),
            words[5] & ~(Self.isFilledBit | Self.isPNGBit) == 0, words[7] <= UInt64(Int32.max)
        else { return nil }
        self.init(
            job, pictureBytes: Int(words[1]),
            size: PictureSize(
                width: Int(words[3]), height: Int(words[4]), isFilled: words[5] & Self.isFilledBit != 0),
            format: words[5] & Self.isPNGBit != 0 ? .png : .jpeg, type: type)
        guard words[2] == UInt64(resultBytes) else { return nil }
        quickMilliseconds = Int(words[7])
    }
}

/// The outcome of a request.
package enum WorkerOutcome: UInt64, Sendable {
    /// The result file holds a picture.
    case done = 0
    /// The picture cannot be decoded or exceeds the limits.
    case refused = 1
    /// The decoding process died.
    case crashed = 2
    /// The process could not confine itself and has not touched the picture.
    case unconfined = 3
}
