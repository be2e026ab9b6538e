import CBrotli
import Encodings

/// Words of Brotli's dictionary (RFC 7932, appendix A) and their transforms (appendix B).
///
/// The 122,784 bytes of words are libbrotlicommon's, which every program has in memory that shows text. They are
/// constant data: no byte of a photo is passed to the library.
struct BrotliWords {
    private let words: [UInt8]

    /// Nil if the library's words are not those of RFC 7932.
    static let standard = BrotliWords()

    private init?() {
        guard let found = BrotliGetDictionary(), found.pointee.data_size == BrotliWords.bytesCount,
            let data = found.pointee.data
        else { return nil }
        words = Array(UnsafeBufferPointer(start: data, count: BrotliWords.bytesCount))
        guard crc32(words) == BrotliWords.wordsChecksum else { return nil }
    }

    /// The word that a distance beyond all output refers to; nil if there is none.
    ///
    /// - Parameters:
    ///   - length: the length of the word before its transform.
    ///   - number: the distance less the largest of output.
    func word(length: Int, number: Int) -> [UInt8]? {
        guard (BrotliWords.lengthMin...BrotliWords.lengthMax).contains(length) else { return nil }
        let bits = BrotliWords.indexBits[length]
        let transform = number >> bits
        guard transform < BrotliWords.transforms.count / 3 else { return nil }
        var start = (number & ((1 << bits) - 1)) * length
        for shorter in BrotliWords.lengthMin..<length { start += shorter << BrotliWords.indexBits[shorter] }
        return BrotliWords.transformed(words[start..<start + length], by: transform)
    }

    private static func transformed(_ word: ArraySlice<UInt8>, by number: Int) -> [UInt8] {
        let (prefix, kind, suffix) = (
            Int(transforms[3 * number]), Int(transforms[3 * number + 1]), Int(transforms[3 * number + 2])
        )
        var text = Array(word)
        switch kind {
        case 1...9: text.removeLast(min(kind, text.count))
        case 10: _ = fermented(&text, at: 0)
        case 11:
            var index = 0
            while index < text.count { index += fermented(&text, at: index) }
        case 12...: text.removeFirst(min(kind - 11, text.count))
        default: break
        }
        return Array(affixes[prefix].utf8) + text + Array(affixes[suffix].utf8)
    }

    /// Turns a character into upper case, in the rough way of section 8. Returns its length in bytes.
    private static func fermented(_ text: inout [UInt8], at index: Int) -> Int {
        switch text[index] {
        case ..<0xC0:
            if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(text[index]) { text[index] ^= 0x20 }
            return 1
        case ..<0xE0:
            if index + 1 < text.count { text[index + 1] ^= 0x20 }
            return 2
        default:
            if index + 2 < text.count { text[index + 2] ^= 0x05 }
            return 3
        }
    }

    private static let bytesCount = 122_784
    /// CRC-32, from appendix A.
    private static let wordsChecksum: UInt32 = 0x5136_CB04
    private static let lengthMin = 4
    private static let lengthMax = 24
    /// Bits of a word's index, by the word's length.
    private static let indexBits = [
        0, 0, 0, 0, 10, 10, 11, 11, 10, 10, 10, 10, 10, 9, 9, 8, 7, 7, 8, 7, 7, 6, 6, 5, 5,
    ]

    /// Prefixes and suffixes of transforms.
    private static let affixes = [
        " ", ", ", " of the ", " of ", "s ", ".", " and ", " in ", "\"", " to ", "\">", "\n", ". ", "]",
        " for ", " a ", " that ", "'", " with ", " from ", " by ", "(", ". The ", " on ", " as ", " is ",
        "ing ", "\n\t", ":", "ed ", "=\"", " at ", "ly ", ",", "='", ".com/", ". This ", " not ", "er ",
        "al ", "ful ", "ive ", "less ", "est ", "ize ", "\u{A0}", "ous ", " the ", "e ", "",
    ]

