import Glibc
import LinuxIO

/// An IPv4 or IPv6 address and a port.
package struct ListeningAddress: Equatable, Sendable {
    /// As in a URL, without brackets.
    var host: String
    /// 0: any free one.
    var port: UInt16
    /// Whether another port is as good when this one is taken.
    var isPortDefault = false

    static let portDefault: UInt16 = 8443

    /// `HOST`, `HOST:PORT` or `[HOST]:PORT`; nil: the address of the default route.
    package init(_ text: String?) throws(ReceiveError) {
        guard let text else {
            guard let host = addressOfDefaultRoute() else { throw .noRoute }
            (self.host, port, isPortDefault) = (host, Self.portDefault, true)
            return
        }
        var host = Substring(text)
        var port: UInt64? = UInt64(Self.portDefault)
        isPortDefault = true
        let isBare = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        if !isBare, let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
            port = Quantity(digits: text[text.index(after: colon)...], in: 0...65_535)?.value
            host = text[..<colon]
            isPortDefault = false
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard let port else { throw .invalidAddress(text) }
        (self.host, self.port) = (String(host), UInt16(port))
    }

    /// `192.168.1.20:8443`
    package var text: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    /// A socket that listens here; sets `port` to the real one.
    package mutating func listen() throws(ReceiveError) -> Int32 {
        if let reason = reasonAgainst { throw refusal(reason) }
        do throws(Errno) { return try bind() } catch {
            guard isPortDefault, error.rawValue == EADDRINUSE else {
                let isTaken = error.rawValue == EADDRINUSE
                throw refusal("\(error)" + (isTaken ? ", so choose a free port" : ""))
            }
        }
        port = 0
        do throws(Errno) { return try bind() } catch { throw .system(what: text, doing: "listening", error) }
    }

    private func refusal(_ reason: String) -> ReceiveError {
        .unusableAddress(self, reason: reason, own: ownAddresses())
    }

    /// Why no phone could open a page here by a link; nil if one can.
    private var reasonAgainst: String? {
        guard let list = resolve() else { return "not an address in numbers" }
        defer { freeaddrinfo(list) }
        let raw = UnsafeRawBufferPointer(start: list.pointee.ai_addr, count: Int(list.pointee.ai_addrlen))
        let bytes = addressBytes(raw)
        if bytes.allSatisfy({ $0 == 0 }) { return "it stands for all addresses, and a link needs one" }
        if isLinkLocal(bytes) { return "browsers open no link-local address" }
        return nil
    }

    /// The caller frees the list. Nil for what is no address in numbers.
    private func resolve() -> UnsafeMutablePointer<addrinfo>? {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        return getaddrinfo(host, "\(port)", &hints, &list) == 0 ? list : nil
    }

    private mutating func bind() throws(Errno) -> Int32 {
        guard let list = resolve() else { throw Errno(EADDRNOTAVAIL) }
        defer { freeaddrinfo(list) }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(list.pointee.ai_family, type, 0)
        if descriptor < 0 { throw .last }
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        // No receive buffer is set here: a connection that inherits a small one never has a larger window than that.
        guard Glibc.bind(descriptor, list.pointee.ai_addr, list.pointee.ai_addrlen) == 0,
            Glibc.listen(descriptor, 64) == 0
        else {
            let error = Errno.last
            close(descriptor)
            throw error
        }
        port = localPort(of: descriptor)
        return descriptor
    }
}

private func localPort(of descriptor: Int32) -> UInt16 {
    withLocalAddress(of: descriptor) { raw in
        // sin_port and sin6_port are at the same place.
        UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    } ?? 0
}

private func withLocalAddress<R>(of descriptor: Int32, _ body: (UnsafeRawBufferPointer) -> R?) -> R? {
    var address = sockaddr_storage()
    var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &count) }
    }
    return result == 0 ? withUnsafeBytes(of: &address, body) : nil
}

/// The address from which this machine would reach others. Nothing is sent: a datagram socket only chooses its route.
private func addressOfDefaultRoute() -> String? {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { return nil }
    defer { close(descriptor) }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = UInt16(9).bigEndian
    // TEST-NET-1 (RFC 5737): nobody has it.
    target.sin_addr.s_addr = UInt32(0xC000_0201).bigEndian
    let result = withUnsafePointer(to: &target) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard result == 0 else { return nil }
    return withLocalAddress(of: descriptor) { raw in
        raw[4..<8].map { "\($0)" }.joined(separator: ".")
    }
}

/// The bytes of a socket address's address: 4 or 16.
private func addressBytes(_ raw: UnsafeRawBufferPointer) -> [UInt8] {
    let family = raw.loadUnaligned(as: sa_family_t.self)
    // sin_addr, sin6_addr.
    return Array(Int32(family) == AF_INET6 ? raw[8..<24] : raw[4..<8])
}

/// fe80::/10: it is an address only together with an interface.
private func isLinkLocal(_ bytes: [UInt8]) -> Bool {
    bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
}

/// The addresses of this machine that a link can hold, those of networks first.
private func ownAddresses() -> [String] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var (found, ofLoopback): ([String], [String]) = ([], [])
    var next = first
    while let entry = next?.pointee {
        next = entry.ifa_next
        guard let address = entry.ifa_addr, [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
        else { continue }
        let isIPv6 = Int32(address.pointee.sa_family) == AF_INET6
        let count = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
        if isLinkLocal(addressBytes(UnsafeRawBufferPointer(start: address, count: count))) { continue }
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let size = socklen_t(text.count)
        guard getnameinfo(address, socklen_t(count), &text, size, nil, 0, NI_NUMERICHOST) == 0 else {
            continue
        }
        let host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if entry.ifa_flags & UInt32(IFF_LOOPBACK) != 0 {
            ofLoopback.append(host)
        } else {
            found.append(host)
        }
    }
    return found + ofLoopback
}
