import Encodings
import Glibc
import LinuxIO
import VaultCrypto

/// A conversation with a pinentry, in the Assuan protocol of GnuPG: a line is a command, or an answer to one.
final class Pinentry {
    private let path: String
    private let descriptor: Int32
    private let process: pid_t

    /// Codes of GPG errors, without their source: the user closed the window, or did not come.
    private static let endings: Set<UInt32> = [99, 62]

    /// Nil if it does not start.
    init?(_ path: String) throws(Failure) {
        self.path = path
        let ends: (ours: Int32, theirs: Int32)
        do { ends = try makeSocketPair(SOCK_STREAM, above: STDERR_FILENO) } catch {
            throw Failure(path, "making a pair of sockets", error)
        }
        defer { close(ends.theirs) }
        descriptor = ends.ours
        do {
            process = try spawn(
                [path], descriptors: [(ends.theirs, STDIN_FILENO), (ends.theirs, STDOUT_FILENO)])
        } catch {
            close(ends.ours)
            return nil
        }
    }

    deinit {
        _ = send("BYE")
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
    }

    /// - Returns: nil if it cannot show itself.
    func ask(_ prompt: String, error: String?) throws(Failure) -> SecretBytes? {
        // It greets first.
        guard case .done? = try answer() else { return nil }
        var settings = ["SETTITLE Obscura", "SETDESC \(escaped(prompt))", "SETPROMPT Password:"]
        if let error { settings.append("SETERROR \(escaped(error))") }
        for line in settings {
            guard send(line), case .done? = try answer() else { return nil }
        }
        guard send("GETPIN") else { return nil }
        switch try answer() {
        case .data(let password): return password
        // Nothing was typed.
        case .done: throw emptyPassword(path)
        case .error(let code) where Self.endings.contains(code & 0xFFFF): throw Askpass.cancelled(path)
        case .error, nil: return nil
        }
    }

    private enum Answer {
        case done
        case data(SecretBytes)
        case error(UInt32)
    }

    /// The answer to a command; nil at the end of the conversation.
    private func answer() throws(Failure) -> Answer? {
        var data: SecretBytes?
        while let line = try readPasswordLine(from: descriptor, named: path) {
            switch keyword(line) {
            // Long data takes several lines.
            case "D": data = joined(data, unescaped(line))
            case "OK": return data.map(Answer.data) ?? .done
            case "ERR":
                let number = text(line).split(separator: " ").dropFirst().first
                return .error(number.flatMap { UInt32($0) } ?? 0)
            // S lines tell of a state, comments of nothing.
            default: continue
            }
        }
        return nil
    }

    private func send(_ line: String) -> Bool {
        let bytes = Array((line + "\n").utf8)
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    // MARK: Lines

    private func keyword(_ line: SecretBytes) -> String {
        line.withUnsafeBytes {
            String(decoding: $0.prefix(4).prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        }
    }

    private func text(_ line: SecretBytes) -> String {
        line.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    private func escaped(_ text: String) -> String {
        String(
            decoding: percentEncoded(text.utf8, unescaped: unreservedMarks + Array(" /:,".utf8)),
            as: UTF8.self)
    }

    private func joined(_ first: SecretBytes?, _ second: SecretBytes) -> SecretBytes {
        guard let first else { return second }
        let whole = SecretBytes(count: first.count + second.count)
        whole.withUnsafeMutableBytes { whole in
            first.withUnsafeBytes { whole.copyMemory(from: $0) }
            second.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: whole[first.count...]).copyMemory(from: $0)
            }
        }
        return whole
    }

    /// The data of a line `D DATA`, in which %, line feed and carriage return are %XX. It never leaves locked memory.
    private func unescaped(_ line: SecretBytes) -> SecretBytes {
        let buffer = SecretBytes(count: max(1, line.count))
        var length = 0
        line.withUnsafeBytes { line in
            buffer.withUnsafeMutableBytes { bytes in
                var place = 2
                while place < line.count {
                    if line[place] == UInt8(ascii: "%"), place + 2 < line.count,
                        let high = hexValue(line[place + 1]), let low = hexValue(line[place + 2])
                    {
                        bytes[length] = high << 4 | low
                        place += 3
                    } else {
                        bytes[length] = line[place]
                        place += 1
                    }
                    length += 1
                }
            }
        }
        return buffer.withUnsafeBytes {
            SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<length]))
        }
    }
}
