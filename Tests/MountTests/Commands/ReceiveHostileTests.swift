import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// *Commands* of the contract: hostile clients of `obscura receive`, with the least limits.
@Suite("Commands: receive, hostile clients", .serialized, .waiting) struct ReceiveHostileTests {
    private let receiving: ReceivingPlace
    private var place: Place { receiving.place }

    init() throws {
        receiving = try ReceivingPlace(isLeast: true)
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
    }

    private func send(_ words: String...) throws -> String { try receiving.status(["-b", "jar"] + words) }

    /// Connections that say nothing, or only begin a handshake. They are closed with the array's last user.
    private func connect(_ count: Int) throws -> [Int32] {
        let port = try #require(UInt16(receiving.address.split(separator: ":").last?.dropLast() ?? ""))
        return try (0..<count).map { index in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(result == 0)
            if index.isMultiple(of: 2) { _ = Glibc.send(descriptor, [0x16, 3, 1], 3, Int32(MSG_NOSIGNAL)) }
            return descriptor
        }
    }

    @Test func `strangers that hold connections keep no device out`() throws {
        let held = try connect(40)
        defer { for descriptor in held { close(descriptor) } }
        #expect(try send("-T", "source/a.jpg", receiving.address + "photo/a.jpg") == "201")
        #expect(try receiving.status("") == "200")
    }

