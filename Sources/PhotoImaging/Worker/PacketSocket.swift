internal import CShims
internal import Glibc

/// Packets of words, with descriptors attached, on a connected SOCK_SEQPACKET socket (unix(7), cmsg(3)).
package struct PacketSocket: Sendable {
    /// The descriptor. Its creator closes it.
    package var descriptor: Int32

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    private static let wordsMax = 8
    private static let descriptorsMax = WorkerProtocol.descriptorsMax

    /// Sends one packet with copies of `descriptors`. False if the other side is gone, and on any other error.
    package func send(_ words: [UInt64], descriptors: [Int32] = []) -> Bool {
        precondition(words.count <= Self.wordsMax && descriptors.count <= Self.descriptorsMax)
        let sent = withMessage(words: words, descriptorRoom: descriptors.count) { message in
            if let header = firstControl(&message) {
                header.pointee.cmsg_level = SOL_SOCKET
                header.pointee.cmsg_type = Int32(SCM_RIGHTS)
                header.pointee.cmsg_len = shim_CMSG_LEN(descriptors.count * MemoryLayout<Int32>.size)
                descriptors.withUnsafeBytes {
                    UnsafeMutableRawPointer(shim_CMSG_DATA(header)!).copyMemory(
                        from: $0.baseAddress!, byteCount: $0.count)
                }
            }
            return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
        }
        return sent.result == words.count * MemoryLayout<UInt64>.size
    }

    /// Receives one packet and its descriptors, which are close-on-exec and owned by the caller. Nil if the other side
    /// is gone, on any error, and for a truncated packet.
    package func receive() -> (words: [UInt64], descriptors: [Int32])? {
        var descriptors: [Int32] = []
        let room = [UInt64](repeating: 0, count: Self.wordsMax)
        let received = withMessage(words: room, descriptorRoom: Self.descriptorsMax) { message in
            let count = recvmsg(descriptor, &message, Int32(MSG_CMSG_CLOEXEC))
            guard count > 0, let header = firstControl(&message),
                header.pointee.cmsg_level == SOL_SOCKET, header.pointee.cmsg_type == Int32(SCM_RIGHTS)
            else { return count }
            let bytes = UnsafeRawBufferPointer(
                start: shim_CMSG_DATA(header), count: Int(header.pointee.cmsg_len) - shim_CMSG_LEN(0))
            descriptors = stride(from: 0, to: bytes.count, by: 4).map {
                bytes.loadUnaligned(fromByteOffset: $0, as: Int32.self)
            }
            return message.msg_flags & Int32(MSG_TRUNC | MSG_CTRUNC) == 0 ? count : -1
        }
        guard received.result > 0, received.result % MemoryLayout<UInt64>.size == 0 else {
            for descriptor in descriptors { close(descriptor) }
            return nil
        }
        return (Array(received.words.prefix(received.result / MemoryLayout<UInt64>.size)), descriptors)
    }

    /// Calls `body` with a message over a copy of `words` and room for descriptors, and repeats it after EINTR.
    private func withMessage(
        words: [UInt64], descriptorRoom: Int, _ body: (inout msghdr) -> Int
    ) -> (result: Int, words: [UInt64]) {
        var words = words
        let controlBytes =
            descriptorRoom == 0 ? 0 : shim_CMSG_SPACE(descriptorRoom * MemoryLayout<Int32>.size)
        var control = [UInt64](repeating: 0, count: (controlBytes + 7) / 8)
        let result = words.withUnsafeMutableBytes { payload in
            control.withUnsafeMutableBytes { controlArea in
                var part = iovec(iov_base: payload.baseAddress, iov_len: payload.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var result = 0
                    repeat {
                        var message = msghdr()
                        message.msg_iov = part
                        message.msg_iovlen = 1
                        message.msg_control = controlBytes == 0 ? nil : controlArea.baseAddress
                        message.msg_controllen = controlBytes
                        result = body(&message)
                    } while result < 0 && errno == EINTR
                    return result
                }
            }
        }
        return (result, words)
    }
}

/// CMSG_FIRSTHDR: the first control message of `message`, nil if it has no room for one.
private func firstControl(_ message: inout msghdr) -> UnsafeMutablePointer<cmsghdr>? {
    shim_CMSG_FIRSTHDR(&message)?.assumingMemoryBound(to: cmsghdr.self)
}
