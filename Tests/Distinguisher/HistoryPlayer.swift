/// Which vault of a pair it is: the secret that the classifier is to find.
public enum World: Int, CaseIterable, Sendable {
    /// The decoy is all there is.
    case alone
    /// Other spaces are in use.
    case hidden
}

/// A player of a history in one vault, by the library or by the program, and leaves the vault ready to be
/// copied. Space 0 is the decoy; which of the vault's spaces it gets is left to chance. Negative numbers are
/// the decoy too, under passwords that it has for a time.
protocol HistoryPlayer {
    var history: History { get }
    var world: World { get }

    /// Makes the vault, `space` getting the first password.
    func create(_ space: Int) throws
    func add(_ space: Int, surviving: [Int]) throws
    /// Changes the decoy's password: zero is the one that the attacker gets.
    func changePassword(_ old: Int, to new: Int) throws
    /// Destroys a space.
    func remove(_ space: Int) throws
    func grow(_ growth: History.Growth) throws
    /// Mounts, acts and ends as the session says. An error after a kill is no failure.
    func visit(_ session: History.Session) throws
    /// Mounts the decoy instead, looks at all that it holds, changes nothing, and ends as the session does.
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
                // An owner who hides something says of each of those sessions that it was a look at the decoy.
                try look(session)
            }
        }
    }

    func pass(before session: Int) throws {}

    private func makeSpaces() throws {
        let others = history.usedCount - 1
        switch world {
        case .alone:
            // An owner who adds a space says of it that a password was changed.
            try create(-others)
            for number in (0..<others).reversed() { try changePassword(-number - 1, to: -number) }
        case .hidden:
            var spaces = Array(0...others)
            if history.isDecoyAdded { spaces.swapAt(0, 1) }
            try create(spaces[0])
            for number in spaces.indices.dropFirst() {
                try add(spaces[number], surviving: Array(spaces[..<number]))
            }
        }
        guard history.hasDestroyed else { return }
        let session = History.Session(space: 1, seed: 1, actionCount: 3, ending: .unmount)
        switch world {
        case .alone:
            try add(1, surviving: [0])
            try visit(session)
            try remove(1)
        case .hidden:
            // Not a look: the decoy shows inside whether it was first mounted before anything was put into it.
            try changePassword(0, to: -1)
            try visit(session)
            try changePassword(-1, to: 0)
        }
    }
}
