import TestSupport
import Testing

@testable import PhotoLibrary

/// I3 and I4 by a clock of the test's: when the roots begin that have a change.
@Suite("Crashes: when commits begin") struct CommitScheduleTests {
    typealias Task = CommitSchedule.Task

    /// A committer whose tasks take as long as is said, and that does nothing else.
    struct Clocked {
        var schedule = CommitSchedule()
        var now: Int64 = 1_000_000
        var random: RandomSource
        /// When the changes happened that are in no root, and those that are in no durable root.
        var unpublished: [Int64] = []
        var undurable: [Int64] = []
        var longest: (soft: Int64, durable: Int64) = (0, 0)
        var done: [Task] = []

        init(seed: UInt64) {
            random = RandomSource(seed)
            schedule.endExpiring(at: now, isLeft: false)
        }

        mutating func change() {
            unpublished.append(now)
            undurable.append(now)
            if schedule.softSince == nil { schedule.noteChange(at: now) }
        }

        /// Passes time, with changes at random within it.
        mutating func pass(_ milliseconds: Int64) {
            for _ in 0..<milliseconds {
                now += 1
                if Int.random(in: 0..<40, using: &random) == 0 { change() }
                if Int.random(in: 0..<500, using: &random) == 0 { schedule.noteUnsaved(at: now) }
                if Int.random(in: 0..<3000, using: &random) == 0 { schedule.checkTrash(at: now) }
            }
        }

        /// Does what is due, or waits until something is or for a millisecond.
        mutating func step() {
            let task = schedule.task(at: now, isAsked: false, isFull: false)
            if case .wait = task {} else { done.append(task) }
            switch task {
            case .wait(let time):
                #expect(time > now)
                pass(1)
            case .commit(let isDurable):
                commit(durable: isDurable)
            case .saveFiles:
                schedule.beginSaving()
                pass(Int64.random(in: 0...20, using: &random))
                if Bool.random(using: &random) { schedule.noteUnsaved(at: now) }
            case .overwrite:
                pass(Int64.random(in: 0...20, using: &random))
                schedule.endOverwriting(at: now, isLeft: Bool.random(using: &random))
            case .verifyClaim:
                pass(1)
                schedule.checkClaim(at: now + 5000)
            case .giveBack:
                schedule.beginGivingBack()
            case .expire:
                schedule.beginExpiring()
                pass(CommitSchedule.expirySliceMilliseconds)
                schedule.endExpiring(at: now, isLeft: Bool.random(using: &random))
            }
        }

        private mutating func commit(durable: Bool) {
            for time in unpublished { longest.soft = max(longest.soft, now - time) }
            unpublished = []
            if durable {
                for time in undurable { longest.durable = max(longest.durable, now - time) }
                undurable = []
            }
            _ = schedule.beginCommit(durable: durable)
            pass(durable ? 40 : 5)
            schedule.endCommit(
                at: now, durable: durable, canOverwrite: Int.random(in: 0..<3, using: &random) == 0,
                isBehind: Int.random(in: 0..<3, using: &random) == 0)
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `each change is in a root that begins within a tenth of a second, whatever else is done`(
        seed: UInt64
    ) {
        var clocked = Clocked(seed: seed)
        let end = clocked.now + 60_000
        while clocked.now < end { clocked.step() }
        // A soft root takes its own time then, which the tenth of a second includes, and a durable one the disk's.
        #expect(clocked.longest.soft <= 95, "seed \(seed)")
        #expect(clocked.longest.durable <= 5100, "seed \(seed)")
        for kind in [.overwrite, .verifyClaim, .expire, .commit(durable: true)] as [Task] {
            #expect(clocked.done.contains(kind), "seed \(seed): \(kind)")
        }
    }

    @Test func `a change alone is published after 50 ms, and durable after 5 s`() {
        var schedule = CommitSchedule()
        schedule.checkClaim(at: 1_000_000)
        #expect(schedule.task(at: 0, isAsked: false, isFull: false) == .wait(until: 1_000_000))
        schedule.noteChange(at: 100)
        #expect(schedule.task(at: 149, isAsked: false, isFull: false) == .wait(until: 150))
        #expect(schedule.task(at: 150, isAsked: false, isFull: false) == .commit(durable: false))
        _ = schedule.beginCommit(durable: false)
        schedule.endCommit(at: 152, durable: false, canOverwrite: false, isBehind: false)
        #expect(schedule.task(at: 153, isAsked: false, isFull: false) == .wait(until: 5100))
        #expect(schedule.task(at: 5100, isAsked: false, isFull: false) == .commit(durable: true))
        _ = schedule.beginCommit(durable: true)
        schedule.endCommit(at: 5140, durable: true, canOverwrite: false, isBehind: false)
        #expect(!schedule.hasPending)
        // Idle for long: unused room is returned, once.
        #expect(schedule.task(at: 5141, isAsked: false, isFull: false) == .wait(until: 20_100))
        #expect(schedule.task(at: 20_100, isAsked: false, isFull: false) == .giveBack)
        schedule.beginGivingBack()
        #expect(schedule.task(at: 20_101, isAsked: false, isFull: false) == .wait(until: 1_000_000))
    }

    @Test func `a commit that fails is tried again after a second, or when asked for`() {
        var schedule = CommitSchedule()
        schedule.noteChange(at: 100)
        let begun = schedule.beginCommit(durable: true)
        schedule.failCommit(begun, at: 200)
        schedule.checkClaim(at: nil)
        #expect(schedule.hasPending)
        #expect(schedule.task(at: 201, isAsked: false, isFull: false) == .wait(until: 1200))
        #expect(schedule.task(at: 201, isAsked: true, isFull: false) == .commit(durable: true))
        #expect(schedule.task(at: 1200, isAsked: false, isFull: false) == .commit(durable: false))
        #expect(schedule.task(at: 5100, isAsked: false, isFull: false) == .commit(durable: true))
    }

    @Test func `a command publishes when its pages are many, and else after 30 s`() {
        var schedule = CommitSchedule()
        schedule.pace = .seldom
        schedule.noteChange(at: 100)
        #expect(schedule.task(at: 200, isAsked: false, isFull: false) == .wait(until: 30_100))
        #expect(schedule.task(at: 200, isAsked: false, isFull: true) == .commit(durable: false))
    }

    @Test func `trash that is moved there while other trash is destroyed is looked at`() {
        var schedule = CommitSchedule()
        schedule.checkTrash(at: 100)
        #expect(schedule.task(at: 100, isAsked: false, isFull: false) == .expire)
        schedule.beginExpiring()
        schedule.checkTrash(at: 110)
        schedule.endExpiring(at: 120, isLeft: false)
        #expect(schedule.task(at: 120, isAsked: false, isFull: false) == .expire)
    }
}
