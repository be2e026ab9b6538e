internal import CShims
public import Glibc

/// A pipe with close-on-exec ends: a program started meanwhile does not inherit them.
///
/// - Parameters:
///   - lowest: both ends have higher numbers, so that a child which gets one under a number up to this loses no other.
///   - isBlocking: whether reads from the empty pipe and writes to the full one wait.
public func makePipe(
    above lowest: Int32 = -1, isBlocking: Bool = true
) throws(Errno) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard obscura_make_pipe(&ends) == 0 else { throw .last }
    let (read, write) = try raised(ends, above: lowest)
    if !isBlocking { for end in [read, write] { _ = fcntl(end, F_SETFL, O_NONBLOCK) } }
    return (read, write)
}

/// A pair of connected Unix sockets with close-on-exec ends. `lowest` as in `makePipe`.
public func makeSocketPair(
    _ type: __socket_type, above lowest: Int32 = -1
) throws(Errno) -> (ours: Int32, theirs: Int32) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
        throw .last
    }
    return try raised(ends, above: lowest)
}

/// Duplicates of both ends above `lowest`, or the ends themselves if they are. Closes them if it fails.
private func raised(_ ends: [Int32], above lowest: Int32) throws(Errno) -> (Int32, Int32) {
    if ends.allSatisfy({ $0 > lowest }) { return (ends[0], ends[1]) }
    let moved = ends.map { fcntl($0, F_DUPFD_CLOEXEC, lowest + 1) }
    let failure = Errno.last
    for end in ends { close(end) }
    if moved.allSatisfy({ $0 >= 0 }) { return (moved[0], moved[1]) }
    for end in moved where end >= 0 { close(end) }
    throw failure
}
