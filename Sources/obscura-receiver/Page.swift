internal import Encodings
internal import Glibc
internal import ReceiveProtocol

/// The page: one file of HTML, CSS and JavaScript without outside resources, put together from those in `Page`.
struct Page {
    /// Placeholders of the parts that differ each time.
    private let parts: [[UInt8]]

    /// - Parameter words: of the certificate's fingerprint.
    init(words: String) {
        // Comments and indentation stay in the sources: the page has a limit of 40,000 bytes.
        let scripts = PackageResources.languages_js + PackageResources.media_js + PackageResources.page_js
        let script = String(decoding: scripts, as: UTF8.self).split(separator: "\n")
            .map { $0.drop { $0 == " " } }.filter { !$0.hasPrefix("//") }.joined(separator: "\n")
        let text = String(decoding: PackageResources.page_html, as: UTF8.self)
            .replacing("@WORDS@", with: words)
            .replacing("@STYLE@", with: String(decoding: PackageResources.page_css, as: UTF8.self))
            .replacing("@SCRIPT@", with: script)
        parts = text.separated(by: "@NONCE@").map { Array($0.utf8) }
    }

    /// The page under a policy that allows its own script and style, by a number used once, and no other.
    func response() -> Response {
        var random = [UInt8](repeating: 0, count: PacketLimits.secretBytes)
        guard fillRandom(&random) else { return Response(Answer(HTTPStatus.busy)) }
        let nonce = hexText(random)
        let policy =
            "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; img-src 'self' data:; "
            + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        return Response(page: Array(parts.joined(separator: nonce.utf8)), policy: policy)
    }
}

extension String {
    /// Replaces each occurrence of a text.
    fileprivate func replacing(_ mark: String, with text: String) -> String {
        separated(by: mark).joined(separator: text)
    }

    fileprivate func separated(by mark: String) -> [String] {
        var result: [String] = []
        var rest = Array(utf8)[...]
        let mark = Array(mark.utf8)
        var part: [UInt8] = []
        while let byte = rest.first {
            if byte == mark[0], rest.starts(with: mark) {
                result.append(String(decoding: part, as: UTF8.self))
                part = []
                rest = rest.dropFirst(mark.count)
            } else {
                part.append(byte)
                rest = rest.dropFirst()
            }
        }
        return result + [String(decoding: part, as: UTF8.self)]
    }
}
