package import LinuxIO

extension MountEntry {
    /// Whether this program mounted it, even with another `subtype=`.
    package var isObscura: Bool {
        type == "fuse.obscura" || (type.hasPrefix("fuse.") && source == "obscura")
    }
}
