/// The name of a thread of a mount whose requests to a cluster wait for their answers. It is read by `obscura status`:
/// such a mount may answer nothing else.
public enum ClusterWait {
    private static let before = "waiting "
    private static let after = " s"
    /// Requests that take less are usual.
    private static let leastSeconds: Int64 = 2

    /// The kernel keeps 15 bytes. Nil while nothing waits.
    static func threadName(milliseconds: Int64) -> String? {
        let seconds = milliseconds / 1000
        return seconds < leastSeconds ? nil : "\(before)\(min(seconds, 99_999))\(after)"
    }

    /// For how many seconds requests wait, from a thread's name; nil for any other name.
    public static func seconds(ofThread name: String) -> Int? {
        guard name.hasPrefix(before), name.hasSuffix(after) else { return nil }
        return Int(name.dropFirst(before.utf8.count).dropLast(after.utf8.count))
    }
}
