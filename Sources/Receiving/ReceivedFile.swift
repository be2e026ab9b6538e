import CShims
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import ReceiveProtocol

/// The result of receiving a file completely.
struct ReceivedFile: Sendable {
    /// In its directory; it may be numbered.
    var name: Name
    /// Below the root of the space.
    var directory: [Name]
    var bytes: UInt64
    /// The same file was there already.
    var isKnown: Bool
}

extension Upload {
    /// Gives the file its time and closes it. The next step is `place`, and then to sync its directory.
    func closeFile(at now: Timestamp) throws(Refusal) {
        if let failure { throw Refusal(failure) }
        if !head.fileDigest.isEmpty, readBack() != head.fileDigest {
            directory.remove(workingName)
            throw Refusal(status: ReceiveStatus.unprocessable, offset: 0)
        }
        if let modified = believedTime(head.modified, now: now) {
            let times = [modified.timespec, modified.timespec]
            _ = futimens(descriptor, times)
        }
        do throws(Errno) { try closeFile() } catch { throw Refusal(error) }
    }

    /// Renames the file to its name, or to a numbered form of it; a file that is there already is not stored again.
    func place(in path: [Name]) throws(Refusal) -> ReceivedFile {
        func received(_ name: Name, isKnown: Bool = false) -> ReceivedFile {
            ReceivedFile(name: name, directory: path, bytes: position, isKnown: isKnown)
        }
        let wanted = Name(head.path[head.path.count - 1])
        do throws(Errno) {
            if try take(wanted) { return received(wanted) }
            // Other programs may take names at the same time.
            for _ in 0..<Self.attemptsMax {
                var known: Name?
                let name = try firstFreeName(wanted.bytes) { candidate throws(Errno) in
                    let name = Name(candidate)
                    guard let found = try? directory.status(name) else { return true }
                    if known == nil, isSame(name, found) { known = name }
                    // The name found first is the answer.
                    return known != nil
                }
                if let known {
                    directory.remove(workingName)
                    return received(known, isKnown: true)
                }
                if try take(Name(name)) { return received(Name(name)) }
            }
            throw Errno(EEXIST)
        } catch { throw Refusal(error) }
    }

    /// Gives the working file a name; false if another file has it.
    private func take(_ name: Name) throws(Errno) -> Bool {
        do throws(Errno) { try directory.rename(workingName, to: name) } catch {
            if error == .exists { return false }
            throw error
        }
        return true
    }

    private static var attemptsMax: Int { 16 }

    private func isSame(_ name: Name, _ status: stat) -> Bool {
        guard status.isRegular, status.byteCount == position else { return false }
        do throws(Errno) {
            let sources = (
                try SourceFile(directory.path(name)), try SourceFile(directory.path(workingName))
            )
            guard case .equal = compare(sources.0, sources.1, unless: { _ in false }) else { return false }
            return true
        } catch { return false }
    }
}

/// The time that a client gives for a file, in milliseconds, if it can be: phones also send 1601 and 2185.
private func believedTime(_ milliseconds: UInt64?, now: Timestamp) -> Timestamp? {
    guard let milliseconds else { return nil }
    let time = Timestamp(
        seconds: Int64(milliseconds / 1000), nanoseconds: UInt32(milliseconds % 1000) * 1_000_000)
    // 1990-01-01.
    return time.seconds >= 631_152_000 && time <= now ? time : nil
}

/// When a photo was taken, as the mount says it (`user.obscura.captured`), and where that comes from.
struct CapturedTime {
    var text: String
    var source: String

    /// Nil if the file is no photo.
    init?(_ path: HostPath) {
        guard let text = Self.attribute("user.obscura.captured", path),
            let source = Self.attribute("user.obscura.captured.source", path)
        else { return nil }
        (self.text, self.source) = (text, source)
    }

    /// By the path, because opening the file would be three requests more.
    private static func attribute(_ name: String, _ path: HostPath) -> String? {
        var value = [UInt8](repeating: 0, count: 256)
        let count = path.withCString { obscura_get_attribute_at($0, name, &value, UInt(value.count)) }
        return count < 0 ? nil : String(decoding: value[..<Int(count)], as: UTF8.self)
    }

    var day: String { String(text.prefix(10)) }

    /// The camera's local time, read as this machine's; nil if the text is not a time.
    var seconds: Int? {
        let numbers = text.split { !$0.isNumber }.prefix(6).compactMap { Int32($0) }
        guard numbers.count >= 3 else { return nil }
        var time = tm()
        (time.tm_year, time.tm_mon, time.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        if numbers.count == 6 {
            (time.tm_hour, time.tm_min, time.tm_sec) = (numbers[3], numbers[4], numbers[5])
        }
        time.tm_isdst = -1
        let seconds = mktime(&time)
        return seconds == -1 ? nil : seconds
    }
}

/// Sets the time of a photo that a client claims to have changed before it was taken to when it was taken.
func correctTime(_ path: HostPath, _ captured: CapturedTime) {
    guard captured.source != "mtime", let taken = captured.seconds, let found = try? path.status(),
        found.st_mtim.tv_sec < taken - clockDifferenceSeconds
    else { return }
    let times = [timespec(tv_sec: taken, tv_nsec: 0), timespec(tv_sec: taken, tv_nsec: 0)]
    _ = path.withCString { utimensat(AT_FDCWD, $0, times, AT_SYMLINK_NOFOLLOW) }
}

/// A camera's clock may be that of another time zone.
private let clockDifferenceSeconds = 26 * 3600
