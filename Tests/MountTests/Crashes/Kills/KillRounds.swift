import Foundation
import Glibc
import TestSupport
import Testing

/// Rounds of work in one vault, each of which ends with a kill of the daemon, or has kills of its workers; after each,
/// all that must be there is looked for.
final class KillRounds {
    enum Kind: CaseIterable {
        /// In the middle of it all.
        case atWork
        /// When all work is done, and in a root.
        case atRest
        /// During an unmount.
        case leaving
        /// Its workers, while thumbnails are made; the mount goes on.
        case workers
    }

    /// A violation, in words.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let place: Place
    let seed: UInt64
    private var random: RandomSource
    private let workers: [KillWorker]
    private let roots: RootWatch
    private(set) var killed: [Kind: Int] = [:]
    /// Of the kind of kill, the next one.
    private var kinds: [Kind] = []

    init(spaces: Int, isLeast: Bool, seed: UInt64) throws {
        self.seed = seed
        random = RandomSource(seed)
        let place = try Place(spaces: spaces, size: "96M", isLeast: isLeast)
        self.place = place
        workers = (0..<4).map { number in
            KillWorker(place, number: number, isCarrier: number == 3, seed: seed &* 100 &+ UInt64(number))
        }
        roots = RootWatch(vault: place.vault)
        try place.mount()
    }

    /// Plays so many rounds and unmounts.
    func play(_ rounds: Int) throws {
        for round in 0..<rounds {
            let kind = nextKind()
            do { try play(kind) } catch {
                throw Failure(description: "seed \(seed), round \(round), \(kind): \(error)")
            }
        }
        try place.unmount()
    }

    /// All kinds come equally often, those in the middle of work three times as often.
    private func nextKind() -> Kind {
        if kinds.isEmpty { kinds = (Kind.allCases + [.atWork, .atWork]).shuffled(using: &random) }
        let kind = kinds.removeLast()
        killed[kind, default: 0] += 1
        return kind
    }

    private func play(_ kind: Kind) throws {
        let daemon = try daemon()
        try work(kind, daemon)
        for worker in workers { if let failure = worker.failure { throw failure } }
        switch kind {
        case .atWork: break
        case .atRest:
            try awaitRoots()
            kill(daemon, SIGKILL)
        case .leaving: try killLeaving(daemon)
        case .workers:
            try judgeThumbnails(daemon)
            try judge(isExact: true)
            try place.unmount()
        }
        try awaitEnd()
        try comeBack(isRetired: kind == .atWork || kind == .atRest)
        try judge(isExact: kind == .atRest || kind == .workers)
    }

    private func daemon() throws -> pid_t {
        guard let daemon = place.daemon else { throw Failure(description: "there is no daemon") }
        return daemon
    }

    // MARK: Killing

    /// Everybody works until the daemon is killed, or enough is done.
    private func work(_ kind: Kind, _ daemon: pid_t) throws {
        let count = Int.random(in: 10...(Bool.random(using: &random) ? 100 : 800), using: &random)
        let clock: KillSwitch
        switch kind {
        case .atWork: clock = KillSwitch(after: [count]) { kill(daemon, SIGKILL) }
        case .atRest, .leaving: clock = KillSwitch(after: [count]) {}
        case .workers:
            clock = KillSwitch(after: (0..<5).map { _ in Int.random(in: 10...100, using: &random) }) {
                for worker in pictureWorkers(of: daemon).prefix(1) { kill(worker, SIGKILL) }
            }
        }
        let group = DispatchGroup()
        for worker in workers {
            group.enter()
            Thread.detachNewThread {
                worker.work(clock)
                group.leave()
            }
        }
        let (roots, workers) = (roots, workers)
        group.enter()
        Thread.detachNewThread {
            roots.watch(workers.map(\.journal)) { !clock.isOver }
            group.leave()
        }
        group.wait()
    }

    /// Waits until all that was done before is in a root.
    private func awaitRoots() throws {
        // There is always something to commit.
        let marker = place.albums + "/marker"
        let isCommitted = roots.awaitRoot {
            // A kill may have left it.
            mkdir(marker, 0o755) == 0 || errno == EEXIST ? rmdir(marker) == 0 : false
        }
        if !isCommitted { throw Failure(description: "no root is published") }
        for worker in workers { worker.journal.noteSafe(worker.journal.done) }
    }

    /// Kills the daemon while it is being unmounted.
    private func killLeaving(_ daemon: pid_t) throws {
        let process = try Child([obscura, "unmount", place.mountPoint])
        usleep(UInt32.random(in: 0...60_000, using: &random))
        kill(daemon, SIGKILL)
        process.wait()
    }

    /// Waits until nobody holds the vault: a process that ends has no command line any more, but still its files.
    private func awaitEnd() throws {
        let header = open(place.vault + "/obscura.vault", O_RDONLY | O_CLOEXEC)
        defer { close(header) }
        guard eventually({ flock(header, LOCK_EX | LOCK_NB) == 0 }) else {
            throw Failure(description: "the daemon lives on")
        }
    }

    /// Mounts again, with a check before or after it.
    private func comeBack(isRetired: Bool) throws {
        let isCheckedBefore = Bool.random(using: &random)
        if isCheckedBefore { try must(["check", place.vault, "--password-stdin"]) }
        let words = try must(["mount", place.vault, place.mountPoint, "--password-stdin"])
        if isRetired && !words.contains("a dead mount was left here; it has been unmounted") {
            throw Failure(description: "the mount says nothing of the dead one: \(words)")
        }
        if !isCheckedBefore { try must(["check", place.mountPoint]) }
    }

