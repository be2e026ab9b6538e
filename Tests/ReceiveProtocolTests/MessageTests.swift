import ReceiveProtocol
import TestSupport
import Testing

/// Packets between the server and the command, and names that come from clients.
@Suite("Commands: receive, packets") struct MessageTests {
    private static let head: UploadHead = {
        var head = UploadHead(door: .page, path: [Array("a.jpg".utf8)])
        head.device = [UInt8](repeating: 1, count: 16)
        (head.offset, head.length, head.total, head.modified) = (5, 6, 11, nil)
        head.sample = [UInt8](repeating: 2, count: 32)
        return head
    }()

    private static let ofServer: [ServerMessage] = [
        .ready(fingerprint: [UInt8](repeating: 7, count: 32)), .joined, .begin(1, head),
        .piece(2, 3, count: 4),
        .end(3, isComplete: false), .ask(4, .offset(head)),
        .ask(5, .known(device: head.device, body: [1])), .ask(6, .state(device: head.device)),
        .ask(7, .thumbnail(device: head.device, number: 9)), .ask(8, .properties([[65]], withChildren: true)),
        .ask(9, .size([])), .ask(10, .makeDirectory([[65], [66]])),
    ]

    private static let ofParent: [ParentMessage] = [
        .start(words: [1], password: []), .token([UInt8](repeating: 3, count: 16)),
        .answer(1, Answer(201, offset: 7)), .answer(2, Answer(.json, [1, 2])), .free(3),
    ]

    @Test func `a packet says after reading what was written, and a shortened one says nothing`() {
        for message in Self.ofServer {
            let bytes = message.bytes
            #expect(bytes.withUnsafeBytes { ServerMessage($0) } == message)
            for count in bytes.indices {
                #expect(bytes[..<count].withUnsafeBytes { ServerMessage($0) } == nil)
            }
        }
        for message in Self.ofParent {
            let bytes = message.bytes
            #expect(bytes.withUnsafeBytes { ParentMessage($0) } == message)
            for count in bytes.indices {
                #expect(bytes[..<count].withUnsafeBytes { ParentMessage($0) } == nil)
            }
        }
    }

    @Test(arguments: 1...8) func `changed packets are refused or mean something that can be written`(
        seed: UInt64
    ) {
        var random = RandomSource(seed)
        for _ in 0..<2000 {
            var bytes = Self.ofServer.randomElement(using: &random)?.bytes ?? []
            for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            guard let message = bytes.withUnsafeBytes({ ServerMessage($0) }) else { continue }
            #expect(message.bytes.withUnsafeBytes { ServerMessage($0) } == message, "seed \(seed)")
        }
    }

    @Test func `a path that leads elsewhere is no path`() {
        for name in ["", ".", "..", "a/b", "a\0b", String(repeating: "a", count: 256)] {
            let head = UploadHead(door: .webdav, path: [Array(name.utf8)])
            #expect(
                ServerMessage.begin(1, head).bytes.withUnsafeBytes { ServerMessage($0) } == nil, "\(name)")
        }
        for url in ["/dav/..", "/dav/a/../b", "/dav/%2e%2e/x", "/dav/a%2Fb", "/dav/a%00", "/dav/%", "/other"]
        {
            #expect(pathNames(url, below: "/dav") == nil, "\(url)")
        }
        #expect(
            pathNames("/dav//a/b%20c/", below: "/dav")?.map { String(decoding: $0, as: UTF8.self) } == [
                "a", "b c",
            ])
    }

    @Test func `a name of WebDAV is mended where it would forge a line or is too long`() {
        #expect(pathNames("/dav/a%0Ab/c%7f.jpg", below: "/dav") == [Array("a_b".utf8), Array("c_.jpg".utf8)])
        let long = String(repeating: "n", count: 300)
        let names = pathNames("/dav/\(long)/\(long).jpg", below: "/dav") ?? []
        #expect(
            names.map(\.count) == [255, 255] && names.last?.suffix(5).elementsEqual("n.jpg".utf8) == true)
        // Nothing of it changes.
        #expect(pathNames("/dav/.%20a~", below: "/dav") == [Array(". a~".utf8)])
    }

    @Test func `every name is mended into one that can stand in a directory`() {
        for (name, mended) in [
            ("IMG 1.jpg", "IMG 1.jpg"), ("../../etc/passwd", "passwd"), ("C:\\x\\y.jpg", "y.jpg"),
            ("", "Photo"),
            ("..", "Photo"), (".hidden.jpg", "hidden.jpg"), ("a\0b\nc.jpg", "a_b_c.jpg"), ("a.jpg~", "a.jpg"),
            ("/", "Photo"), (" ", "Photo"),
        ] {
            #expect(String(decoding: photoName(Array(name.utf8)), as: UTF8.self) == mended, "\(name)")
        }
        let long = photoName(Array((String(repeating: "ä", count: 1000) + ".jpg").utf8))
        #expect(long.count <= 255 && long.suffix(4).elementsEqual(".jpg".utf8))
        #expect(String(validating: long, as: UTF8.self) != nil)
        var random = RandomSource(1)
        for _ in 0..<5000 {
            let count = Int.random(in: 0...400, using: &random)
            let name = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            let mended = photoName(name)
            #expect(isFileName(mended) && mended.first != UInt8(ascii: "."))
        }
    }

    @Test func `a secret is read as it is written, and in no other way`() {
        let secret = (0..<16).map { UInt8($0 * 17) }
        let text = SecretText.text(secret)
        #expect(text.utf8.count == 31)
        #expect(SecretText.secret(text.utf8) == secret)
        #expect(SecretText.secret(text.uppercased().utf8.filter { $0 != UInt8(ascii: "-") }) == secret)
        for wrong in ["", text + "0", String(text.dropLast()), text.replacing("-", with: "u")] {
            #expect(SecretText.secret(wrong.utf8) == nil, "\(wrong)")
        }
    }
}
