import CSystemd
import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A message bus with a logind that a test plays.
private final class FakeLogind {
    let address: String
    private let busProcess: Child
    private var bus: OpaquePointer?
    private let state = State()

    /// The arguments of the callback.
    private final class State {
        /// The end of the inhibitor's pipe that ends when nobody has the other any more; -1: nobody has asked.
        var inhibitor: Int32 = -1
        var words: [String] = []
        var isRefusing = false
    }

    /// - Parameter isRefusing: whether it grants no inhibitor, as without polkit.
    init(isRefusing: Bool = false) throws {
        state.isRefusing = isRefusing
        busProcess = try Child(
            ["/usr/bin/dbus-daemon", "--session", "--nofork", "--nosyslog", "--print-address=1"],
            output: .collected)
        address = busProcess.output?.next(upTo: "\n") ?? ""
        try #require(sd_bus_new(&bus) >= 0 && sd_bus_set_address(bus, address) >= 0)
        try #require(sd_bus_set_bus_client(bus, 1) >= 0 && sd_bus_start(bus) >= 0)
        let added = sd_bus_add_object(
            bus, nil, "/org/freedesktop/login1",
            { message, state, _ in FakeLogind.answer(message, state) },
            Unmanaged.passUnretained(state).toOpaque())
        try #require(added >= 0 && sd_bus_request_name(bus, "org.freedesktop.login1", 0) >= 0)
    }

    deinit {
        sd_bus_flush_close_unref(bus)
        if state.inhibitor >= 0 { close(state.inhibitor) }
        // So that it removes its socket, which lies in /tmp.
        busProcess.kill(SIGTERM)
        busProcess.wait()
    }

    /// Inhibit(what, who, why, mode) returns a descriptor.
    private static func answer(_ message: OpaquePointer?, _ state: UnsafeMutableRawPointer?) -> Int32 {
        guard sd_bus_message_is_method_call(message, "org.freedesktop.login1.Manager", "Inhibit") > 0 else {
            return 0
        }
        let state = Unmanaged<State>.fromOpaque(state!).takeUnretainedValue()
        var word: UnsafePointer<CChar>?
        while sd_bus_message_read_basic(message, CChar(UInt8(ascii: "s")), &word) > 0, let text = word {
            state.words.append(String(cString: text))
        }
        if state.isRefusing { return -EACCES }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return -errno }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        state.inhibitor = ends[0]
        var reply: OpaquePointer?
        sd_bus_message_new_method_return(message, &reply)
        sd_bus_message_append_basic(reply, CChar(UInt8(ascii: "h")), &ends[1])
        sd_bus_send(nil, reply, nil)
        sd_bus_message_unref(reply)
        close(ends[1])
        return 1
    }

    /// Waits until a program has asked for an inhibitor; returns its arguments.
    func inhibition() -> [String] {
        _ = eventually {
            while sd_bus_process(bus, nil) > 0 {}
            return !state.words.isEmpty
        }
        return state.words
    }

    func announce(isStarting: Bool) {
        var (signal, value): (OpaquePointer?, Int32) = (nil, isStarting ? 1 : 0)
        sd_bus_message_new_signal(
            bus, &signal, "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PrepareForSleep")
        sd_bus_message_append_basic(signal, CChar(UInt8(ascii: "b")), &value)
        sd_bus_send(bus, signal, nil)
        sd_bus_message_unref(signal)
        sd_bus_flush(bus)
    }

    /// Whether nobody holds the sleep up any more.
    var mayStart: Bool {
        var wanted = pollfd(fd: state.inhibitor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, 0) == 1
    }
}

/// A machine that is about to sleep.
@Suite("Mount options: suspend", .serialized, .waiting) struct SleepTests {
    private func makeMounted(_ logind: FakeLogind, options: String = "rw") throws -> Place {
        let place = try Place()
        try place.mount(options: options, variables: ["DBUS_SYSTEM_BUS_ADDRESS=\(logind.address)"])
        return place
    }

    @Test func `a mount goes before the machine sleeps, with all that was written`() throws {
        let logind = try FakeLogind()
        let kept = try makeMounted(logind, options: "suspend=keep")
        let place = try makeMounted(logind)
        // Once: the other does not ask.
        #expect(logind.inhibition() == ["sleep", "obscura", "A vault is being locked", "delay"])
        try place.shell("echo before >D/albums/note")
        // Waking up is no reason to go.
        logind.announce(isStarting: false)
        #expect(try place.shell("cat D/albums/note") == "before\n")
        #expect(!logind.mayStart)
        let file = open(place.albums + "/open", O_CREAT | O_WRONLY, 0o600)
        #expect(write(file, "more\n", 5) == 5)
        logind.announce(isStarting: true)
        #expect(eventually { logind.mayStart })
        // Only when the process has ended, and its keys with it.
        #expect(place.daemon == nil)
        // Open files are not served any more.
        #expect(write(file, "late\n", 5) < 0)
        close(file)
        try kept.shell("echo kept >D/albums/note")
        try kept.unmount()
        try place.mount()
        #expect(try place.shell("cat D/albums/note D/albums/open") == "before\nmore\n")
        try place.unmount()
    }

    @Test func `a mount goes also where the sleep may not be delayed`() throws {
        let logind = try FakeLogind(isRefusing: true)
        let place = try makeMounted(logind)
        #expect(logind.inhibition().first == "sleep")
        try place.shell("echo before >D/albums/note")
        logind.announce(isStarting: true)
        #expect(eventually { place.daemon == nil })
        try place.mount()
        #expect(try place.shell("cat D/albums/note") == "before\n")
        try place.unmount()
    }

    @Test func `without a logind the mount lives on`() throws {
        let place = try Place()
        try place.mount(variables: ["DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere"])
        try place.shell("echo a >D/albums/note; cat D/albums/note")
        try place.unmount()
    }
}
