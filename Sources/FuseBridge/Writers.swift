internal import FileRequests
internal import Glibc
internal import PhotoLibrary
internal import Synchronization

/// Files that programs have open for writing. A shared mapping keeps its file open.
final class Writers: Sendable {
    private struct State {
        var count = 0
        var areRefused = false
    }

    private let state = Mutex(State())

    /// Opens a file for a request. Throws `readOnly` for one that writes, once those are refused.
    func opening<Found>(
        _ flags: Int32, _ open: () throws(FileError) -> (Found, FileHandle)
    ) throws(FileError) -> (found: Found, handle: FileHandle) {
        guard flags & O_ACCMODE != O_RDONLY else { return try open() }
        // Counted before it is open: whoever refuses writers next must see this one.
        let isRefused = state.withLock { state in
            if !state.areRefused { state.count += 1 }
            return state.areRefused
        }
        if isRefused { throw .readOnly }
        do throws(FileError) {
            let (found, handle) = try open()
            if !handle.isWritable { end() }
            return (found, handle)
        } catch {
            end()
            throw error
        }
    }

    /// Called when a handle is released.
    func release(_ handle: FileHandle) { if handle.isWritable { end() } }

    private func end() { state.withLock { $0.count -= 1 } }

    /// Refuses writers from now on, if there are none. Returns whether it does.
    func refuseIfNone() -> Bool {
        state.withLock { state in
            state.areRefused = state.count == 0
            return state.areRefused
        }
    }

    /// Takes `refuseIfNone` back.
    func admit() { state.withLock { $0.areRefused = false } }
}
