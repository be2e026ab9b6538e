import LinuxIO

/// A file below /proc; nil if it is missing. Foundation's readers take the first short read(2) for the end, which a
/// table of more than a page has in the middle.
public func kernelText(_ path: String) -> String? {
    contents(ofFile: path).map { String(decoding: $0, as: UTF8.self) }
}
