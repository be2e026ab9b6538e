internal import ReceiveProtocol

/// A client's request, from its headers to its response. libmicrohttpd calls back several times for each: `state` is
/// the progress so far.
final class Exchange {
    enum State {
        /// The headers were not looked at yet.
        case new
        /// The body is being collected for `route`.
        case collecting([UInt8])
        /// The parent decides whether to accept the upload.
        case starting
        /// The parent accepted it. The next callback is still that of the headers.
        case accepted
        case receiving
        /// The body is read and discarded before the response: a browser does not read a response while it sends.
        case draining(Answer)
        /// Waiting for the parent's answer to a question, or to the upload's end.
        case waiting
        case answered(Answer)
        /// A response is queued.
        case done
    }

    let id: RequestID
    let connection: OpaquePointer
    var route = Route.missing
    var state = State.new
    /// The parent has an unfinished upload of this request.
    var isUpload = false
    /// Bytes of an upload that the parent was not told of yet.
    var piece: PieceMemory.Piece?
    /// The body of a refused upload is being read.
    var isBodyRead = false
    /// The device of an upload; empty for WebDAV.
    var owner: [UInt8] = []

    /// The body, of a request that needs all of it first.
    var bodyBytesMax: Int {
        switch route {
        case .known: PacketLimits.bodyBytes
        case .join: 256
        // The body of PROPFIND lists the wanted properties; the response has all that exist.
        case .ask(.properties): 8192
        default: 0
        }
    }

    init(_ id: RequestID, _ connection: OpaquePointer) {
        (self.id, self.connection) = (id, connection)
    }
}

/// The purpose of a request.
enum Route {
    case page
    case join
    case known(device: [UInt8])
    case ask(Question)
    case upload(UploadHead)
    /// OPTIONS of WebDAV.
    case options
    /// WebDAV with no or a wrong password.
    case unauthorized
    /// A method or path, of a device or app, that this server does not support.
    case forbidden
    case invalid
    /// Any request of a stranger, or a missing path.
    case missing
}
