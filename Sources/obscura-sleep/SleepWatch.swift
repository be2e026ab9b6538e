internal import CShims
internal import CSystemd
internal import Glibc

/// Tells the process that serves a mount that the machine is about to sleep, and delays the sleep until that process
/// has ended: a delay inhibitor of systemd-logind, org.freedesktop.login1(5).
///
/// A program of its own, so that the process with the keys has no message bus. Standard input is a pipe that ends with
/// the mount's process. The byte SIGPWR on standard output asks that process to unmount. Without logind this program
/// ends, and the mount lives on. Returns the exit status.
func runSleepWatch() -> Int32 {
    // A child goes on from here, so that the caller need not wait for more than this.
    let child = shim_fork()
    if child != 0 { return child > 0 ? 0 : 1 }
    signal(SIGPIPE, SIG_IGN)
    guard let manager = SleepManager() else { return 0 }
    // logind waits for this process, up to a few seconds; this process ends with the mount's.
    return manager.watch() ? 0 : 1
}

/// systemd-logind's manager, which announces sleep, on the system's message bus.
private struct SleepManager {
    private let bus: OpaquePointer

    private static let destination = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let interface = "org.freedesktop.login1.Manager"

    /// Subscribes to the signal, and holds an inhibitor as long as the process lives. Nil if there is no logind.
    ///
    /// An inhibitor may be refused: where polkit is missing, logind grants it to root alone. The mount is asked to end
    /// all the same, while the machine already goes to sleep.
    init?() {
        var connection: OpaquePointer?
        guard sd_bus_open_system(&connection) >= 0, let connection else { return nil }
        bus = connection
        // Before the inhibitor is taken, so that no sleep is missed.
        let result = sd_bus_match_signal(
            bus, nil, Self.destination, Self.path, Self.interface, "PrepareForSleep",
            { message, _, _ in announceSleep(message) }, nil)
        guard result >= 0, [0, -EACCES, -EPERM].contains(inhibit()) else { return nil }
    }

    /// Waits for the mount's process to end. Returns false if the bus is lost.
    func watch() -> Bool {
        while true {
            var result: Int32 = 1
            while result > 0 { result = sd_bus_process(bus, nil) }
            if result < 0 { return false }
            var wanted = [
                pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
                pollfd(fd: sd_bus_get_fd(bus), events: Int16(sd_bus_get_events(bus)), revents: 0),
            ]
            if poll(&wanted, 2, -1) < 0, errno != EINTR { return false }
            if wanted[0].revents != 0 { return true }
        }
    }

    /// Inhibit(what, who, why, mode): logind delays sleep until all copies of the descriptor it returns are closed.
    /// Returns 0, or a negative error number.
    private func inhibit() -> Int32 {
        var (call, reply): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        defer {
            sd_bus_message_unref(call)
            sd_bus_message_unref(reply)
        }
        var result = sd_bus_message_new_method_call(
            bus, &call, Self.destination, Self.path, Self.interface, "Inhibit")
        for word in ["sleep", "obscura", "A vault is being locked", "delay"] where result >= 0 {
            result = word.withCString { sd_bus_message_append_basic(call, CChar(UInt8(ascii: "s")), $0) }
        }
        var descriptor: Int32 = -1
        if result >= 0 { result = sd_bus_call(bus, call, 0, nil, &reply) }
        if result >= 0 { result = sd_bus_message_read_basic(reply, CChar(UInt8(ascii: "h")), &descriptor) }
        if result < 0 { return result }
        // The message's own descriptor is closed with the message.
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 3) >= 0 ? 0 : -errno
    }
}

/// PrepareForSleep(start): true before the machine sleeps, false when it has woken.
private func announceSleep(_ message: OpaquePointer?) -> Int32 {
    var isStarting: Int32 = 0
    guard sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isStarting) > 0, isStarting != 0
    else {
        return 0
    }
    var byte = UInt8(SIGPWR)
    _ = write(STDOUT_FILENO, &byte, 1)
    return 0
}
