internal import CMicroHTTPD
import Encodings
internal import Glibc
internal import ReceiveProtocol

/// The headers and query of a request.
struct RequestFields {
    let connection: OpaquePointer

    func header(_ name: String) -> String? { value(.HEADER_KIND, name) }
    /// All of them, in the order in which they came.
    var headers: [(name: String, value: String)] {
        var found: [(name: String, value: String)] = []
        let collect: MHD_KeyValueIterator = { context, _, name, value in
            guard let context, let name else { return .NO }
            let header = (name: String(cString: name), value: value.map { String(cString: $0) } ?? "")
            context.assumingMemoryBound(to: [(name: String, value: String)].self).pointee.append(header)
            return .YES
        }
        withUnsafeMutablePointer(to: &found) {
            _ = MHD_get_connection_values(connection, .HEADER_KIND, collect, $0)
        }
        return found
    }

    func query(_ name: String) -> String? { value(.GET_ARGUMENT_KIND, name) }

    private func value(_ kind: MHD_ValueKind, _ name: String) -> String? {
        MHD_lookup_connection_value(connection, kind, name).map { String(cString: $0) }
    }
}

extension Server {
    static let webdavPrefix = "/dav"

    /// The purpose of a request. `url` is the path as it was sent.
    func route(_ method: String, _ url: String, _ fields: RequestFields) -> Route {
        guard hasOneEnd(fields) else { return .invalid }
        let device = devices.device(withCookie: fields.header("Cookie"))
        if url == "/" { return method == "GET" || method == "HEAD" ? .page : .missing }
        if url == "/join" { return method == "POST" ? .join : .missing }
        if !password.isEmpty, url == Self.webdavPrefix || url.hasPrefix(Self.webdavPrefix + "/") {
            return webdav(method, url, fields)
        }
        guard let device else { return .missing }
        trust(fields.connection, device)
        switch (method, url) {
        case ("GET", "/state"): return .ask(.state(device: device))
        case ("POST", "/known"): return .known(device: device)
        case ("GET", _) where url.hasPrefix("/thumbnail/"):
            guard let number = decimal(url.utf8.dropFirst(11)), number <= UInt32.max else { return .missing }
            return .ask(.thumbnail(device: device, number: UInt32(number)))
        case ("PUT", _) where url.hasPrefix("/photo/"), ("HEAD", _) where url.hasPrefix("/photo/"):
            guard let name = percentDecoded(url.utf8.dropFirst(7)) else { return .invalid }
            guard var head = uploadHead(.page, [photoName(name)], fields) else { return .invalid }
            head.device = device
            return method == "PUT" ? .upload(head) : .ask(.offset(head))
        default: return .missing
        }
    }

    private func webdav(_ method: String, _ url: String, _ fields: RequestFields) -> Route {
        // The user is a constant, so user and password are compared at once.
        let sent = fields.header("Authorization").flatMap { basicCredentials($0) } ?? []
        guard isEqualInConstantTime(sent, Array("\(webdavUser):".utf8) + password) else {
            return .unauthorized
        }
        trust(fields.connection, password)
        if method == "OPTIONS" { return .options }
        guard let path = pathNames(url, below: Self.webdavPrefix) else { return .invalid }
        switch method {
        case "PUT":
            guard let head = path.isEmpty ? nil : uploadHead(.webdav, path, fields) else { return .invalid }
            return .upload(head)
        case "PROPFIND": return .ask(.properties(path, withChildren: fields.header("Depth") != "0"))
        case "HEAD": return .ask(.size(path))
        case "MKCOL": return path.isEmpty ? .forbidden : .ask(.makeDirectory(path))
        default: return .forbidden
        }
    }

    /// Whether the headers say in one way only where the body ends. A length and chunks contradict each other
    /// (RFC 9112, 6.3); no other encoding is understood.
    private func hasOneEnd(_ fields: RequestFields) -> Bool {
        guard areUnambiguous(fields.headers) else { return false }
        guard let encoding = fields.header("Transfer-Encoding") else { return true }
        return encoding.lowercased() == "chunked" && fields.header("Content-Length") == nil
    }

    /// Nil if a field is invalid.
    private func uploadHead(_ door: Door, _ path: [[UInt8]], _ fields: RequestFields) -> UploadHead? {
        var head = UploadHead(door: door, path: path)
        if let text = fields.header("Content-Length") {
            guard let length = decimal(text.utf8) else { return nil }
            head.length = length
        }
        if let text = fields.header("Content-Range") {
            guard let range = ContentRange(text), head.length == nil || head.length == range.length else {
                return nil
            }
            (head.offset, head.total, head.length) = (range.first, range.total, range.length)
        } else {
            head.total = head.length
        }
        // HEAD has no body: these identify the file.
        if let text = fields.query("size") {
            guard let size = decimal(text.utf8), head.total == nil || head.length == nil || head.total == size
            else { return nil }
            head.total = size
        }
        head.modified = fields.query("modified").flatMap { decimal($0.utf8) }
        if let time = fields.header("X-OC-Mtime").flatMap({ decimal($0.utf8) }), time < 1 << 40 {
            head.modified = time * 1000
        }
        if let text = fields.query("sample") {
            guard let sample = hexBytes(text.utf8, count: PacketLimits.digestBytes) else { return nil }
            head.sample = sample
        }
        if let text = fields.header("Content-Digest") {
            guard let digest = sha256Digest(text) else { return nil }
            head.bodyDigest = digest
        }
        if let text = fields.header("Repr-Digest") {
            guard let digest = sha256Digest(text) else { return nil }
            head.fileDigest = digest
        }
        return head
    }
}

/// The user of WebDAV: the password is the secret.
let webdavUser = "photos"
