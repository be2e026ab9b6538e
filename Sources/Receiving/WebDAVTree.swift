import Encodings
import LinuxIO
import ReceiveProtocol

/// The files and directories below the album that WebDAV clients added in this session. They are shown no
/// others.
final class WebDAVTree: @unchecked Sendable {
    private enum Node {
        case directory
        case file(UInt64)
    }

    private let limits: ReceiveLimits
    private let lock = Lock()
    private var nodes: [[[UInt8]]: Node] = [[]: .directory]

    init(_ limits: ReceiveLimits) { self.limits = limits }

    func hasDirectory(_ path: [[UInt8]]) -> Bool {
        lock.withLock {
            if case .directory = nodes[path] { return true }
            return false
        }
    }

    /// Enters a file. Returns the status for the client.
    func add(_ path: [[UInt8]], size: UInt64) -> UInt16 {
        lock.withLock {
            let isNew = nodes[path] == nil
            // Files beyond the bound are received all the same, and not listed.
            if !isNew || nodes.count < limits.addedNames { nodes[path] = .file(size) }
            return isNew ? ReceiveStatus.created : ReceiveStatus.noContent
        }
    }

    /// The files of which no byte came.
    var emptyFiles: [[[UInt8]]] {
        lock.withLock {
            nodes.compactMap { path, node in
                if case .file(0) = node { return path }
                return nil
            }
        }
    }

    /// - Parameter make: makes the directory in the space.
    func makeDirectory(_ path: [[UInt8]], make: () throws(Errno) -> OpenDirectory) -> Answer {
        if lock.withLock({ nodes[path] != nil }) { return Answer(ReceiveStatus.notAllowed) }
        guard hasDirectory(Array(path.dropLast())) else { return Answer(ReceiveStatus.conflict) }
        guard lock.withLock({ nodes.count < limits.addedNames }) else { return Answer(ReceiveStatus.noRoom) }
        do throws(Errno) { _ = try make() } catch { return Refusal(error).answer }
        lock.withLock { nodes[path] = .directory }
        return Answer(ReceiveStatus.created)
    }

    func size(_ path: [[UInt8]]) -> Answer {
        switch lock.withLock({ nodes[path] }) {
        case nil: return Answer(ReceiveStatus.missing)
        case .directory: return Answer(ReceiveStatus.done)
        case .file(let size):
            var answer = Answer(ReceiveStatus.done)
            answer.size = size
            return answer
        }
    }

    /// The answer to PROPFIND: a multistatus (RFC 4918, 13) of the directory or file, and of the names in it.
    func properties(_ path: [[UInt8]], withChildren: Bool) -> Answer {
        let found = lock.withLock { () -> [(path: [[UInt8]], node: Node)]? in
            guard let node = nodes[path] else { return nil }
            guard withChildren, case .directory = node else { return [(path, node)] }
            let children = nodes.filter { $0.key.count == path.count + 1 && $0.key.starts(with: path) }
            return [(path, node)] + children.map { ($0.key, $0.value) }
        }
        guard let found else { return Answer(ReceiveStatus.missing) }
        var text = "<?xml version=\"1.0\" encoding=\"utf-8\"?><D:multistatus xmlns:D=\"DAV:\">"
        let end = "</D:multistatus>"
        for (path, node) in found {
            let next = Self.response(path, node)
            // A client that sees a part of a long list sends some files again, which are then known.
            if text.utf8.count + next.utf8.count + end.utf8.count > PacketLimits.bodyBytes { break }
            text += next
        }
        return Answer(.xml, Array((text + end).utf8), status: ReceiveStatus.multiStatus)
    }

    private static func response(_ path: [[UInt8]], _ node: Node) -> String {
        var href = "/dav" + path.map { "/" + String(decoding: percentEncoded($0), as: UTF8.self) }.joined()
        let properties: String
        switch node {
        case .directory:
            href += "/"
            properties = "<D:resourcetype><D:collection/></D:resourcetype>"
        case .file(let size):
            properties = "<D:resourcetype/><D:getcontentlength>\(size)</D:getcontentlength>"
        }
        return "<D:response><D:href>\(href)</D:href><D:propstat><D:prop>\(properties)</D:prop>"
            + "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    }
}