    @Test func `strangers in the middle of a handshake occupy no processor`() throws {
        let held = try connect(8)
        defer { for descriptor in held { close(descriptor) } }
        let server = try #require(receiving.server)
        func number(_ label: String) throws -> Int {
            let status = String(decoding: contents(ofFile: "/proc/\(server)/status") ?? [], as: UTF8.self)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(label) })
            return try #require(Int(line.filter(\.isNumber)))
        }
        func ticks() throws -> Int {
            let fields = String(decoding: contents(ofFile: "/proc/\(server)/stat") ?? [], as: UTF8.self)
                .split(separator: " ")
            return try #require(Int(fields[13])) + #require(Int(fields[14]))
        }
        // One that came after them is served: so they are known.
        #expect(try receiving.status("") == "200")
        let (ticksBefore, sleepsBefore) = (try ticks(), try number("voluntary_ctxt_switches"))
        // A server that turns to them again at once never sleeps.
        #expect(try eventually { try number("voluntary_ctxt_switches") >= sleepsBefore + 20 })
        // Hundredths of a second.
        #expect(try ticks() - ticksBefore < 10)
        // All the while they were there.
        var byte: UInt8 = 0
        #expect(held.contains { recv($0, &byte, 1, Int32(MSG_DONTWAIT)) == -1 && errno == EAGAIN })
    }

    @Test func `a client that promises more than it sends leaves no photo`() throws {
        let total = Photo().bytes.count
        let range = "Content-Range: bytes 0-\(total + 99)/\(total + 100)"
        _ = try send(
            "--max-time", "2", "-T", "source/a.jpg", "-H", "Content-Length: \(total + 100)", "-H", range,
            receiving.address + "photo/a.jpg")
        for wrong in ["bytes 5-4/9", "bytes 0-5/3", "x", "bytes 0-\(UInt64.max)/*", "bytes 0-\(total - 1)/*"]
        {
            let words = [
                "-T", "source/a.jpg", "-H", "Content-Range: \(wrong)", receiving.address + "photo/a.jpg",
            ]
            #expect(try send(words[0], words[1], words[2], words[3], words[4]) == "400", "\(wrong)")
        }
        #expect(try !place.files(receiving.received).contains("a.jpg"))
        #expect(try place.shown().isEmpty)
        #expect(try send("-T", "source/a.jpg", receiving.address + "photo/b.jpg") == "201")
    }

    @Test func `a length beside chunks, and an unknown encoding, are refused`() throws {
        let address = receiving.address + "photo/a.jpg"
        func sent(_ encoding: String, _ length: String) throws -> String {
            try send(
                "-T", "source/a.jpg", "-H", "Transfer-Encoding: \(encoding)", "-H",
                "Content-Length:\(length)", address)
        }
        for encoding in ["chunked", "gzip, chunked", "x"] {
            #expect(try sent(encoding, " 5") == "400", "\(encoding)")
        }
        #expect(try sent("gzip", "") == "400")
        #expect(try place.files(receiving.received).isEmpty)
        #expect(try sent("chunked", "") == "201")
        #expect(try place.bytes(receiving.received + "/a.jpg") == Photo().bytes)
        // Nor for any other request.
        let chunked = "Transfer-Encoding: chunked"
        for (method, path) in [("POST", "known"), ("POST", "join"), ("GET", "state"), ("GET", "")] {
            let address = receiving.address + path
            let status = try send(
                "-X", method, "--data-binary", "@source/a.jpg", "-H", chunked, "-H", "Content-Length: 5",
                address)
            #expect(status == "400", "\(path)")
        }
        #expect(
            try send("-X", "POST", "--data-binary", "", "-H", chunked, receiving.address + "known") != "400")
    }

    @Test func `headers that contradict each other, or hide behind a space, are refused`() throws {
        let bytes = Photo().bytes
        let (half, total) = (bytes.count / 2, bytes.count)
        func sent(_ first: String, _ second: String) throws -> String {
            try send("-T", "source/a.jpg", "-H", first, "-H", second, receiving.address + "photo/a.jpg")
        }
        #expect(try sent("Content-Length: \(half)", "Content-Length: \(total)") == "400")
        #expect(try sent("Content-Length: \(total)", "Transfer-Encoding : chunked") == "400")
        let ranges = [0, 1].map { "Content-Range: bytes \($0)-\(total - 1 + $0)/\(total + 1)" }
        #expect(try sent(ranges[0], ranges[1]) == "400")
        #expect(try place.files(receiving.received).isEmpty)
        #expect(try sent("Content-Length: \(total)", "X-Other: 1") == "201")
    }

    @Test func `a connection may have a window that is larger than a stranger's buffer`() throws {
        let held = try connect(1)
        defer { close(held[0]) }
        var info = [UInt8](repeating: 0, count: 104)
        var count = socklen_t(info.count)
        #expect(getsockopt(held[0], Int32(IPPROTO_TCP), TCP_INFO, &info, &count) == 0)
        // `tcpi_snd_wscale` of linux/tcp.h: the server has announced by how many bits its window is shifted.
        #expect((65_535 << Int(info[6] & 15)) >= 1 << 20)
    }

    @Test func `a file larger than the space is refused before it comes`() throws {
        let size = UInt64(1) << 50
        #expect(
            try send(
                "-T", "source/a.jpg", "-H", "Content-Length: \(size)", receiving.address + "photo/a.jpg")
                == "507")
    }

    @Test func `names that lead elsewhere, are empty or too long are mended`() throws {
        let names = [
            "..%2F..%2Fx.jpg", "a%00b.jpg", String(repeating: "n", count: 1000) + ".jpg", "%2e%2e", "",
        ]
        for name in names {
            let status = try send(
                "-T", "source/a.jpg", receiving.address + "photo/" + (name.isEmpty ? "%20" : name))
            #expect(["200", "201"].contains(status), "\(name)")
        }
        #expect(try place.files(receiving.received).count == names.count - 1)
        #expect(try place.shown().count == 1)
    }

    @Test func `both processes together keep less than 32 MB of their own`() throws {
        let held = try connect(40)
        defer { for descriptor in held { close(descriptor) } }
        try place.source("big", [UInt8](repeating: 7, count: 20 << 20))
        #expect(try send("-T", "source/big", receiving.address + "photo/big") == "201")
        let kibibytes = try [receiving.process, try #require(receiving.server)].map { process in
            let status = String(decoding: contents(ofFile: "/proc/\(process)/status") ?? [], as: UTF8.self)
            // With the memory that both share.
            let lines = status.split(separator: "\n").filter {
                $0.hasPrefix("RssAnon:") || $0.hasPrefix("RssShmem:")
            }
            try #require(lines.count == 2)
            return lines.reduce(0) { $0 + (Int($1.filter(\.isNumber)) ?? 0) }
        }
        #expect(kibibytes.reduce(0, +) < 32_000, "\(kibibytes)")
    }

    @Test func `a server that dies ends the session with an error`() throws {
        kill(try #require(receiving.server), SIGKILL)
        let ended = try receiving.finish()
        #expect(ended.status == 1 && ended.errors.contains("obscura-receiver: it ended"), "\(ended.errors)")
    }
}
