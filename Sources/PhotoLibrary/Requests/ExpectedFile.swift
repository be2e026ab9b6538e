public import FileRequests
import Glibc
import LinuxIO
import VaultFormat
import VaultStore

extension SpaceWalk {
    /// Whether files should be expected before they are read: each read waits for an answer from elsewhere.
    public var expectsFiles: Bool { library.session.context.space.readsTakeRoundTrips }

    /// Opens a regular file that will be read soon, from its beginning on. Nil if that fails, which the caller learns
    /// when it reads the file.
    public func expect(_ ino: UInt64, _ caller: Caller) -> ExpectedFile? {
        guard let handle = try? library.open(ino, flags: O_RDONLY, caller) else { return nil }
        guard let file = handle.state else {
            library.release(handle)
            return nil
        }
        return ExpectedFile(library, handle, file.view.withLock { file.map.pieces.map(\.run) })
    }
}

/// A file of which bytes are asked for before a program reads them. Open as long as this object lives.
public final class ExpectedFile {
    private let library: Library
    private let handle: FileHandle
    private let runs: [ExtentRun]
    private var index = 0
    /// All stored bytes before this offset have been asked for.
    public private(set) var asked: UInt64 = 0

    /// Bytes that one call asks for, at most.
    public static let stepBytes = UInt64(stepChunks * Geometry.chunkBytes)
    private static let stepChunks = 8

    fileprivate init(_ library: Library, _ handle: FileHandle, _ runs: [ExtentRun]) {
        (self.library, self.handle, self.runs) = (library, handle, runs)
    }

    deinit { library.release(handle) }

    /// Whether all was asked for.
    public var isWholeAsked: Bool { index == runs.count }

    /// Asks for the next bytes.
    public func askForMore() {
        guard index < runs.count else { return }
        let run = runs[index]
        let first = Int((max(asked, run.offset) - run.offset) / UInt64(Geometry.chunkBytes))
        let last = min(run.chunkCount, first + Self.stepChunks)
        library.session.context.space.willRead(run, chunks: first..<last)
        if last == run.chunkCount {
            asked = run.following
            index += 1
        } else {
            asked = run.offset + UInt64(last * Geometry.chunkBytes)
        }
    }
}
