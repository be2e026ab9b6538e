import LinuxIO
public import VaultFormat

/// A part of a stored chunk that is to be read.
public struct StoredChunk {
    let run: ExtentRun
    let chunk: Int
    /// Its first byte in the chunk's plaintext.
    let first: Int
    let target: UnsafeMutableRawBufferPointer

    /// - Parameters:
    ///   - first: the first byte of the chunk's plaintext that is wanted.
    ///   - target: as long as the wanted part; where it is written.
    public init(
        run: ExtentRun, chunk: Int, from first: Int, into target: UnsafeMutableRawBufferPointer
    ) {
        precondition(chunk < run.chunkCount && first + target.count <= run.plainBytes(ofChunk: chunk))
        (self.run, self.chunk, self.first, self.target) = (run, chunk, first, target)
    }

    var sectors: Range<UInt64> {
        let start = run.sector(ofChunk: chunk)
        return start..<start + UInt64(Geometry.sectors(forPlaintext: run.plainBytes(ofChunk: chunk)))
    }
    var extentBytes: Int { run.plainBytes(ofChunk: chunk) + Geometry.extentOverheadBytes }
    var isWhole: Bool { first == 0 && target.count == run.plainBytes(ofChunk: chunk) }
}
