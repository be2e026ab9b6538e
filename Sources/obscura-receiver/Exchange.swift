internal import ReceiveProtocol

/// A request of a client, from its headers to its response. libmicrohttpd calls for it again and again: `state` says
/// what was done before.
final class Exchange {
    enum State {
        /// Nothing was done yet.
        case new
        /// The body is collected; then `route` says what it is for.
        case collecting([UInt8])
        /// The parent has been told of an upload and says whether it takes it.
        case starting
        /// It does. The next call is for the headers still.
        case accepted
        case receiving
        /// The body is read and dropped, then comes the answer: a browser that still sends would not read it.
        case draining(Answer)
        /// The parent has been asked, or told of the upload's end.
        case waiting
        case answered(Answer)
        /// A response is queued.
        case done
    }

    let id: RequestID
    let connection: OpaquePointer
    var route = Route.missing
    var state = State.new
    /// The parent knows of an upload that has not ended.
    var isUpload = false
    /// Bytes of an upload that the parent was not told of yet.
    var piece: PieceMemory.Piece?
    /// The body of a refused upload is being read.
    var isBodyRead = false
    /// The device of an upload; empty for WebDAV.
    var owner: [UInt8] = []

    /// Bytes of a body that is collected before the request is acted on.
    var bodyBytesMax: Int {
        switch route {
        case .known: PacketLimits.bodyBytes
        case .join: 256
        // PROPFIND says there which properties it wants: it gets those that there are.
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
    /// WebDAV without the password, or with a wrong one.
    case unauthorized
    /// A device or an app asks for what this server never does.
    case forbidden
    case invalid
    /// Everything for strangers, and what does not exist.
    case missing
}
