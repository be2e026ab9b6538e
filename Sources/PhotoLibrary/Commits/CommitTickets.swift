import FileRequests

/// Requests for durable commits, numbered as they come, and the failures of those that were not met.
struct CommitTickets {
    private var asked: UInt64 = 0
    private var answered: UInt64 = 0
    /// Failures that their requests have not received yet. Each has its own: another request may come between a failed
    /// commit and the moment when the one before it wakes up.
    private var failures: [UInt64: FileError] = [:]

    /// The newest request.
    var newest: UInt64 { asked }
    /// Whether a request waits for its answer.
    var isAsked: Bool { asked > answered }

    /// Requests a durable commit that begins after this call.
    mutating func ask() -> UInt64 {
        asked += 1
        return asked
    }

    func isAnswered(_ ticket: UInt64) -> Bool { answered >= ticket }

    /// Answers all requests up to `ticket`.
    mutating func answer(through ticket: UInt64, _ failure: FileError?) {
        guard ticket > answered else { return }
        if let failure { for number in answered + 1...ticket { failures[number] = failure } }
        answered = ticket
    }

    /// The failure of a request, which it receives once; nil if it was met, or was not answered.
    mutating func takeFailure(of ticket: UInt64) -> FileError? { failures.removeValue(forKey: ticket) }
}
