import CShims
public import Glibc

/// Changes below a directory.
///
/// No call removes or replaces a file only if it is a certain one, and another process may exchange two files between
/// a look and the call. So a file is first moved to a name that nobody else knows, looked at there, and moved back if
/// it is not the file that was meant.
extension OwnedDirectory {
    private static let draftPrefix = ".obscura-"
    /// Attempts to give a file its name back while other programs take it.
    private static let attemptsMax = 16

    /// Removes a name if it is of this file, unchanged since that status. Returns true if it is gone.
    @discardableResult
    public func remove(_ name: [UInt8], ifUnchangedSince expected: stat) -> Bool {
        remove(name, flags: 0) { $0.isUnchanged(since: expected) }
    }

    /// Removes a name if it is of this file, whatever was written to it. Returns true if it is gone.
    public func remove(_ name: [UInt8], ifSameAs expected: stat) -> Bool {
        remove(name, flags: 0) { $0.isSameFile(as: expected) }
    }

    /// Removes a directory if it is this one, and empty. Returns true if it is gone.
    @discardableResult
    public func removeDirectory(_ name: [UInt8], ifSameAs expected: stat) -> Bool {
        // Moving a directory that cannot be removed would change its parent's times for nothing.
        guard let found = try? directory(name, isOwned: false), (try? found.names(countMax: 0)) == [] else {
            return false
        }
        return remove(name, flags: AT_REMOVEDIR) { $0.isSameFile(as: expected) }
    }

    private func remove(_ name: [UInt8], flags: Int32, _ isMeant: (stat) -> Bool) -> Bool {
        guard let found = try? status(name), isMeant(found) else { return false }
        let draft = Self.draftName()
        do throws(Errno) { try move(name, to: draft, isExchange: false) } catch {
            // A filesystem that cannot rename without replacing.
            guard error == Errno(EINVAL) || error == Errno(ENOSYS) else { return false }
            return withBytes(name) { unlinkat(descriptor, $0, flags) } == 0
        }
        if let moved = try? status(draft), isMeant(moved),
            withBytes(draft, { unlinkat(descriptor, $0, flags) }) == 0
        {
            return true
        }
        putBack(draft, as: name)
        return false
    }

    /// Gives a file its name back, or a numbered one where that is taken.
    private func putBack(_ draft: [UInt8], as name: [UInt8]) {
        for number in 1...Self.attemptsMax {
            let free = number == 1 ? name : Array(name.prefix(240)) + Array(" (\(number))".utf8)
            do throws(Errno) { return try move(draft, to: free, isExchange: false) } catch {
                if error != .exists { return }
            }
        }
    }

    private func move(_ name: [UInt8], to other: [UInt8], isExchange: Bool) throws(Errno) {
        _ = try retryingInterrupts {
            withBytes(name) { from in
                withBytes(other) { obscura_move(descriptor, from, descriptor, $0, isExchange ? 1 : 0) }
            }
        }
    }

    /// Replaces a file's content atomically, if it is this file, unchanged since that status. Else leaves it.
    public func replace(_ name: [UInt8], ifUnchangedSince expected: stat, with bytes: [UInt8]) {
        guard let found = try? status(name), found.isUnchanged(since: expected) else { return }
        let draft = Self.draftName()
        guard let own = makeFile(draft, bytes, mode: expected.st_mode & 0o777) else { return }
        do throws(Errno) { try move(draft, to: name, isExchange: true) } catch {
            guard error == Errno(EINVAL) || error == Errno(ENOSYS),
                withBytes(
                    draft,
                    { from in
                        withBytes(name) { renameat(descriptor, from, descriptor, $0) }
                    }) == 0
            else {
                remove(draft, ifUnchangedSince: own)
                return
            }
            return
        }
        // The former file has the draft's name now.
        if let former = try? status(draft), former.isUnchanged(since: expected) {
            _ = withBytes(draft) { unlinkat(descriptor, $0, 0) }
            return
        }
        // Another program has replaced the file: its version counts.
        try? move(draft, to: name, isExchange: true)
        remove(draft, ifUnchangedSince: own)
    }

