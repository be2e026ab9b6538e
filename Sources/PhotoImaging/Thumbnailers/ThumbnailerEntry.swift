/// A program that makes thumbnails, as registered by a `.thumbnailer` file (the freedesktop thumbnail managing
/// standard's format, which GNOME, Xfce and KDE read).
struct ThumbnailerEntry: Equatable, Sendable {
    /// The program that must be executable for the entry to count: a path or a name. Nil: only the entry's own.
    var requirement: String?
    /// The program, a path or a name, and its arguments. Field codes are not yet replaced.
    var words: [String]
    /// The MIME types of which it can make pictures.
    var mimeTypes: [String]

    /// The values of a command's field codes.
    struct Fields {
        /// %i, a path.
        var input: String
        /// %u, a URI.
        var uri: String
        /// %o, a path.
        var output: String
        /// %s, in pixels.
        var side: Int
    }

    /// Parses the file's text. Nil if it is not such an entry, or one that cannot be used: without a program, or
    /// without a field code for the input or for the output.
    init?(_ text: String) {
        let values = Self.values(of: text)
        guard let command = values["Exec"], let words = Self.words(of: command), words.count > 1,
            words.contains(where: { $0.contains("%i") || $0.contains("%u") }),
            words.contains(where: { $0.contains("%o") })
        else { return nil }
        self.words = words
        requirement = values["TryExec"]
        mimeTypes = (values["MimeType"] ?? "").split(separator: ";").map(String.init)
        if words[0].isEmpty || mimeTypes.isEmpty { return nil }
    }

    /// The command line that makes a picture.
    func commandLine(_ fields: Fields) -> [String] {
        words.map { word in
            var (result, isCode) = ("", false)
            for character in word {
                if isCode {
                    result += Self.value(of: character, fields)
                    isCode = false
                } else if character == "%" {
                    isCode = true
                } else {
                    result.append(character)
                }
            }
            return result
        }
    }

    private static func value(of code: Character, _ fields: Fields) -> String {
        switch code {
        case "i": fields.input
        case "u": fields.uri
        case "o": fields.output
        case "s": String(fields.side)
        case "%": "%"
        // As GNOME does: unknown codes are left out.
        default: ""
        }
    }

    /// Keys and values of the group `[Thumbnailer Entry]` (Desktop Entry Specification, "Basic format of the file").
    private static func values(of text: String) -> [String: String] {
        var values: [String: String] = [:]
        var isInGroup = false
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("[") {
                isInGroup = line.hasPrefix("[Thumbnailer Entry]")
            } else if isInGroup, !line.hasPrefix("#"), let equals = line.firstIndex(of: "=") {
                let key = trimmed(line[..<equals])
                if values[key] == nil { values[key] = unescaped(trimmed(line[line.index(after: equals)...])) }
            }
        }
        return values
    }

    private static func trimmed(_ text: Substring) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = text.drop(while: isSpace)
        return String(start.prefix((start.lastIndex { !isSpace($0) }).map { start[...$0].count } ?? 0))
    }

    /// A value of type string, whose escapes stand for one character each.
    private static func unescaped(_ value: String) -> String {
        let escapes: [Character: Character] = ["s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"]
        var (result, isEscaped) = ("", false)
        for character in value {
            if isEscaped {
                if let meant = escapes[character] {
                    result.append(meant)
                } else {
                    result += "\\" + String(character)
                }
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else {
                result.append(character)
            }
        }
        return result
    }

    /// Splits a command like a shell that knows only quotes and backslashes, which is how GNOME reads it
    /// (g_shell_parse_argv). Nil if a quote is not closed.
    static func words(of command: String) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in command {
            if isEscaped {
                // Between double quotes a backslash stands for itself, except before these (sh(1), "Double Quotes").
                if quote == "\"", !"\"\\$`".contains(character) { word = (word ?? "") + "\\" }
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if character == quote {
                quote = nil
            } else if quote == nil, character == "\"" || character == "'" {
                quote = character
                word = word ?? ""
            } else if quote == nil, character == " " || character == "\t" || character == "\n" {
                if let ended = word { words.append(ended) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if let last = word { words.append(last) }
        return quote == nil && !isEscaped ? words : nil
    }
}

extension MediaType {
    /// The names that entries may use for it: that of shared-mime-info first, then its aliases and those of older
    /// lists.
    var thumbnailerMIMETypes: [String] {
        switch self {
        case .bmp: ["image/bmp", "image/x-bmp", "image/x-MS-bmp", "image/x-ms-bmp"]
        case .psd: ["image/vnd.adobe.photoshop", "image/x-psd", "image/psd", "image/x-photoshop"]
        case .jp2: ["image/jp2", "image/jpeg2000", "image/x-jp2", "image/x-jp2-codestream"]
        case .m4v: ["video/x-m4v", "video/mp4"]
        case .threeGP: ["video/3gpp", "video/3gpp2", "video/3gp"]
        case .avi: ["video/vnd.avi", "video/x-msvideo", "video/msvideo", "video/x-avi", "video/avi"]
        case .matroska: ["video/x-matroska", "video/webm", "application/x-matroska"]
        case .mpegPS: ["video/mpeg", "video/x-mpeg"]
        case .asf: ["video/x-ms-wmv", "application/vnd.ms-asf", "video/x-ms-asf"]
        case .ogg: ["video/ogg", "video/x-theora+ogg", "video/x-ogm+ogg", "video/x-ogg"]
        case .flv: ["video/x-flv", "video/flv"]
        default: [mimeType]
        }
    }

    /// The usual extension of files of the type, for programs that go by names.
    var usualExtension: String {
        switch self {
        case .jxl: "jxl"
        case .bmp: "bmp"
        case .psd: "psd"
        case .jp2: "jp2"
        case .mp4: "mp4"
        case .mov: "mov"
        case .m4v: "m4v"
        case .threeGP: "3gp"
        case .avi: "avi"
        case .matroska: "mkv"
        case .mpegTS: "ts"
        case .mpegPS: "mpg"
        case .asf: "wmv"
        case .ogg: "ogv"
        case .flv: "flv"
        case .dv: "dv"
        default: "bin"
        }
    }
}
