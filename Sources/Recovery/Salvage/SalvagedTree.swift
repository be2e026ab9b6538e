import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
import PhotoLibrary
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Builds the tree of a new catalogue from identity records. Under the catalogue's lock.
struct SalvagedTree {
    package let salvage: Salvage
    package let tree: Tree
    /// Records of directories that are not yet in the tree, by number.
    private var waiting: [UInt64: IdentityRecord] = [:]
    /// Numbers of directories in the tree, by old number: different for a stand-in, and if two directories were the
    /// same day.
    private var places: [UInt64: UInt64] = [:]
    /// Directories of which only the numbers are known.
    private var standIns: Set<UInt64> = []
    /// Records of directories in the tree, with the times to restore.
    private var directories: [IdentityRecord] = []
    /// The photo that each content is of.
    private var photos: [UInt64: UInt64] = [:]
    /// Inodes of each content whose rows are in the tree.
    var users: [UInt64: [UInt64]] = [:]
    /// Copies, to be assigned to their photos once all photos are there.
    private var copies: [UInt64] = []
    /// Former names of photos in the trash, and of their copies.
    private var kept: [(photo: UInt64, name: DentryRow)] = []
    /// Contents without a file, of which some bytes were found.
    private let nameless: Set<UInt64>
    /// Of contents with bytes that no record names, by number: the newest commit that wrote such bytes.
    private let unnamedCommits: [UInt64: UInt64]
    /// Records of inodes in the tree.
    private var placed: [FoundRecord] = []
    /// Sectors that rows name.
    var used: [Range<UInt64>] = []
    /// Lost chunks that keep their sectors, by their first sector, with the content that they were written as.
    var lostPlaces: [UInt64: (source: UInt64, run: ExtentRun)] = [:]
    /// Files that an earlier repair found by their bytes alone, and whose own records have come back.
    var superseded: [IdentityRecord] = []
    /// Files that an earlier repair made of bytes that no record told of, until all others are in the tree.
    var unnamed: [Salvage.RecoveredInode] = []
    /// `albums/Recovered`, once there is one.
    private var recovered: UInt64?

    private static let filesPerFlush = 4096
    /// Depth of nested directories: deeper ones go to `albums/Recovered`.
    private static let depthMax = 1024

    package init(_ salvage: Salvage, _ tree: Tree) {
        (self.salvage, self.tree) = (salvage, tree)
        nameless = Set(salvage.nameless.map(\.content))
        unnamedCommits = Dictionary(
            salvage.unnamed.map { ($0.state.content, $0.state.commit) }, uniquingKeysWith: max)
    }

    var now: Timestamp { .now() }

    /// Builds the tree; returns the sectors that rows name.
    package mutating func build() throws(FileError) -> [Range<UInt64>] {
        try tree.makeRootDirectories()
        try reserveNumbers()
        try restoreRootDirectories()
        try salvage.forEachInode { recoveredInode throws(FileError) in
            // The counters may be lost, and no new inode may get the number of a later record.
            reserve(
                inodesThrough: recoveredInode.record.row.ino,
                contentsThrough: SnapshotID.isSnapshot(recoveredInode.record.row.content)
                    ? SnapshotID.number(recoveredInode.record.row.content) : recoveredInode.record.row.content
            )
            guard recoveredInode.record.row.mode & fileTypeMask == directoryType else { return }
            waiting[recoveredInode.record.row.ino] = recoveredInode.record
            place(recoveredInode)
        }
        for ino in waiting.keys.sorted() { _ = try directory(ino) }
        var count = 0
        try salvage.forEachInode { recoveredInode throws(FileError) in
            guard recoveredInode.record.row.mode & fileTypeMask != directoryType else { return }
            if try add(recoveredInode) { place(recoveredInode) }
            count += 1
            if count % Self.filesPerFlush == 0 {
                try tree.storeChanges()
                tree.trim(isKernelNotified: true)
            }
        }
        try addUnnamedOfEarlierRepairs()
        try settleSuperseded()
        try settleCopies()
        try settleTrash()
        try addNameless()
        try settleVersions()
        try addUnnamed()
        try settleShares()
        for source in try tree.tables.snapshots.sources() {
            try tree.tables.snapshots.align(of: source)
        }
        // Also names the photos in views.
        try tree.storeChanges()
        try restoreDirectories()
        try keepRecords()
        return used
    }

