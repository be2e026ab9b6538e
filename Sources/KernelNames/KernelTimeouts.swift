/// How long the kernel may use an answer without a request, in seconds.
public enum KernelTimeout {
    /// The kernel asks each time.
    public static let none: Double = 0
    /// For attributes of a name that is looked up at each use: long enough for the request that follows the
    /// lookup.
    public static let brief: Double = 1
    /// The kernel keeps it until a notice: every change by other means than its own requests sends one.
    public static let long: Double = 3600
}
