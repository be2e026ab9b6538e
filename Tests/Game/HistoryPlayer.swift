/// Which vault of a pair it is: the secret that the classifier is to find.
public enum World: Int, CaseIterable, Sendable {
    /// The decoy is all there is.
    case alone
    /// Other spaces are in use.
    case hidden
}

/// Who plays a history in one vault, by the library or by the program, and leaves the vault as it is found by whoever
/// takes a copy. Space 0 is the decoy; which of the vault's spaces it gets is left to chance.
protocol HistoryPlayer {
    var history: History { get }
    var world: World { get }

    /// Makes the vault, `space` getting the first password.
    func create(_ space: Int) throws
    func add(_ space: Int, surviving: [Int]) throws
    /// Destroys a space.
    func remove(_ space: Int) throws
    func grow(_ growth: History.Growth) throws
    /// Mounts, acts and ends as the session says. What fails after a kill is no failure.
    func visit(_ session: History.Session) throws
    /// Mounts the decoy instead, looks at all that it holds and changes nothing.
    func look(_ session: History.Session) throws
    /// Between two sessions.
    func pass(before session: Int) throws
}

extension HistoryPlayer {
    func play() throws {
        try makeSpaces()
        for (number, session) in history.sessions.enumerated() {
            if let growth = history.growth, growth.session == number { try grow(growth) }
            try pass(before: number)
            if session.space == 0 || world == .hidden {
                try visit(session)
            } else {
                // Who hides something says of each of those sessions that it was a look at the decoy.
                try look(session)
            }
        }
    }

    func pass(before session: Int) throws {}

    private func makeSpaces() throws {
        let isDecoyAdded = history.isDecoyAdded && world == .hidden
        let first = isDecoyAdded ? 1 : 0
        try create(first)
        var present = [first]
        let others = world == .hidden ? (1..<history.usedCount).filter { $0 != first } : []
        for space in (isDecoyAdded ? [0] : []) + others {
            try add(space, surviving: present)
            present.append(space)
        }
        if world == .alone && history.hasDestroyed {
            try add(1, surviving: present)
            try visit(History.Session(space: 1, seed: 1, actionCount: 3, ending: .unmount))
            try remove(1)
        }
    }
}
