import LibraryFixtures
import TestFixtures
import TestSupport

/// A session's events once more, one after the other, and the states that a crash after each may leave.
struct CrashTour {
    /// A disk, and the trees that a mount of it may find.
    struct Crash {
        var disk: DiskState
        var allowed: [PublishedCommit]
        /// The state that a power cut after it may fall back to.
        var durable: PublishedCommit?
        /// Durable commits after that one which failed, and may count all the same.
        var tried: [PublishedCommit] = []
        var passwords: [String]
    }

    private(set) var now: DiskState
    private(set) var eventCount = 0
    /// The events by which operations began that are not answered, by their number.
    private var unanswered: [Int: Int] = [:]
    private let log: [DiskEvent]
    private let published: [(at: Int, commit: PublishedCommit, certainty: CrashSession.Certainty)]
    private let passwords: [(at: Int, words: [String])]

    init(_ session: CrashSession) {
        now = session.start
        log = session.disk.log
        published = session.moments.compactMap { moment in
            if case .published(let commit, let certainty) = moment.fact {
                return (moment.at, commit, certainty)
            }
            return nil
        }
        passwords = session.moments.compactMap { moment in
            if case .passwords(let words) = moment.fact { return (moment.at, words) }
            return nil
        }
    }

    /// Goes to the next event; false after the last.
    mutating func advance() -> Bool {
        guard eventCount < log.count else { return false }
        now.apply(log[eventCount])
        switch log[eventCount] {
        case .began(let operation): unanswered[operation.number] = eventCount
        case .answered(let number): unanswered[number] = nil
        default: break
        }
        eventCount += 1
        return true
    }

    /// The last events, for the message of a failing test.
    var history: String {
        let first = max(0, eventCount - 40)
        let events = log[first..<min(log.count, eventCount + 3)].enumerated().map {
            "\(first + $0 + 1) \($1)"
        }
        let roots = published.filter { $0.at >= first || $0.at == 0 }.map { at, commit, certainty in
            "\(commit.isDurable ? "durable" : "soft") root \(commit.generation) \(certainty) at \(at)"
        }
        return (roots + events).joined(separator: "\n")
    }

    /// The states that may count after a crash now: the newest commit that is certain enough, and those that may be
    /// there.
    ///
    /// - Parameter isMeant: whether a commit can count at all.
    private func candidates(
        from certainty: CrashSession.Certainty, _ isMeant: (PublishedCommit) -> Bool
    ) -> [PublishedCommit] {
        let resolve = published.filter { isMeant($0.commit) }
        let past = resolve.prefix { $0.at <= eventCount }
        // On a cluster, requests that a soft commit has begun may not have taken effect.
        let oldest = unanswered.values.min() ?? .max
        let safe =
            past.lastIndex { $0.certainty >= certainty && ($0.commit.isDurable || $0.at <= oldest) } ?? 0
        let coming = resolve[past.endIndex...].firstIndex { $0.certainty > .tried } ?? resolve.endIndex - 1
        return safe <= coming ? resolve[safe...coming].map(\.commit) : []
    }

    /// The newest durable commit by now that cannot be lost.
    private var safe: PublishedCommit? {
        published.last { $0.at <= eventCount && $0.commit.isDurable && $0.certainty == .published }?.commit
    }

    /// Syncs since then that failed.
    private var tried: [PublishedCommit] {
        let since = safe?.generation ?? 0
        return published.filter {
            $0.at <= eventCount && $0.certainty == .tried && $0.commit.generation > since
        }
        .map(\.commit)
    }

    private var currentPasswords: [String] { passwords.last { $0.at <= eventCount }?.words ?? [] }

    /// The process is gone, perhaps in the middle of the next write.
    func killed(using random: inout RandomSource) -> Crash {
        var disk = now
        if eventCount < log.count, case .wrote(let file, let pages) = log[eventCount], pages.count > 1,
            Bool.random(using: &random)
        {
            disk.apply(
                .wrote(file: file, Array(pages.prefix(Int.random(in: 1..<pages.count, using: &random)))))
        }
        return Crash(
            disk: disk, allowed: candidates(from: .written) { _ in true }, durable: safe, tried: tried,
            passwords: currentPasswords)
    }

    /// The power is gone, and `image` is left.
    func cut(_ image: DiskImage, isRebooting: Bool) throws -> Crash {
        Crash(
            disk: isRebooting ? try MemoryVault.rebooted(image) : DiskState(image),
            allowed: candidates(from: .published, \.isDurable), durable: nil, passwords: currentPasswords)
    }

    /// The client of a cluster is gone, and `disk` is left.
    func lost(_ disk: DiskState) -> Crash {
        Crash(
            disk: disk, allowed: candidates(from: .published) { _ in true }, durable: nil,
            passwords: currentPasswords)
    }
}
