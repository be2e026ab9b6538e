internal import CMicroHTTPD
internal import Glibc
internal import ReceiveProtocol

/// HTTP statuses used by both processes.
enum HTTPStatus {
    /// The parent takes the upload. Never sent to a client.
    static let go: UInt16 = 200
    static let created: UInt16 = 201
    static let noContent: UInt16 = 204
    static let invalid: UInt16 = 400
    static let unauthorized: UInt16 = 401
    static let forbidden: UInt16 = 403
    static let missing: UInt16 = 404
    static let unsupported: UInt16 = 415
    static let busy: UInt16 = 503
}

/// A response to a client.
struct Response {
    private var answer: Answer
    private var headers: [(String, String)] = []

    init(_ answer: Answer) { self.answer = answer }

    init(page: [UInt8], policy: String) {
        answer = Answer(.text, page)
        headers = [
            ("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy),
            ("Permissions-Policy", "screen-wake-lock=(self)"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ]
    }

    /// Gives a device its cookie.
    static func joined(_ secret: [UInt8]) -> Response {
        var response = Response(Answer(HTTPStatus.noContent))
        let value = "\(Devices.cookieName)=\(SecretText.text(secret))"
        // Kept for a day: a phone that ends its browser in the background goes on without another code. The server
        // forgets it earlier.
        response.headers = [
            ("Set-Cookie", "\(value); Path=/; Max-Age=86400; Secure; HttpOnly; SameSite=Strict")
        ]
        return response
    }

    /// Class 1 of WebDAV (RFC 4918, 18.1), in part.
    static var options: Response {
        var response = Response(Answer(HTTPStatus.noContent))
        response.headers = [("DAV", "1"), ("Allow", "OPTIONS, PROPFIND, HEAD, PUT, MKCOL")]
        return response
    }

    static var unauthorized: Response {
        var response = Response(Answer(HTTPStatus.unauthorized))
        response.headers = [("WWW-Authenticate", "Basic realm=\"Obscura\", charset=\"UTF-8\"")]
        return response
    }

    private var contentType: String? {
        switch answer.kind {
        case .none, .text: nil
        case .json: "application/json"
        case .jpeg: "image/jpeg"
        case .xml: "application/xml; charset=utf-8"
        }
    }

    /// Queues it with the headers of every response.
    func queue(on connection: OpaquePointer) -> MHD_Result {
        var body = answer.body
        let made: OpaquePointer?
        if let size = answer.size {
            // The answer to HEAD: a size, and no bytes. This callback is never called.
            made = MHD_create_response_from_callback(size, 1024, { _, _, _, _ in -1 }, nil, nil)
        } else {
            made = MHD_create_response_from_buffer(
                body.count, &body, MHD_ResponseMemoryMode.RESPMEM_MUST_COPY)
        }
        guard let response = made else { return .NO }
        defer { MHD_destroy_response(response) }
        var headers =
            headers + [
                ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
            ]
        // The next bytes may still belong to this request, whose end is not known (RFC 9112, 6.3).
        if answer.status == HTTPStatus.invalid { headers.append(("Connection", "close")) }
        if let contentType { headers.append(("Content-Type", contentType)) }
        if let offset = answer.offset { headers.append(("Upload-Offset", "\(offset)")) }
        for (name, value) in headers { MHD_add_response_header(response, name, value) }
        return MHD_queue_response(connection, UInt32(answer.status), response)
    }
}