    /// Notes that an inode is in the tree.
    mutating func place(_ recoveredInode: Salvage.RecoveredInode) {
        if let found = recoveredInode.found { placed.append(found) }
    }

    /// Continues the numbering after all numbers that were found.
    private func reserveNumbers() throws(FileError) {
        reserve(
            inodesThrough: salvage.scan.records.lazy.map(\.id).filter { $0 <= Geometry.idMax }.max(),
            contentsThrough: salvage.scan.highestContent)
        defer { leaveOutNumbers() }
        for (block, bits) in salvage.selector.retiredBlocks {
            try tree.tables.identities.storeRetired(block: block, bits)
            try tree.tables.identities.markUnrecorded(RetiredIDs.records + block)
            let isOfContents = block >= RetiredIDs.contents
            let end = (block % RetiredIDs.contents + 1) * RetiredIDs.numbersPerBlock
            if isOfContents {
                tree.counters.content = max(tree.counters.content, end)
            } else {
                tree.counters.ino = max(tree.counters.ino, end)
            }
        }
    }

    private func reserve(inodesThrough ino: UInt64?, contentsThrough content: UInt64?) {
        // Higher numbers were never assigned.
        for (number, counter) in [(ino, \Counters.ino), (content, \Counters.content)] {
            guard let number, number <= Geometry.idMax else { continue }
            tree.counters[keyPath: counter] = max(tree.counters[keyPath: counter], number + 1)
        }
    }

    // MARK: Directories

    /// Gives the root directories their former owners, modes and attributes.
    private mutating func restoreRootDirectories() throws(FileError) {
        for ino in [WellKnownInode.root, WellKnownInode.moments, WellKnownInode.albums] {
            guard let recoveredInode = salvage.recoveredInode(ino) else { continue }
            let (inode, row) = (try tree.inode(ino), recoveredInode.record.row)
            guard row.mode & fileTypeMask == directoryType else { continue }
            (inode.row.mode, inode.row.uid, inode.row.gid) = (row.mode, row.uid, row.gid)
            inode.row.flags = row.flags
            try addDetails(recoveredInode.record, inode)
            directories.append(recoveredInode.record)
            place(recoveredInode)
        }
        // By this the next check knows that files may come back of which this catalogue tells nothing.
        let root = try tree.inode(WellKnownInode.root)
        root.row.flags.remove(.foundWithoutRecord)
        if salvage.lacksRecords { root.row.flags.insert(.foundWithoutRecord) }
        tree.touch(root)
    }

    /// Returns the directory that had this number, made with all above it. A directory whose record is lost becomes a
    /// stand-in below `albums/Recovered`, named after its number.
    mutating func directory(_ ino: UInt64, below depth: Int = 0) throws(FileError) -> Inode {
        if [WellKnownInode.root, WellKnownInode.moments, WellKnownInode.albums].contains(ino) {
            return try tree.inode(ino)
        }
        if ino == WellKnownInode.versions { return try tree.versions.versionsRoot() }
        if let place = places[ino] { return try tree.inode(place) }
        guard let record = waiting.removeValue(forKey: ino) else { return try standIn(ino) }
        // It has no place during this search, so a directory that contains itself ends in a stand-in.
        var name = record.names.first?.name ?? Array("\(ino)".utf8)
        var above: Inode
        if let entry = record.names.first, depth < Self.depthMax {
            above = try directory(entry.parent, below: depth + 1)
            if let stand = places[ino] { return try tree.inode(stand) }
            let isMisplaced = above.isDay || (above.ino == WellKnownInode.root && !isTrashName(name))
            if isMisplaced { above = try recoveredAlbum() }
        } else {
            above = try recoveredAlbum()
        }
        let isDay = above.ino == WellKnownInode.moments && dayNumber(named: name) == record.row.day
        if above.ino == WellKnownInode.moments {
            if !isDay {
                above = try recoveredAlbum()
            } else if let found = try tree.find(above, name) {
                places[ino] = found.inode.ino
                return found.inode
            }
        }
        name = try tree.freeName(above, name)
        var row = record.row
        row.nlink = 2
        if !isDay { row.day = 0 }
        let made = try insert(row)
        try tree.addEntry(above, name, made, now: now)
        try addDetails(record, made)
        places[ino] = ino
        directories.append(record)
        return made
    }

