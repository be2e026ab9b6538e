import Foundation

/// One of Tests/Vectors: a structure of the format, whole or damaged, and the verdict that a reader must come to.
public struct Vector: Sendable, CustomStringConvertible {
    public private(set) var name = ""
    public private(set) var bytes: [UInt8] = []
    private var inputs: [String: String] = [:]
    private var expectations: [String: String] = [:]

    public var description: String { name }
    /// `valid`, `damaged` or `version N`.
    public var verdict: String { inputs["verdict"] ?? "" }

    /// Bytes that are given beside the structure, as a key; nil where there are none.
    public func input(_ name: String) -> [UInt8]? { inputs[name].map(Self.bytes) }
    public func number(_ name: String) -> UInt64? { inputs[name].flatMap { UInt64($0) } }
    /// The value of a field of a valid structure, as the file writes it; nil if the vector has none.
    public func expected(_ name: String) -> String? { expectations[name] }

    /// All of a structure, from `Tests/Vectors/NAME.txt`.
    public static func all(_ structure: String) -> [Vector] {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/\(structure).txt").path
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        var vectors: [Vector] = []
        for block in text.components(separatedBy: "\n\n") {
            var vector = Vector()
            for line in block.split(separator: "\n") where !line.hasPrefix("#") {
                vector.take(line, from: vectors)
            }
            if !vector.name.isEmpty { vectors.append(vector) }
        }
        return vectors
    }

    private mutating func take(_ line: Substring, from earlier: [Vector]) {
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        let key = String(line[..<colon])
        let value = String(line[colon...].dropFirst().drop { $0 == " " })
        switch key {
        case "vector": name = value
        case "bytes": bytes = Self.bytes(value)
        case "from":
            guard let origin = earlier.first(where: { $0.name == value }) else { return }
            (bytes, inputs) = (origin.bytes, origin.inputs)
        case "cut": bytes = Array(bytes.prefix(Int(value) ?? 0))
        case "set":
            let end = value.firstIndex(of: " ") ?? value.endIndex
            guard let offset = Int(value[..<end]) else { return }
            let changed = Self.bytes(String(value[end...]))
            bytes = Array(bytes.prefix(offset)) + changed + Array(bytes.dropFirst(offset + changed.count))
        default:
            if key.hasPrefix("= ") {
                expectations[String(key.dropFirst(2))] = value
            } else {
                inputs[key] = value
            }
        }
    }

    /// Hexadecimal; `HH*N` is that byte N times.
    public static func bytes(_ text: String) -> [UInt8] {
        text.split(separator: " ").flatMap { token -> [UInt8] in
            let parts = token.split(separator: "*")
            let digits = Array(parts[0])
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(digits[$0...$0 + 1]), radix: 16)
            }
            let count = parts.count > 1 ? Int(parts[1]) ?? 0 : 1
            return count == 1 ? bytes : [UInt8](repeating: bytes.first ?? 0, count: count)
        }
    }

    public static func text(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
