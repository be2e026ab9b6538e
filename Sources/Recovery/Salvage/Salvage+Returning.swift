import CatalogueRows
import FileRequests
import PhotoLibrary
import VaultFormat

extension Salvage {
    /// Whether there are files, or bytes of files that an earlier repair found without a record, that the catalogue
    /// does not know: they were lost then, and are there again. Only for a catalogue that can be read.
    public var findsMore: Bool {
        guard let former = FormerCatalogue(unlocked), former.isRecorded else { return false }
        // Extents and records of a returned segment are older than the earlier repair. Newer extents without a name
        // were replaced by users since.
        if unnamed.contains(where: {
            max($0.state.commit, ofFiles[$0.state.content] ?? 0) <= newestIncomplete
        }) {
            return true
        }
        var isMore = false
        // The visitor writes nothing, so it cannot fail.
        try? forEachInode { recoveredInode in
            let (record, row) = (recoveredInode.record, recoveredInode.record.row)
            // Directories come with what is in them; files without any name are in no new catalogue either.
            guard !isMore, recoveredInode.found != nil, row.mode & fileTypeMask != directoryType,
                record.hasPlace
            else { return }
            let isRegular = row.mode & fileTypeMask == regularType
            let bytes = isRegular ? contents.bytes(of: recoveredInode) : FoundBytes(size: 0)
            if !former.knows(row.ino) {
                isMore = !bytes.isGone && !former.isRetired(row.ino)
                return
            }
            let known = former.knownBytes(of: row.content)
            if known.lost > 0 || row.flags.isGuess || former.isGuess(row.ino) {
                let stored = bytes.allocated - bytes.lostBytes
                isMore =
                    stored > known.stored || (stored == known.stored && bytes.lostBytes < known.lost)
                    // A record that came back may name as many bytes at other places.
                    || (stored > 0 && bytes.lostBytes == 0
                        && RangeSet(sectorsOf: bytes.stored) != known.sectors)
            } else if newestIncomplete > 0, let found = recoveredInode.found,
                let known = former.record(of: row.ino)
            {
                isMore = found.run.generation > known.generation
            }
        }
        return isMore
    }
}
