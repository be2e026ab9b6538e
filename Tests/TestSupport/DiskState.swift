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
    /// An attribute of an object has a new value; empty for none.
    case attributed(file: Int, name: String, [UInt8])
    /// An operation on an object of a cluster has begun: it happens as a whole, or not.
    case began(ObjectOperation)
    /// Its client knows that it has happened.
    case answered(Int)
    /// An operation of a client that is gone happens now.
    case arrived(Int)
    /// It never will, as that client is shut out.
    case dropped(Int)
}

/// An operation on an object of a cluster.
public struct ObjectOperation: Sendable {
    public let number: Int
    let object: String
    let client: String
    /// Whether it happens only if no other client has the object's lock.
    let takesLock: Bool
    let events: [DiskEvent]
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
        case .attributed(let file, let name, let value): "attribute \(name) of \(file): \(value.count) bytes"
        case .began(let operation):
            "operation \(operation.number) on \(operation.object): "
                + operation.events.map(\.description).joined(separator: ", ")
        case .answered(let number): "answer to \(number)"
        case .arrived(let number): "late operation \(number)"
        case .dropped(let number): "refused operation \(number)"
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
    /// The clients of a cluster that are shut out.
    var fenced: Set<String> = []

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
        case .wrote, .resized, .punched, .entered, .attributed, .began:
            live.apply(event)
            pending.append(event)
        case .answered(let number): settle { $0 == .operation(number) }
        case .arrived(let number):
            for event in pending where Subject(event) == .operation(number) { live.apply(event) }
            settle { $0 == .operation(number) }
        case .dropped(let number): pending.removeAll { Subject($0) == .operation(number) }
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
        case operation(Int)

        init(_ event: DiskEvent) {
            switch event {
            case .wrote(let file, _), .resized(let file, _), .punched(let file, _), .synced(let file),
                .lost(let file), .attributed(let file, _, _):
                self = .file(file)
            case .began(let operation): self = .operation(operation.number)
            case .answered(let number), .arrived(let number), .dropped(let number): self = .operation(number)
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
        case .attributed(let file, let name, let value):
            files[file, default: FileImage()].attributes[name] = value.isEmpty ? nil : value
        case .began(let operation): for event in operation.events { apply(event) }
        case .synced, .syncedDirectory, .lost, .answered, .arrived, .dropped: break
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

    /// The objects of a cluster when a client has died: some of the requests that it had begun have taken effect. Some
    /// of the others still may, until the client is shut out.
    public func afterClientLoss(
        _ survival: Survival, using generator: inout some RandomNumberGenerator
    ) -> DiskState {
        var image = durable
        var late: [DiskEvent] = []
        let chosen = Int.random(in: 0..<max(1, pending.count), using: &generator)
        let salt = UInt64.random(in: 0...UInt64.max, using: &generator)
        for (index, event) in pending.enumerated() {
            guard case .began(let operation) = event else { continue }
            let happens =
                switch survival {
                case .nothing: false
                case .everything: true
                case .beginning: index < chosen
                case .end: index >= chosen
                case .someWrites, .someSectors: Bool.random(using: &generator)
                case .allButOne: index != chosen
                case .onlyOne: index == chosen
                case .someFiles: isOfChosenFile(event, salt)
                }
            guard happens else {
                late.append(event)
                continue
            }
            image.apply(event)
            // Operations on one object happen in order.
            late.removeAll {
                if case .began(let other) = $0 { other.object == operation.object } else { false }
            }
        }
        var state = DiskState(image)
        state.fenced = fenced
        if Bool.random(using: &generator) { state.pending = late }
        return state
    }

    private func isOfChosenFile(_ event: DiskEvent, _ salt: UInt64) -> Bool {
        switch event {
        case .began(let operation):
            (salt >> UInt64(operation.object.utf8.reduce(0) { $0 + Int($1) } % 64)) & 1 == 1
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
