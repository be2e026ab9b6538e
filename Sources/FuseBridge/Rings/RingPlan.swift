internal import Glibc
internal import LinuxIO

/// Sizes of the rings of a mount: FUSE over io_uring (Linux 6.14) wants a queue for each possible processor, and each
/// entry of a queue has a buffer of its own for the largest request.
struct RingPlan: Equatable, Sendable {
    /// One queue for each processor that the machine may ever have.
    let queues: Int
    /// Requests of one processor that can be in service at the same time; further ones wait in the kernel.
    let depth: Int
    /// Largest bytes of one read or write.
    let payloadBytes: Int

    /// Bytes of an entry before its payload: the kernel's headers, and a place where they precede the payload.
    static let headerBytes = 4096
    /// An entry is returned only when its request is answered. So there must be more entries than requests that wait
    /// for each other, or for a long comparison of photos, of which there may be eight.
    private static let depthMin = 10
    private static let depthMax = 40
    /// Larger requests are fewer, up to the 1 MiB of /dev/fuse. Extended attributes can have 64 KiB and come with their
    /// name.
    private static let payloads = [1 << 20, 512 << 10, 256 << 10, 128 << 10]

    /// The plan for that many processors and at most `bytesMax` of buffers; nil if that is too little memory.
    init?(processors: Int, bytesMax: Int) {
        guard processors > 0 else { return nil }
        for payloadBytes in Self.payloads {
            let depth = min(bytesMax / processors / (payloadBytes + Self.headerBytes), Self.depthMax)
            guard depth >= Self.depthMin else { continue }
            (queues, self.depth, self.payloadBytes) = (processors, depth, payloadBytes)
            return
        }
        return nil
    }

    var entryBytes: Int { Self.headerBytes + payloadBytes }
    /// Bytes of all buffers.
    var bytes: Int { queues * depth * entryBytes }

    /// Whether root has switched FUSE over io_uring on. The mount never does that.
    static var isEnabled: Bool {
        contents(ofFile: "/sys/module/fuse/parameters/enable_uring")?.first == UInt8(ascii: "Y")
    }

    /// Number of processors that the machine may ever have, as the kernel counts them. 0 if unknown.
    static var processorsPossible: Int {
        guard let text = contents(ofFile: "/sys/devices/system/cpu/possible") else { return 0 }
        return processors(inList: String(decoding: text, as: UTF8.self))
    }

    /// Numbers in a list such as `0-3,8`; 0 if it is none.
    static func processors(inList text: String) -> Int {
        let ranges = text.split { $0 == "," || $0 == "\n" }
            .map { $0.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) } }
        var count = 0
        for range in ranges {
            guard range.count <= 2, let first = range.first ?? nil, let last = range.last ?? nil,
                first <= last
            else { return 0 }
            count += last - first + 1
        }
        return count
    }
}
