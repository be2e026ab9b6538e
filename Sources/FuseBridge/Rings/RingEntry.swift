internal import CFuse3
internal import Glibc
internal import Synchronization

/// The buffer of one request in a ring. A thread that has its request owns it, until the answer is committed.
///
/// Layout, from a page's start: the kernel's `struct fuse_uring_req_header` (linux/fuse.h); then, directly before the
/// payload, a copy of the request's headers, so that libfuse finds the request in one piece; the payload, from the next
/// page on. Unchecked Sendable: see above.
final class RingEntry: @unchecked Sendable {
    /// Index in its queue.
    let index: Int
    private let base: UnsafeMutableRawPointer
    private let payloadBytesMax: Int
    /// The buffers named in REGISTER.
    let places: UnsafeMutablePointer<iovec>
    /// The kernel's number of the request being served; 0 if there is none.
    private(set) var request: UInt64 = 0
    /// By which the answer is committed.
    private(set) var commit: UInt64 = 0
    private var isAnswered = false
    private let requestInService = Atomic<UInt64>(0)

    /// `struct fuse_uring_req_header`: 128 bytes of the request's or answer's header, 128 of the operation's own, then
    /// flags, commit ID (64 bits each) and the payload's bytes (32 bits).
    private enum Layout {
        static let bytes = 288
        static let operation = 128
        static let operationBytesMax = 128
        static let flags = 256
        static let commit = 264
        static let payloadCount = 272
    }
    /// `struct fuse_in_header` and `fuse_out_header`: their first 32 bits are the length, 64 bits at 8 the number.
    private enum Header {
        static let requestBytes = 40
        static let answerBytes = 16
        static let error = 4
        static let number = 8
    }

    init(index: Int, at base: UnsafeMutableRawPointer, payloadBytes: Int) {
        self.index = index
        self.base = base
        payloadBytesMax = payloadBytes
        places = .allocate(capacity: 2)
        places[0] = iovec(iov_base: base, iov_len: Layout.bytes)
        places[1] = iovec(iov_base: base + RingPlan.headerBytes, iov_len: payloadBytes)
    }

    deinit { places.deallocate() }

    private var payload: UnsafeMutableRawPointer { base + RingPlan.headerBytes }

    /// Takes the request that the kernel has put here: one piece, as from /dev/fuse. Nil if it is not plausible.
    func take() -> fuse_buf? {
        request = base.load(fromByteOffset: Header.number, as: UInt64.self)
        commit = base.load(fromByteOffset: Layout.commit, as: UInt64.self)
        isAnswered = false
        let count = Int(base.load(as: UInt32.self))
        let payloadCount = Int(base.load(fromByteOffset: Layout.payloadCount, as: UInt32.self))
        let operationCount = count - Header.requestBytes - payloadCount
        guard payloadCount <= payloadBytesMax, (0...Layout.operationBytesMax).contains(operationCount) else {
            return nil
        }
        let start = payload - operationCount - Header.requestBytes
        memcpy(start, base, Header.requestBytes)
        memcpy(start + Header.requestBytes, base + Layout.operation, operationCount)
        var buffer = fuse_buf()
        (buffer.size, buffer.mem) = (count, start)
        return buffer
    }

    /// Writes libfuse's answer: a `fuse_out_header` and its payload. The caller commits it afterwards.
    func answer(_ pieces: UnsafeBufferPointer<iovec>) {
        guard let header = pieces.first?.iov_base, pieces[0].iov_len == Header.answerBytes else {
            return answer(error: EIO)
        }
        let count = pieces.dropFirst().reduce(0) { $0 + $1.iov_len }
        guard count <= payloadBytesMax else { return answer(error: EIO) }
        memcpy(base, header, Header.answerBytes)
        var end = payload
        for piece in pieces.dropFirst() where piece.iov_len > 0 {
            memmove(end, piece.iov_base, piece.iov_len)
            end += piece.iov_len
        }
        complete(payloadCount: count)
    }

    /// Answers with an error of errno(3), if nothing else did.
    func answerIfMissing(error: Int32) { if !isAnswered { answer(error: error) } }

    private func answer(error: Int32) {
        base.storeBytes(of: UInt32(Header.answerBytes), as: UInt32.self)
        base.storeBytes(of: -error, toByteOffset: Header.error, as: Int32.self)
        base.storeBytes(of: request, toByteOffset: Header.number, as: UInt64.self)
        complete(payloadCount: 0)
    }

    private func complete(payloadCount: Int) {
        base.storeBytes(of: 0, toByteOffset: Layout.flags, as: UInt64.self)
        base.storeBytes(of: UInt32(payloadCount), toByteOffset: Layout.payloadCount, as: UInt32.self)
        isAnswered = true
    }

    // MARK: The entry that a thread serves

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0)
        return key
    }()

    /// The entry whose request this thread serves. libfuse sends the answer on the same thread.
    static var served: RingEntry? {
        pthread_getspecific(key).map { Unmanaged<RingEntry>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs `body` with this entry as the one that the thread serves.
    func serving(_ body: () -> Void) {
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        requestInService.store(request, ordering: .sequentiallyConsistent)
        body()
        requestInService.store(0, ordering: .releasing)
        pthread_setspecific(Self.key, nil)
    }

    /// Whether a thread is in `serving` for that request. Any thread may ask.
    func serves(_ request: UInt64) -> Bool {
        requestInService.load(ordering: .sequentiallyConsistent) == request
    }
}
