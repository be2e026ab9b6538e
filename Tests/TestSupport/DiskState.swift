/// Something that was done to a disk.
public enum DiskEvent: Sendable {
    /// pwrite(2).
    case wrote(file: Int, [WrittenPage])
    /// ftruncate(2), or fallocate(2) that made the file longer.
    case resized(file: Int, size: UInt64)
    /// fallocate(2), FALLOC_FL_PUNCH_HOLE.
    case punched(file: Int, pages: Range<Int>)
    /// mkdir(2): an empty directory, which nothing can be lost of but its name.
    case madeDirectory(Int)
    /// A name came, or went (nil).
    case entered(directory: Int, name: String, inode: Int?)
    /// fdatasync(2) or fsync(2) of a file succeeded.
    case synced(file: Int)
    /// The same of a directory.
    case syncedDirectory(Int)
    /// fdatasync(2) failed: Linux takes unwritten pages for clean, and never writes them.
    case lost(file: Int)
}

extension DiskEvent: CustomStringConvertible {
    /// For the message of a failing test: inode numbers, and pages of 4096 bytes.
    public var description: String {
        switch self {
        case .wrote(let file, let pages):
            "write \(file): \(pages.first.map { "\($0.index)" } ?? "nothing")+\(pages.count)"
        case .resized(let file, let size): "resize \(file) to \(size)"
        case .punched(let file, let pages): "punch \(file): \(pages)"
        case .madeDirectory(let inode): "mkdir \(inode)"
        case .entered(_, let name, let inode): inode.map { "create \(name) as \($0)" } ?? "remove \(name)"
        case .synced(let file): "sync \(file)"
        case .syncedDirectory(let directory): "sync directory \(directory)"
        case .lost(let file): "failed sync \(file)"
        }
    }
}

/// A disk with the writes that the kernel still holds.
public struct DiskState: Sendable {
    /// As programs see it, and as it outlives a killed process.
    public internal(set) var live: DiskImage
    /// The least that a power cut leaves.
    public internal(set) var durable: DiskImage
    /// Not synced, in the order in which it was done.
    public internal(set) var pending: [DiskEvent] = []

    /// A disk after a power cut: nothing is pending.
    public init(_ image: DiskImage) {
        live = image
        durable = image
    }

    public mutating func apply(_ event: DiskEvent) {
        switch event {
        case .synced(let file): settle { $0 == .file(file) }
        case .syncedDirectory(let directory): settle { $0 == .directory(directory) }
        case .lost(let file): pending.removeAll { Subject($0) == .file(file) }
        case .madeDirectory:
            live.apply(event)
            durable.apply(event)
        case .wrote, .resized, .punched, .entered:
            live.apply(event)
            pending.append(event)
        }
    }

    /// Makes everything durable.
    public mutating func settleAll() { settle { _ in true } }

    private mutating func settle(_ isMeant: (Subject) -> Bool) {
        var left: [DiskEvent] = []
        for event in pending {
            if isMeant(Subject(event)) { durable.apply(event) } else { left.append(event) }
        }
        pending = left
    }

    /// The file or directory to sync for an event to be durable.
    private enum Subject: Equatable {
        case file(Int)
        case directory(Int)

        init(_ event: DiskEvent) {
            switch event {
            case .wrote(let file, _), .resized(let file, _), .punched(let file, _), .synced(let file),
                .lost(let file):
                self = .file(file)
            case .entered(let directory, _, _), .syncedDirectory(let directory),
                .madeDirectory(let directory):
                self = .directory(directory)
            }
        }
    }
}

extension DiskImage {
    /// Repeats an event; `part` chooses among the sectors that it wrote.
    mutating func apply(_ event: DiskEvent) {
        switch event {
        case .wrote(let file, let parts): for page in parts { files[file, default: FileImage()].apply(page) }
        case .resized(let file, let size): files[file, default: FileImage()].resize(to: size)
        case .punched(let file, let pages): files[file]?.punch(pages)
        case .entered(let directory, let name, let inode): directories[directory, default: [:]][name] = inode
        case .madeDirectory(let inode): directories[inode] = [:]
        case .synced, .syncedDirectory, .lost: break
        }
    }
}

