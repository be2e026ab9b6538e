import VaultFormat

@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// Payloads and descriptors that open: an identity record, and the descriptor of an extent.
func fuzzRecords(_ bytes: UnsafeRawBufferPointer) {
    if let (history, content) = Recorded.decode(bytes) {
        // A parsed record, written again, has the same bytes.
        let again = content.encoded(history)
        let known = again.withUnsafeBytes { Recorded.decode($0) }
        precondition(known?.history == history && known?.content == content, "a record that reads otherwise")
        if case .inode(let record) = content { use(record, history) }
    }
    guard bytes.count >= Geometry.descriptorBytes else { return }
    let head = bytes.slice(0, Geometry.descriptorBytes)
    guard let descriptor = Descriptor(decoding: head) else { return }
    var scan = ScanResult()
    for (sector, plain) in [(UInt64(0), bytes), (300, bytes), (1, nil)] {
        scan.add(FoundExtent(descriptor: descriptor, sector: sector), plain)
    }
    let contents = FoundContents(
        scan.contents, damagedEnds: scan.damagedEnds, storedBytesMax: 16 << 20)
    for content in contents.numbers { _ = contents.newestBytes(of: content).lostBytes }
    for run in scan.contents { precondition(run.sectors.count == run.run.sectorCount) }
    _ = RecordSelector(scan.records).retiredBlocks
}

private func use(_ record: IdentityRecord, _ history: RecordedHistory) {
    for run in record.runs ?? [] {
        precondition(run.sectorCount > 0 && run.end > run.offset)
    }
    let contents = FoundContents([], damagedEnds: [:], storedBytesMax: 16 << 20)
    // More than a file of 16 GiB has no place in a test.
    guard record.runs?.allSatisfy({ $0.length < 1 << 34 }) ?? true else { return }
    let run = ExtentRun(offset: 0, length: 1, sector: 0, generation: 1, epoch: 1)
    let found = FoundRecord(id: 16, run: run, history: history)
    let bytes = contents.bytes(of: Salvage.RecoveredInode(record: record, found: found, generation: 1))
    precondition(bytes.lostBytes == bytes.allocated)
}