    private mutating func standIn(_ ino: UInt64) throws(FileError) -> Inode {
        let parent = try recoveredAlbum()
        let made = tree.makeInode(mode: directoryType | 0o755, in: parent, owner, now: now)
        made.row.nlink = 2
        try tree.addEntry(parent, try tree.freeName(parent, Array("\(ino)".utf8)), made, now: now)
        places[ino] = made.ino
        standIns.insert(ino)
        return made
    }

    var owner: Caller { Caller(uid: salvage.options.owner.uid, gid: salvage.options.owner.gid) }

    /// The album of files and directories whose place is lost.
    mutating func recoveredAlbum() throws(FileError) -> Inode {
        if let recovered { return try tree.inode(recovered) }
        let albums = try tree.inode(WellKnownInode.albums)
        let made = tree.makeInode(mode: directoryType | 0o755, in: albums, owner, now: now)
        made.row.nlink = 2
        try tree.addEntry(albums, try tree.freeName(albums, Array("Recovered".utf8)), made, now: now)
        recovered = made.ino
        return made
    }

    private func insert(_ row: InodeRow) throws(FileError) -> Inode {
        try tree.tables.inodes.store(row)
        return try tree.inode(row.ino)
    }

    private func addDetails(_ record: IdentityRecord, _ inode: Inode) throws(FileError) {
        for attribute in record.attributes {
            try tree.tables.attributes.store(inode.ino, attribute.name, attribute.value)
        }
        if record.row.mode & fileTypeMask == linkType {
            // In place of a lost target, one that leads nowhere: the name tells that there was a link.
            let target = record.target.isEmpty ? Array("?".utf8) : record.target
            inode.row.size = UInt64(target.count)
            tree.touch(inode)
            try tree.tables.links.store(inode.ino, target)
        }
    }

    /// Restores the times of directories, which new entries have changed.
    private func restoreDirectories() throws(FileError) {
        for record in directories {
            let inode = try tree.inode(record.row.ino)
            (inode.row.accessed, inode.row.modified) = (record.row.accessed, record.row.modified)
            inode.row.changed = record.row.changed
            tree.touch(inode)
        }
    }

    // MARK: Files

    /// Adds a file, link or node; false if it has no place in the tree. Of a file whose bytes are all lost the name
    /// stays, and reading it is an error.
    ///
    /// - Parameter isLast: whether what an earlier repair found without a name is added too; else it waits.
    mutating func add(
        _ recoveredInode: Salvage.RecoveredInode, isLast: Bool = false
    ) throws(FileError) -> Bool {
        let record = recoveredInode.record
        var row = record.row
        if !record.hasPlace { return false }
        let isRegular = row.mode & fileTypeMask == regularType
        var bytes = salvage.contents.bytes(of: recoveredInode)
        if isRegular {
            if !isLast, isUnnamed(record) {
                unnamed.append(recoveredInode)
                return false
            }
            if salvage.isSuperseded(record) {
                superseded.append(record)
                tree.marks.retire(inode: row.ino)
                return false
            }
            // Bytes that are newer than the record may have been found.
            bytes.isGuess = bytes.isGuess || (bytes.pieces.isEmpty && unnamedCommits[row.content] != nil)
            if bytes.isGone, nameless.contains(row.content) {
                // The number stays with what was found of the content: an older version, without a name.
                row.content = tree.counters.content
                tree.counters.content += 1
                bytes.forgetPlaces()
            } else if let teller = salvage.teller(of: row.content), teller != row.ino,
                let other = salvage.recoveredInode(teller)
            {
                let others = salvage.contents.bytes(of: other)
                if let id = ownSnapshot(row, bytes, besides: others) {
                    row.content = id
                } else if users[row.content] == nil {
                    try addRows(others, of: row.content)
                    users[row.content] = []
                }
            }
            if row.allocated > 0 || !bytes.pieces.isEmpty {
                (row.size, row.allocated) = (bytes.size, bytes.allocated)
            }
            // No file can be larger: the cut loses no bytes.
            if row.size > Geometry.fileBytesMax { row.size = bytes.pieces.last?.run.end ?? 0 }
            row.flags.remove(.shared)
            if bytes.isGuess { row.flags.insert(.foundWithoutRecord) }
            if unnamedCommits[row.content] ?? 0 > recoveredInode.generation { row.flags.insert(.olderRecord) }
            if users[row.content] == nil { try addRows(bytes, of: row.content) }
            users[row.content, default: []].append(row.ino)
        }
        row.flags.subtract([.trashed, .copy])
        if record.photo == nil { row.flags.subtract([.photo, .namedInMoments]) }
        let inode = try insert(row)
        try addDetails(record, inode)
        if record.row.flags.contains(.copy) { copies.append(row.ino) }
        if let photo = record.photo {
            try addPhoto(photo, record, inode)
        } else if record.row.flags.contains(.photo) {
            try addUndated(record, inode)
        } else {
            for name in record.names { try add(name, of: inode) }
        }
        // A kill may have come between a file's fsync(2) and its classification; no record tells.
        if isRegular, !inode.row.flags.contains(.photo), !record.row.flags.contains(.copy) {
            try tree.tables.pendingClassification.add(row.ino)
        }
        inode.row.changed = record.row.changed
        tree.touch(inode)
        return true
    }