/// How many unsynced writes a power cut leaves.
public enum Survival: CaseIterable, Sendable {
    case nothing, everything
    /// The first so many writes, the last of them torn.
    case beginning
    /// The last so many writes.
    case end
    /// Each write, or not.
    case someWrites
    /// Each sector, or not; of one written several times, any of its versions.
    case someSectors
    /// All but one write, or one sector of it.
    case allButOne
    /// One write alone, or one sector of it.
    case onlyOne
    /// All of some files, nothing of the others.
    case someFiles
}

extension DiskState {
    /// The disk as it may be after a power cut: all durable writes, and any part of the others.
    public func afterPowerCut(
        _ survival: Survival, using generator: inout some RandomNumberGenerator
    ) -> DiskImage {
        var image = durable
        let count = pending.count
        guard count > 0 else { return image }
        let chosen = Int.random(in: 0..<count, using: &generator)
        let isTorn = Bool.random(using: &generator)
        let salt = UInt64.random(in: 0...UInt64.max, using: &generator)
        for (index, event) in pending.enumerated() {
            switch survival {
            case .nothing: break
            case .everything: image.apply(event)
            case .beginning:
                if index < chosen { image.apply(event) }
                if index == chosen && isTorn { image.applySome(event, using: &generator) }
            case .end: if index >= chosen { image.apply(event) }
            case .someWrites: if Bool.random(using: &generator) { image.apply(event) }
            case .someSectors: image.applySome(event, using: &generator)
            case .allButOne:
                if index != chosen {
                    image.apply(event)
                } else if isTorn {
                    image.applySome(event, using: &generator)
                }
            case .onlyOne:
                if index == chosen {
                    if isTorn { image.applySome(event, using: &generator) } else { image.apply(event) }
                }
            case .someFiles: if isOfChosenFile(event, salt) { image.apply(event) }
            }
        }
        extendSome(&image, using: &generator)
        return image
    }

    private func isOfChosenFile(_ event: DiskEvent, _ salt: UInt64) -> Bool {
        switch event {
        case .wrote(let file, _), .resized(let file, _), .punched(let file, _):
            (salt >> UInt64(file % 64)) & 1 == 1
        default: salt & 1 == 1
        }
    }

    /// A file's new size may be there without its bytes: zeros.
    private func extendSome(_ image: inout DiskImage, using generator: inout some RandomNumberGenerator) {
        guard Int.random(in: 0..<4, using: &generator) == 0 else { return }
        for (file, content) in live.files {
            if let size = image.files[file]?.size, size < content.size, Bool.random(using: &generator) {
                image.files[file]?.resize(to: content.size)
            }
        }
    }
}

extension DiskImage {
    /// Sectors are decided on one by one up to this size of a write, and in eights beyond.
    private static let finePages = 64

    /// Repeats part of an event: any of the sectors it wrote.
    fileprivate mutating func applySome(_ event: DiskEvent, using generator: inout some RandomNumberGenerator)
    {
        guard case .wrote(let file, let parts) = event else {
            if Bool.random(using: &generator) { apply(event) }
            return
        }
        // Not always as many lost as kept.
        let share = UInt64.random(in: 1...7, using: &generator)
        var bits = generator.next()
        var bitsLeft = 21
        func isKept() -> Bool {
            if bitsLeft == 0 {
                bits = generator.next()
                bitsLeft = 21
            }
            defer {
                bits >>= 3
                bitsLeft -= 1
            }
            return bits & 7 < share
        }
        for page in parts {
            if parts.count > Self.finePages {
                if isKept() { files[file, default: FileImage()].apply(page) }
                continue
            }
            for sector in page.sectors where isKept() {
                var piece = page
                piece.sectors = sector..<sector + 1
                files[file, default: FileImage()].apply(piece)
            }
        }
    }
}
