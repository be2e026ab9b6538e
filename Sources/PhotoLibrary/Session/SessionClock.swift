/// The wall clock of one session.
package struct SessionClock: Sendable {
    /// Tolerated difference between the clocks, in seconds: corrections of a synchronized clock are smaller.
    private static let jumpSecondsMax: Int64 = 600

    private let clocks: Clocks
    /// The wall clock when the session began.
    let start: Int64
    private let bootStart: Int64

    init(_ clocks: Clocks) {
        self.clocks = clocks
        start = clocks.wall()
        bootStart = clocks.boot()
    }

    package var wall: Int64 { clocks.wall() }
    /// The wall clock's expected time, if it was not set.
    var expected: Int64 { start + clocks.boot() - bootStart }
    var hasJumped: Bool { abs(wall - expected) > Self.jumpSecondsMax }
}
