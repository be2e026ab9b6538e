internal import CGLib
internal import CSystemd
internal import Glibc

/// Reads and changes the desktop's lists of files: GLib's by GLib's functions, gvfs' by gvfs, and Plasma's in its
/// database.
///
/// A program of its own, run with the user's rights and without a key, so that no other program needs GLib. Where GLib
/// is not installed this one does not start, and no program has written such lists. Returns the exit status.
///
/// It opens no file by a path: lists come by standard input and leave by standard output, and the database is in the
/// directory of descriptor 3.
///
/// - `recent` prints every URI of the list of recent files on standard input, each followed by NUL.
/// - `remove BYTES` prints the list without some URIs. Standard input is the list, of that size, and the URIs, each
///   followed by NUL.
/// - `activities` prints every resource in the database of Plasma's activity manager, each followed by NUL.
/// - `forget` removes from it the resources on standard input, each followed by NUL.
/// - `metadata` has gvfs forget the paths on standard input: pairs of a tree's file and a path in it.
func runDesktopLists(_ words: [String]) -> Int32 {
    let input = readInput()
    switch (words.dropFirst().first, words.count) {
    case ("recent", 2): return printRecent(input) ? 0 : 1
    case ("remove", 3):
        guard let size = Int(words[2]), (0...input.count).contains(size) else { return 2 }
        return removeRecent(Array(input[..<size]), items(input[size...])) ? 0 : 1
    case ("activities", 2): return printActivities() ? 0 : 1
    case ("forget", 2): return forgetActivities(items(input[...])) ? 0 : 1
    case ("metadata", 2): return forgetMetadata(items(input[...])) ? 0 : 1
    default: return 2
    }
}

// MARK: Recent files

private func printRecent(_ text: [CChar]) -> Bool {
    guard let list = parseList(text) else { return false }
    defer { g_bookmark_file_free(list) }
    var count: gsize = 0
    guard let uris = g_bookmark_file_get_uris(list, &count) else { return true }
    defer { g_strfreev(uris) }
    for index in 0..<Int(count) {
        guard let uri = uris[index], writeItem(uri) else { return false }
    }
    return true
}

/// Leaves all other entries as they are.
private func removeRecent(_ text: [CChar], _ uris: [[CChar]]) -> Bool {
    guard let list = parseList(text) else { return false }
    defer { g_bookmark_file_free(list) }
    for uri in uris { _ = g_bookmark_file_remove_item(list, uri, nil) }
    var size: gsize = 0
    guard let changed = g_bookmark_file_to_data(list, &size, nil) else { return false }
    defer { g_free(changed) }
    return writeOut(UnsafeRawBufferPointer(start: changed, count: Int(size)))
}

private func parseList(_ text: [CChar]) -> OpaquePointer? {
    guard let list = g_bookmark_file_new() else { return nil }
    if g_bookmark_file_load_from_data(list, text, gsize(text.count), nil) != 0 { return list }
    g_bookmark_file_free(list)
    return nil
}

// MARK: Metadata of gvfs

/// Asks gvfsd-metadata, the only writer of those files. Then takes its name on the bus, as a second one started with
/// `--replace` would: it writes the trees anew, without the removed entries, and ends. When the next program needs it,
/// the bus starts another.
private func forgetMetadata(_ items: [[CChar]]) -> Bool {
    guard let bus = SessionBus() else { return false }
    var isForgotten = false
    for index in stride(from: 0, to: items.count - 1, by: 2) {
        if bus.forget(items[index + 1], inTree: items[index]) { isForgotten = true }
    }
    return isForgotten && bus.replaceMetadataDaemon()
}

/// The message bus at the address in the environment.
final class SessionBus {
    private let bus: OpaquePointer

    private static let name = "org.gtk.vfs.Metadata"
    private static let path = "/org/gtk/vfs/metadata"
    private static let microseconds: UInt64 = 3_000_000

    init?() {
        var opened: OpaquePointer?
        guard getenv("DBUS_SESSION_BUS_ADDRESS") != nil, sd_bus_open_user(&opened) >= 0, let opened else {
            return nil
        }
        bus = opened
    }

    deinit { sd_bus_flush_close_unref(bus) }

