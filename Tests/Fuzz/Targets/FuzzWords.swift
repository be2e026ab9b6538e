import Glibc
import HostFiles
import LinuxIO
import VaultCrypto

@testable import obscura

/// Words of a user, of mount(8) or of a line of fstab: those of a command line, an option list, sizes, and passwords as
/// they are read from a file.
func fuzzWords(_ bytes: UnsafeRawBufferPointer) {
    let words = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    check { () throws(Failure) in
        guard case .run(let arguments) = try parseArguments(words) else { return }
        precondition(arguments.operands.allSatisfy { !$0.isEmpty } || arguments.command.tail == .command)
        _ = try PasswordSource(arguments)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    for isSloppy in [false, true] {
        check { () throws(Failure) in
            var options = MountOptionParser()
            try options.apply(text, sloppy: isSloppy)
            _ = options.libraryOptions(workerPath: nil)
        }
    }
    precondition(splitOptionList(text).allSatisfy { $0.utf8.count <= text.utf8.count })
    if let size = parseSize(text) { precondition(size > 0 && !sizeText(size).isEmpty) }
    if let seconds = parseDuration(text) { precondition(seconds > 0 && seconds <= durationDaysMax * 86_400) }
    _ = nearestWord(to: String(text.prefix(64)), among: ["mount", "unmount", "--size"])
    precondition(!printable(text).unicodeScalars.contains { $0.value < 32 })
    readPasswords(bytes)
}

/// A usage error is one line, and never says more.
private func check(_ body: () throws(Failure) -> Void) {
    do throws(Failure) { try body() } catch {
        precondition(error.status == .usage || error.status == .failed, error.line)
        precondition(!error.line.contains("\n"), error.line)
    }
}

private func readPasswords(_ bytes: UnsafeRawBufferPointer) {
    // Inputs are shorter than a pipe is.
    var ends: [Int32] = [-1, -1]
    precondition(pipe(&ends) == 0 && write(ends[1], bytes.baseAddress, bytes.count) == bytes.count)
    close(ends[1])
    let file = ends[0]
    defer { close(file) }
    var total = 0
    do throws(Failure) {
        while let line = try readPasswordLine(from: file, named: "a file") { total += line.count + 1 }
        precondition(total >= bytes.count && total <= bytes.count + 1, "bytes of passwords are lost")
    } catch {
        precondition(error.status == .usage)
    }
}
