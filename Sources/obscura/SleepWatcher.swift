import Glibc
import LinuxIO

/// The program that tells the daemon that the machine is about to sleep; it ends with this process.
///
/// - Parameter descriptor: where it writes the number SIGPWR.
func startSleepWatcher(tellingTo descriptor: Int32) {
    guard let program = programBeside("obscura-sleep"), let life = try? makePipe() else { return }
    defer { close(life.read) }
    // The other end is open until this process has ended: only then may the machine sleep.
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    if null < 0 { return }
    defer { close(null) }
    let bus = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { "DBUS_SYSTEM_BUS_ADDRESS=" + String(cString: $0) }
    let process = try? spawn(
        [program], environment: [backtracerOff] + [bus].compactMap(\.self),
        descriptors: [(life.read, STDIN_FILENO), (descriptor, STDOUT_FILENO), (null, STDERR_FILENO)],
        asSession: true)
    // It goes on in a process of its own.
    if let process { _ = waitForEnd(of: process) }
}

/// A program of ours that lies in the directory of this one; nil where it does not.
func programBeside(_ name: String) -> String? {
    let directory = realPath("/proc/self/exe").split(separator: "/").dropLast().joined(separator: "/")
    let path = "/" + directory + "/" + name
    return access(path, X_OK) == 0 ? path : nil
}