    /// Moves a name to a name in another directory that is free; throws EEXIST if it is taken.
    public func move(_ name: [UInt8], to other: OwnedDirectory, as otherName: [UInt8]) throws(Errno) {
        guard isPlainName(name), isPlainName(otherName) else { throw Errno(EINVAL) }
        _ = try retryingInterrupts {
            withBytes(name) { from in
                withBytes(otherName) { obscura_move(descriptor, from, other.descriptor, $0, 0) }
            }
        }
    }

    /// mkdirat(2), then opens the directory; one that is there already is opened too.
    public func makeDirectory(_ name: [UInt8], mode: mode_t) throws(Errno) -> OwnedDirectory {
        guard isPlainName(name) else { throw Errno(EINVAL) }
        if withBytes(name, { mkdirat(descriptor, $0, mode) }) != 0, Errno.last != .exists { throw .last }
        return try directory(name)
    }

    /// rmdir(2).
    public func removeEmptyDirectory(_ name: [UInt8]) throws(Errno) {
        guard isPlainName(name) else { throw Errno(EINVAL) }
        _ = try retryingInterrupts { withBytes(name) { unlinkat(descriptor, $0, AT_REMOVEDIR) } }
    }

    /// Removes a name, and everything below it if it is a directory. Returns true if it is gone.
    public func removeAll(_ name: [UInt8]) -> Bool {
        do throws(Errno) {
            let found = try status(name)
            guard found.st_mode & mode_t(S_IFMT) == mode_t(S_IFDIR) else {
                return withBytes(name) { unlinkat(descriptor, $0, 0) } == 0
            }
            let inner = try directory(name)
            _ = inner.makeWritable()
            for name in try inner.names() where !inner.removeAll(name) { return false }
            return withBytes(name) { unlinkat(descriptor, $0, AT_REMOVEDIR) } == 0
        } catch {
            return error == .noEntry
        }
    }

    /// Makes an empty file under a name that is free, and opens it for reading and writing.
    public func makeFile(_ name: [UInt8], mode: mode_t) throws(Errno) -> OwnedFile {
        guard isPlainName(name) else { throw Errno(EINVAL) }
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let opened = try retryingInterrupts {
            withBytes(name) { obscura_openat(descriptor, $0, flags, mode) }
        }
        var made = stat()
        guard fstat(opened, &made) == 0 else {
            close(opened)
            throw .last
        }
        return OwnedFile(opened, made)
    }

    /// Makes a file under a name that is free. Nil if that fails; then nothing is left.
    private func makeFile(_ name: [UInt8], _ bytes: [UInt8], mode: mode_t) -> stat? {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let file = withBytes(name) { obscura_openat(descriptor, $0, flags, 0o600) }
        guard file >= 0 else { return nil }
        defer { close(file) }
        let calls = LinuxCalls.shared
        var made = stat()
        if (try? calls.writeFully(file, bytes, at: 0)) != nil, fchmod(file, mode) == 0,
            fstat(file, &made) == 0
        {
            return made
        }
        _ = withBytes(name) { unlinkat(descriptor, $0, 0) }
        return nil
    }

    /// Lets the owner change the entries of a directory that this user made read-only. Returns true if that changed
    /// anything.
    public func makeWritable() -> Bool {
        guard status.st_mode & 0o300 != 0o300, let own = try? readable() else { return false }
        defer { close(own) }
        return fchmod(own, status.st_mode & 0o7777 | 0o700) == 0
    }

    /// Undoes `makeWritable`.
    public func restoreMode() {
        guard let own = try? readable() else { return }
        defer { close(own) }
        _ = fchmod(own, status.st_mode & 0o7777)
    }

    private static func draftName() -> [UInt8] {
        Array((draftPrefix + String(UInt64.random(in: 0...UInt64.max), radix: 16)).utf8)
    }
}