    /// A snapshot for the bytes that a file's record names, if the record of another file with this content names
    /// other bytes: that file is a copy of what an earlier repair took for the content. Nil if both have the same
    /// bytes, or if this file has lost some.
    private func ownSnapshot(_ row: InodeRow, _ bytes: FoundBytes, besides others: FoundBytes) -> UInt64? {
        guard bytes.lostBytes == 0, !bytes.isGuess, !bytes.pieces.isEmpty,
            RangeSet(sectorsOf: bytes.stored) != RangeSet(sectorsOf: others.stored),
            let id = SnapshotID.make(of: row.content, number: tree.counters.content)
        else { return nil }
        tree.counters.content += 1
        return id
    }

    /// Adds a name where it was, numbered if it is taken.
    mutating func add(_ name: RecordedName, of inode: Inode) throws(FileError) {
        var parent = try directory(name.parent)
        if parent.ino == WellKnownInode.root || parent.ino == WellKnownInode.moments {
            parent = try recoveredAlbum()
        }
        let id = tree.counters.dentry
        try tree.addEntry(
            parent, try tree.freeName(parent, name.name), inode, isMember: name.isMember,
            isLink: name.isLink, now: now)
        tree.addLink(to: inode, now: now)
        guard let since = name.since, try tree.isInTrash(parent) else { return }
        try tree.tables.trash.store(TrashRow(ino: inode.ino, id: id, since: min(since, now.seconds)))
    }

    private mutating func addPhoto(
        _ photo: PhotoRow, _ record: IdentityRecord, _ inode: Inode
    ) throws(FileError) {
        var photo = photo
        var isInDay = false
        for name in record.names {
            // A day whose record is lost is made from the photo's own day.
            if !isInDay, record.trashed == nil, isLost(name.parent), !name.isMember,
                record.names.allSatisfy({ isLost($0.parent) || !isOfDay($0) })
            {
                try tree.moments.addMoment(inode, day: photo.day, name: name.name, now: now)
                isInDay = true
                continue
            }
            let parent = try directory(name.parent)
            if parent.isDay {
                if isInDay { continue }
                isInDay = true
                // The day was renamed since.
                if photo.day != parent.row.day { photo.pin(to: parent.row.day) }
            }
            try add(name, of: inode)
        }
        if photos[inode.row.content] == nil { photos[inode.row.content] = inode.ino }
        inode.row.flags.insert(.photo)
        try tree.tables.photos.store(photo)
        if let trashed = record.trashed, try isInTrash(inode) {
            inode.row.flags.insert(.trashed)
            var row = trashed
            row.since = min(row.since, now.seconds)
            try tree.tables.trash.store(row)
            kept += record.keptNames.map { (inode.ino, $0) }
        } else if !isInDay {
            let name = record.trashed?.name ?? record.names.first?.name ?? Array("\(inode.ino)".utf8)
            try tree.moments.addMoment(inode, day: photo.day, name: name, now: now)
        }
    }