    @discardableResult
    private func must(_ words: [String]) throws -> String {
        let ended = try place.run([obscura] + words, "one\n")
        guard ended.status == 0 else {
            throw Failure(description: "\(words): \(ended.status): \(ended.output)\(ended.errors)")
        }
        return ended.errors
    }

    // MARK: Judging

    /// - Parameter isExact: nothing that was done may be missing.
    private func judge(isExact: Bool) throws {
        try judgeMoments()
        for worker in workers {
            if isExact { worker.journal.noteSafe(worker.journal.done) }
            let judge = KillJudge(found: try tree(of: worker))
            let candidates = worker.journal.candidates
            switch judge.match(candidates) {
            case .success(let state):
                try clearAway(judge.found.keys.filter { state[$0] == nil })
                worker.journal.restart(from: state)
            case .failure(let mismatch):
                let words = (mismatch.words + worker.journal.history).joined(separator: "\n")
                throw Failure(
                    description: "\(worker.name), the best of \(candidates.count) states:\n\(words)")
            }
        }
    }

    /// The files of a worker that are there.
    private func tree(of worker: KillWorker) throws -> [String: FoundFile] {
        var found: [String: FoundFile] = [:]
        let home = "albums/" + worker.name
        guard exists(place.mountPoint + "/" + home) else { return found }
        var paths = [home]
        let below = FileManager.default.enumerator(atPath: place.mountPoint + "/" + home)
        while let path = below?.nextObject() as? String { paths.append("\(home)/\(path)") }
        paths += try moments().filter { $0.contains("/\(worker.name)-") }
        for path in paths {
            let real = place.mountPoint + "/" + path
            let status = try status(real)
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            let content = isDirectory ? .directory : Content(try place.bytes(real))
            found[path] = FoundFile(content: content, inode: UInt64(status.st_ino))
        }
        return found
    }

    private func moments() throws -> [String] {
        let manager = FileManager.default
        return try manager.contentsOfDirectory(atPath: place.moments).flatMap { day in
            try manager.contentsOfDirectory(atPath: place.moments + "/" + day).map { "moments/\(day)/\($0)" }
        }
    }

    /// Each photo is in moments once.
    private func judgeMoments() throws {
        let inodes = try moments().map { try status(place.mountPoint + "/" + $0).st_ino }
        if Set(inodes).count != inodes.count { throw Failure(description: "a photo is twice in moments") }
    }

    /// Removes unfinished files and photos made of them, so that they do not come back.
    private func clearAway(_ paths: [String]) throws {
        if paths.isEmpty { return }
        // From moments first, and before the directories they are in.
        for path in paths.sorted().reversed() {
            let real = place.mountPoint + "/" + path
            // A photo that went from moments may be known here a moment longer.
            if unlink(real) == 0 || errno == ENOENT || rmdir(real) == 0 { continue }
            throw Failure(description: "\(path) does not go: \(String(cString: strerror(errno)))")
        }
        let albums = open(place.albums, O_RDONLY | O_CLOEXEC)
        defer { close(albums) }
        guard fsync(albums) == 0 else { throw Failure(description: "fsync of albums fails") }
    }

    /// The daemon lives, and every photo has its thumbnail.
    private func judgeThumbnails(_ daemon: pid_t) throws {
        guard place.daemon == daemon else { throw Failure(description: "the daemon has gone with a worker") }
        for worker in workers {
            for photo in worker.photos {
                guard let bytes = try? place.bytes(worker.thumbnail(photo)), bytes.starts(with: [0xFF, 0xD8])
                else { throw Failure(description: "\(photo) has no thumbnail") }
            }
        }
    }
}

/// Processes that decode pictures for a daemon, without those that they forked.
private func pictureWorkers(of daemon: pid_t) -> [pid_t] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { pid_t($0) }.filter { process in
        // "PID (NAME) STATE PARENT …"; the name has no spaces.
        let words = kernelText("/proc/\(process)/stat")?.split(
            separator: " ")
        guard let words, words.count > 3 else { return false }
        return words[1] == "(obscura-worker)" && words[3] == "\(daemon)"
    }
}

/// Sees roots being published, in the vault's files: so it is known without a clock which changes a root has.
struct RootWatch: Sendable {
    let vault: String

    /// A commit that began before a moment may still write two copies of its root, and where one is torn mend those of
    /// others. The next one holds all that was done at that moment.
    private static let changesMin = 6
    private static let rootsBytes = 12 * pageBytes
    private static let pageBytes = 4096
    private static let intervalMicroseconds: UInt32 = 5000

    /// While `goesOn`: tells journals which changes are in a root.
    func watch(_ journals: [Journal], _ goesOn: () -> Bool) {
        while goesOn() {
            let done = journals.map(\.done)
            if !awaitRoot(goesOn) { return }
            for (journal, number) in zip(journals, done) { journal.noteSafe(number) }
        }
    }

    /// Waits until all that was done before is in a root; false where `goesOn`, which is asked again and again, ended
    /// that.
    func awaitRoot(_ goesOn: () -> Bool) -> Bool {
        var (seen, changes) = (roots(), 0)
        while changes < Self.changesMin {
            guard goesOn() else { return false }
            usleep(Self.intervalMicroseconds)
            let now = roots()
            if now != seen { (seen, changes) = (now, changes + 1) }
        }
        return true
    }

    /// Some of every root's bytes: sealed, they are others with each.
    private func roots() -> [UInt8] {
        (0..<2).flatMap { space in
            (0..<2).flatMap { number -> [UInt8] in
                guard let file = try? SegmentFile(vault, space: space, number),
                    let bytes = try? file.read(count: Self.rootsBytes)
                else { return [] }
                return stride(from: 0, to: bytes.count, by: Self.pageBytes).flatMap { bytes[$0..<$0 + 16] }
            }
        }
    }
}
