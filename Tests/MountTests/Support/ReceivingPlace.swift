import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing

/// `obscura receive` on the mounted space of a place, and curl as its client. With this object both are gone.
final class ReceivingPlace {
    let place: Place
    private var receiver: Child
    /// `https://127.0.0.1:PORT/`
    private(set) var address = ""
    /// The code for the next device.
    private(set) var code = ""
    /// Of WebDAV.
    private(set) var password = ""
    private(set) var greeting = ""

    /// How long programs are waited for, on any machine.
    private static let secondsMax: Int64 = 300

    /// - Parameter spaces: of the vault; with two of them each has 48 MiB.
    init(spaces: Int = 1, isLeast: Bool = false, options: [String] = []) throws {
        place = try Place(spaces: spaces, isLeast: isLeast)
        try place.mount()
        receiver = try Self.start(place, options)
        try readGreeting()
    }

    deinit {
        // The receiver's session goes with its group; the server dies with the receiver.
        receiver.kill(SIGKILL)
        _ = receiver.wait(secondsMax: 10)
    }

    private static func start(_ place: Place, _ options: [String]) throws -> Child {
        try Child(
            [obscura, "receive", place.mountPoint, "--album", "Phone", "--listen", "127.0.0.1:0"] + options,
            environment: place.environment, directory: place.root, input: .written, output: .collected,
            errors: .collected, asSession: true)
    }

    private func readGreeting() throws {
        let text = try #require(
            receiver.output?.next(upTo: "Receiving into"), "\(receiver.errors?.present() ?? "")")
        greeting = text
        try readCode(in: text)
        if let line = text.split(separator: "\n").first(where: { $0.hasPrefix("WebDAV") }) {
            password = String(line.split(separator: " ").last ?? "")
        }
    }

    /// Waits for another code.
    func readCode() throws { try readCode(in: try #require(receiver.output?.next(upTo: "on your phone"))) }

    private func readCode(in text: String) throws {
        let link = try #require(text.split(separator: " ").first { $0.hasPrefix("https://") })
        let parts = link.split(separator: "#")
        (address, code) = (String(parts[0]), String(parts[1]))
    }

    /// The process of the command.
    var process: pid_t { receiver.id }

    /// The process of the server.
    var server: pid_t? {
        let children = kernelText("/proc/\(process)/task/\(process)/children")
        return children?.split(separator: " ").compactMap { pid_t($0) }.first
    }

    /// Ends it by a signal; its status and last words.
    func end(_ signal: Int32 = SIGINT) throws -> Ended {
        receiver.kill(signal)
        receiver.wait(secondsMax: Self.secondsMax)
        return try receiver.finish()
    }

    /// Waits for its own end.
    func finish() throws -> Ended {
        receiver.wait(secondsMax: Self.secondsMax)
        return try receiver.finish()
    }

    func restart(_ options: [String] = []) throws {
        receiver.kill(SIGKILL)
        receiver.wait(secondsMax: 10)
        receiver = try Self.start(place, options)
        try readGreeting()
    }

    /// Types a line on its standard input, which is no terminal.
    func type(_ text: String) throws { try receiver.write(text) }

    /// Runs curl in the place's directory; returns its output.
    @discardableResult
    func curl(_ words: String...) throws -> String { try curl(words) }

    private func curl(_ words: [String]) throws -> String {
        try place.run(["curl", "-sk", "--max-time", "\(Self.secondsMax)"] + words).output
    }

    /// The status of a request by curl.
    func status(_ path: String, _ words: String...) throws -> String { try status([address + path] + words) }

    /// The same, with the address among the words.
    func status(_ words: [String]) throws -> String {
        try curl(["-o", "/dev/null", "-w", "%{http_code}"] + words)
    }

    /// Exchanges the code for a cookie, which is in the file `jar` then.
    ///
    /// - Parameter device: how the device calls itself, 32 hexadecimal digits.
    func join(_ jar: String = "jar", device: String = String(repeating: "1", count: 32)) throws -> String {
        try status("join", "-c", jar, "--data-binary", "\(code)\n\(device)")
    }

    var received: String { place.albums + "/Phone" }
}