    /// Remove(treefile, path), both as bytes with a NUL. The bus starts the daemon if it does not run.
    func forget(_ path: [CChar], inTree tree: [CChar]) -> Bool {
        var (call, reply): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        defer {
            sd_bus_message_unref(call)
            sd_bus_message_unref(reply)
        }
        guard
            sd_bus_message_new_method_call(bus, &call, Self.name, Self.path, Self.name, "Remove") >= 0,
            append(tree, to: call), append(path, to: call)
        else { return false }
        return sd_bus_call(bus, call, Self.microseconds, nil, &reply) >= 0
    }

    private func append(_ bytes: [CChar], to call: OpaquePointer?) -> Bool {
        sd_bus_message_append_array(call, CChar(UInt8(ascii: "y")), bytes, bytes.count) >= 0
    }

    // MARK: Plasma's activity manager

    private static let manager = "org.kde.ActivityManager"
    private static let endPollsMax = 60
    private static let endPollMicroseconds: UInt32 = 50_000

    /// Asks it to end, and waits for that. Returns false if it does not run.
    func endActivityManager() -> Bool {
        var (call, reply): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        defer {
            sd_bus_message_unref(call)
            sd_bus_message_unref(reply)
        }
        guard isRunning(Self.manager),
            sd_bus_message_new_method_call(
                bus, &call, Self.manager, "/ActivityManager", Self.manager + ".Application", "quit") >= 0,
            sd_bus_call(bus, call, Self.microseconds, nil, &reply) >= 0
        else { return false }
        for _ in 0..<Self.endPollsMax where isRunning(Self.manager) { usleep(Self.endPollMicroseconds) }
        return true
    }

    /// Has the bus start it, without waiting.
    func startActivityManager() {
        var call: OpaquePointer?
        defer { sd_bus_message_unref(call) }
        let service = "org.freedesktop.DBus"
        var flags: UInt32 = 0
        guard
            sd_bus_message_new_method_call(
                bus, &call, service, "/org/freedesktop/DBus", service, "StartServiceByName") >= 0,
            sd_bus_message_append_basic(call, CChar(UInt8(ascii: "s")), Self.manager) >= 0,
            sd_bus_message_append_basic(call, CChar(UInt8(ascii: "u")), &flags) >= 0
        else { return }
        sd_bus_send(bus, call, nil)
    }

    private func isRunning(_ service: String) -> Bool {
        var owner: OpaquePointer?
        defer { sd_bus_creds_unref(owner) }
        return sd_bus_get_name_creds(bus, service, 0, &owner) >= 0
    }

    // MARK: gvfs

    /// Waits for the daemon's end: it writes the trees only after it has lost its name.
    func replaceMetadataDaemon() -> Bool {
        let daemon = process(of: Self.name)
        guard sd_bus_request_name(bus, Self.name, UInt64(SD_BUS_NAME_REPLACE_EXISTING)) >= 0,
            sd_bus_release_name(bus, Self.name) >= 0
        else { return false }
        guard let daemon else { return true }
        for _ in 0..<Self.endPollsMax {
            if kill(daemon, 0) != 0 && errno == ESRCH { return true }
            usleep(Self.endPollMicroseconds)
        }
        return false
    }

    private func process(of service: String) -> pid_t? {
        var owner: OpaquePointer?
        defer { sd_bus_creds_unref(owner) }
        var process: pid_t = 0
        let wanted = UInt64(SD_BUS_CREDS_PID)
        guard sd_bus_get_name_creds(bus, service, wanted, &owner) >= 0,
            sd_bus_creds_get_pid(owner, &process) >= 0
        else { return nil }
        return process
    }
}

// MARK: Items

/// All of standard input.
private func readInput() -> [CChar] {
    var bytes: [CChar] = []
    var buffer = [CChar](repeating: 0, count: 65_536)
    while true {
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        if count <= 0 { return bytes }
        bytes += buffer[..<count]
    }
}

/// Items, each with the NUL that ends it.
private func items(_ bytes: ArraySlice<CChar>) -> [[CChar]] {
    bytes.split(separator: 0).map { Array($0) + [0] }
}

func writeItem(_ text: UnsafePointer<CChar>) -> Bool {
    writeOut(UnsafeRawBufferPointer(start: text, count: strlen(text) + 1))
}

private func writeOut(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
        let count = write(STDOUT_FILENO, rest.baseAddress, rest.count)
        if count < 0 && errno == EINTR { continue }
        if count <= 0 { return false }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return true
}
