import Glibc
import LinuxIO

/// Starts the program that tells the daemon that the machine is about to sleep. It ends with this process.
///
/// - Parameter descriptor: where it writes the number SIGPWR.
func startSleepWatcher(tellingTo descriptor: Int32) {
    guard let life = try? makePipe() else { return }
    // The other end stays open until this process has ended: only then may the machine sleep.
    defer { close(life.read) }
    let bus = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { "DBUS_SYSTEM_BUS_ADDRESS=" + String(cString: $0) }
    let process = startBeside(
        "obscura-sleep", environment: [bus].compactMap(\.self), input: life.read, output: descriptor)
    // The program goes on in a child of its own.
    if let process { _ = waitForEnd(of: process) }
}
