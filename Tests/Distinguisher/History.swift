/// The events of the two vaults of a pair: the same options, the same sessions of the decoy with the same photos.
/// In one there are also hidden spaces and their sessions; in the other their owner's statement is true: the
/// decoy's password was changed, and the decoy was looked at.
public struct History: Sendable {
    /// How a session ends.
    enum Ending: Sendable {
        case unmount
        /// At once, after the last change of the session.
        case kill
        /// While it unmounts, after so many more changes of the disk.
        case killWhileUnmounting(Int)
    }

    /// From a mount to its end.
    struct Session: Sendable {
        /// 0: the decoy; others are hidden.
        var space: Int
        var seed: UInt64
        var actionCount: Int
        var ending: Ending
        /// The rest before it ends: by then the program has done its remaining work by itself.
        var restMilliseconds = 0
        /// Bytes of one more file, besides the actions.
        var bytes = 0
    }

    /// Which session is the last before the copy is taken.
    public enum LastSession: Sendable { case any, hidden }

    /// A `grow` before the session with this number.
    struct Growth: Sendable {
        var session: Int
        /// Killed after so many changes of the disk, and so left to the next mount to even out.
        var killedAfter: Int?
    }

    /// Spaces that the vault has.
    var spaceCount: Int
    /// Spaces in use, the decoy among them, in the vault that has hidden ones.
    var usedCount: Int
    /// Whether the vault was made with a hidden space's password, the decoy being added then.
    var isDecoyAdded: Bool
    /// Whether a space that is unused at last was in use before, and destroyed.
    var hasDestroyed: Bool
    var trashDays: Int
    var sessions: [Session]
    var growth: Growth?
    var bytesPerSpace = Self.bytesPerSpace

    static let bytesPerSpace: UInt64 = 16 << 20
    static let grownBytesPerSpace: UInt64 = 20 << 20

    /// - Parameter isPlain: two spaces, the decoy added to a hidden one, nothing destroyed, no growth: what every leak
    ///   shows in.
    public init(seed: UInt64, last: LastSession, isPlain: Bool) {
        var generator = Generator(seed)
        spaceCount = isPlain || Int.random(in: 0..<3, using: &generator) > 0 ? 2 : 3
        usedCount = Int.random(in: 2...spaceCount, using: &generator)
        isDecoyAdded = Bool.random(using: &generator) || isPlain
        hasDestroyed = Int.random(in: 0..<4, using: &generator) == 0 && !isPlain
        trashDays = Bool.random(using: &generator) ? 0 : 30
        sessions = []
        for space in 0..<usedCount {
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                sessions.append(Self.session(of: space, &generator))
            }
        }
        sessions.shuffle(using: &generator)
        // A space shows inside when it was first mounted, and so whether that was before photos were put into it: who
        // wants other sessions to pass for looks at the decoy has put something into that first.
        if let index = sessions.firstIndex(where: { $0.space == 0 }) { sessions.swapAt(0, index) }
        // A mistake that shows after a while shows in all of them.
        if isPlain {
            for index in sessions.indices {
                sessions[index].restMilliseconds = Int.random(in: 8000...40_000, using: &generator)
            }
        }
        if last == .hidden, let index = sessions.firstIndex(where: { $0.space > 0 }) {
            sessions.append(sessions.remove(at: index))
        }
        // The promise is for a copy after a clean unmount; and what is seen inside a space that was killed goes at
        // its own next mount.
        if let index = sessions.lastIndex(where: { $0.space == 0 }) { sessions[index].ending = .unmount }
        sessions[sessions.count - 1].ending = .unmount
        if Int.random(in: 0..<4, using: &generator) == 0 && !isPlain {
            growth = Growth(
                session: Int.random(in: 0..<sessions.count, using: &generator),
                killedAfter: Bool.random(using: &generator)
                    ? nil : Int.random(in: 0..<20, using: &generator))
        }
    }

    /// Two spaces, and one session of each, of which the hidden one writes 1 to 8 MB more.
    ///
    /// - Parameter isSmall: in a small vault, and never less than 6 MB more.
    init(bytesSeed seed: UInt64, isSmall: Bool) {
        self.init(seed: seed, last: .hidden, isPlain: true)
        var generator = Generator(seed &+ 1)
        trashDays = 30
        isDecoyAdded = Bool.random(using: &generator)
        sessions = (0..<2).map { space in
            var session = Self.session(of: space, &generator)
            (session.ending, session.restMilliseconds) = (.unmount, 0)
            return session
        }
        sessions[1].bytes = Int.random(in: (isSmall ? 6_000_000 : 1_000_000)...8_000_000, using: &generator)
        bytesPerSpace = isSmall ? 32 << 20 : 64 << 20
    }

    private static func session(of space: Int, _ generator: inout Generator) -> Session {
        let ending: Ending =
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: .kill
            case 1: .killWhileUnmounting(Int.random(in: 0..<40, using: &generator))
            default: .unmount
            }
        var session = Session(
            space: space, seed: generator.next(), actionCount: Int.random(in: 1...5, using: &generator),
            ending: ending)
        if Int.random(in: 0..<4, using: &generator) > 0 {
            session.restMilliseconds = Int.random(in: 1000...40_000, using: &generator)
        }
        return session
    }
}

/// A small generator whose seed a run prints (SplitMix64).
public struct Generator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(_ seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