    /// A photo whose row and record are lost is classified by its own date when the library is opened.
    private mutating func addUndated(_ record: IdentityRecord, _ inode: Inode) throws(FileError) {
        for name in record.names where try !directory(name.parent).isDay { try add(name, of: inode) }
        if inode.row.nlink == 0 {
            let name = record.names.first?.name ?? Array("\(inode.ino)".utf8)
            try add(RecordedName(parent: WellKnownInode.root, name: name, isMember: false), of: inode)
        }
        for name in try tree.names(of: inode) { try tree.tables.pendingClassification.add(name.parent) }
    }

    /// Whether a file has names, all of them in the trash.
    private func isInTrash(_ inode: Inode) throws(FileError) -> Bool {
        for name in try tree.names(of: inode) {
            guard try tree.isInTrash(tree.inode(name.parent)) else { return false }
        }
        return inode.row.nlink > 0
    }

    /// Whether nothing is known of a directory.
    private func isLost(_ ino: UInt64) -> Bool {
        ino >= WellKnownInode.firstOfUsers && (places[ino] == nil || standIns.contains(ino))
    }

    private func isOfDay(_ name: RecordedName) -> Bool {
        (try? tree.inode(places[name.parent] ?? name.parent).isDay) ?? false
    }

    // MARK: Relations

    /// Assigns copies to the photo with their content; without one they are classified as new files are.
    private mutating func settleCopies() throws(FileError) {
        for ino in copies {
            let inode = try tree.inode(ino)
            // A file in a day is no copy.
            if let photo = photos[inode.row.content], try tree.moments.moments(of: inode).isEmpty {
                try tree.tables.copies.store(ino, of: photo)
                inode.row.flags.insert(.copy)
            } else {
                for name in try tree.names(of: inode) {
                    try tree.tables.pendingClassification.add(name.parent)
                }
            }
            tree.touch(inode)
        }
    }

    /// Keeps the former names of photos in the trash, and of what went with them. Copies without any name go to
    /// `albums/Recovered`.
    private mutating func settleTrash() throws(FileError) {
        var owners: Set<UInt64> = []
        for (photo, name) in kept {
            var row = name
            guard !isLost(row.parent), let inode = try tree.existing(row.ino),
                row.ino == photo || inode.row.flags.contains(.copy) || inode.row.nlink > 0
            else { continue }
            row.parent = try directory(row.parent).ino
            row.id = tree.counters.dentry
            tree.counters.dentry += 1
            try tree.tables.trash.addName(row, of: photo)
            owners.insert(row.ino)
        }
        for ino in copies where !owners.contains(ino) {
            let inode = try tree.inode(ino)
            if inode.row.nlink > 0 { continue }
            let parent = try recoveredAlbum()
            try tree.addEntry(parent, try tree.freeName(parent, Array("\(ino)".utf8)), inode, now: now)
            tree.addLink(to: inode, now: now)
            try tree.tables.pendingClassification.add(parent.ino)
        }
    }

    private func settleShares() throws(FileError) {
        for (content, inodes) in users where inodes.count > 1 {
            try tree.tables.copies.store(users: Int64(inodes.count), of: content)
            for ino in inodes {
                let inode = try tree.inode(ino)
                inode.row.flags.insert(.shared)
                tree.touch(inode)
            }
        }
    }

    /// Records that match the tree stay where they are; the first commits write the others anew.
    private mutating func keepRecords() throws(FileError) {
        try tree.storeChanges()
        let newest = salvage.selector.recorder
        // The next salvage must count records of the newest mount that come back: nothing else proves their commits.
        try tree.tables.identities.storeRecorder(
            epoch: newest.epoch,
            generation: salvage.mayLackRecords ? Geometry.numberMax - 1 : newest.generation)
        let blocks = salvage.selector.records.values.filter { $0.id >= RetiredIDs.records }
        for found in placed + blocks {
            let known = try? tree.records.record(of: found.id)
            guard let told = salvage.read(found), told == known else { continue }
            try tree.tables.identities.store(found.id, found.run)
            try tree.tables.identities.unmarkUnrecorded(found.id)
            used.append(found.run.sector..<found.run.sector + UInt64(found.run.sectorCount))
        }
    }
}