    /// Three numbers of each transform: the affix before; 0 for the word itself, 1 to 9 for as many bytes dropped at
    /// the end, 10 for a capital, 11 for capitals, 12 to 20 for 1 to 9 bytes dropped at the beginning;
    /// the affix behind.
    private static let transforms: [UInt8] = [
        49, 0, 49, 49, 0, 0, 0, 0, 0, 49, 12, 49, 49, 10, 0, 49, 0, 47, 0, 0, 49, 4, 0, 0, 49, 0, 3, 49, 10,
        49, 49, 0, 6, 49, 13, 49, 49, 1, 49, 1, 0, 0, 49, 0, 1, 0, 10, 0, 49, 0, 7, 49, 0, 9, 48, 0, 0, 49, 0,
        8, 49, 0, 5, 49, 0, 10, 49, 0, 11, 49, 3, 49, 49, 0, 13, 49, 0, 14, 49, 14, 49, 49, 2, 49, 49, 0, 15,
        49, 0, 16, 0, 10, 49, 49, 0, 12, 5, 0, 49, 0, 0, 1, 49, 15, 49, 49, 0, 18, 49, 0, 17, 49, 0, 19, 49,
        0, 20, 49, 16, 49, 49, 17, 49, 47, 0, 49, 49, 4, 49, 49, 0, 22, 49, 11, 49, 49, 0, 23, 49, 0, 24, 49,
        0, 25, 49, 7, 49, 49, 1, 26, 49, 0, 27, 49, 0, 28, 0, 0, 12, 49, 0, 29, 49, 20, 49, 49, 18, 49, 49, 6,
        49, 49, 0, 21, 49, 10, 1, 49, 8, 49, 49, 0, 31, 49, 0, 32, 47, 0, 3, 49, 5, 49, 49, 9, 49, 0, 10, 1,
        49, 10, 8, 5, 0, 21, 49, 11, 0, 49, 10, 10, 49, 0, 30, 0, 0, 5, 35, 0, 49, 47, 0, 2, 49, 10, 17, 49,
        0, 36, 49, 0, 33, 5, 0, 0, 49, 10, 21, 49, 10, 5, 49, 0, 37, 0, 0, 30, 49, 0, 38, 0, 11, 0, 49, 0, 39,
        0, 11, 49, 49, 0, 34, 49, 11, 8, 49, 10, 12, 0, 0, 21, 49, 0, 40, 0, 10, 12, 49, 0, 41, 49, 0, 42, 49,
        11, 17, 49, 0, 43, 0, 10, 5, 49, 11, 10, 0, 0, 34, 49, 10, 33, 49, 0, 44, 49, 11, 5, 45, 0, 49, 0, 0,
        33, 49, 10, 30, 49, 11, 30, 49, 0, 46, 49, 11, 1, 49, 10, 34, 0, 10, 33, 0, 11, 30, 0, 11, 1, 49, 11,
        33, 49, 11, 21, 49, 11, 12, 0, 11, 5, 49, 11, 34, 0, 11, 12, 0, 10, 30, 0, 11, 34, 0, 10, 34,
    ]
}

/// The context of a literal (section 7.1), from the two bytes before it.
enum BrotliContext: Int {
    case low6, high6, utf8, signed

    /// 0 to 63.
    func number(last: UInt8, beforeLast: UInt8) -> Int {
        switch self {
        case .low6: Int(last & 0x3F)
        case .high6: Int(last >> 2)
        case .utf8: Self.last(last) | Self.beforeLast(beforeLast)
        case .signed: Self.magnitude(last) << 3 | Self.magnitude(beforeLast)
        }
    }

    private static func last(_ byte: UInt8) -> Int {
        byte < 0x80 ? Int(letters[Int(byte)]) : Int(byte >> 6 & 1) << 1 | Int(byte & 1)
    }

    private static func beforeLast(_ byte: UInt8) -> Int {
        switch byte {
        case 0...0x20, 0x7F...0xDF: 0
        case 0x61...0x7A: 3
        case 0x30...0x39, 0x41...0x5A, 0xE0...: 2
        default: 1
        }
    }

    private static func magnitude(_ byte: UInt8) -> Int {
        switch byte {
        case 0: 0
        case 1...15: 1
        case 16...63: 2
        case 64...127: 3
        case 128...191: 4
        case 192...239: 5
        case 240...254: 6
        default: 7
        }
    }

    private static let letters: [UInt8] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 12,
        16, 12, 12, 20, 12, 16, 24, 28, 12, 12, 32, 12, 36, 12, 44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 32,
        32, 24, 40, 28, 12, 12, 48, 52, 52, 52, 48, 52, 52, 52, 48, 52, 52, 52, 52, 52, 48, 52, 52, 52, 52,
        52, 48, 52, 52, 52, 52, 52, 24, 12, 28, 12, 12, 12, 56, 60, 60, 60, 56, 60, 60, 60, 56, 60, 60, 60,
        60, 60, 56, 60, 60, 60, 60, 60, 56, 60, 60, 60, 60, 60, 24, 12, 28, 12, 0,
    ]
}
