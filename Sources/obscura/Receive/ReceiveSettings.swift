import FileRequests
import LinuxIO
import Receiving

/// The settings of `obscura receive`.
struct ReceiveSettings {
    var directory: String
    /// Below `albums`.
    var album: [Name]
    var address: ListeningAddress
    /// Nil: it never ends by itself.
    var idleSeconds: Int?
    var pictureFile: String?
    var offersWebDAV: Bool

    static let idleSecondsDefault = 600

    init(_ arguments: Arguments) throws(Failure) {
        directory = realPath(arguments.operands[0])
        guard let text = arguments[.album] else {
            throw Failure(
                .usage, "--album", "missing: name the album that photos go into, such as --album Phone")
        }
        album = try albumNames(text)
        address = try onReceiving { () throws(ReceiveError) in try ListeningAddress(arguments[.listen]) }
        pictureFile = arguments[.qr]
        offersWebDAV = arguments.has(.webdav)
        idleSeconds = Self.idleSecondsDefault
        if let text = arguments[.idle] {
            let seconds = parseDuration(text).map { Int($0) }
            guard seconds != nil || text == "off" else {
                throw Failure(.usage, "--idle \(text)", "not a time: give one such as 10m, or off")
            }
            idleSeconds = seconds
        }
    }
}
