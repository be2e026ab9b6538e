internal import LinuxIO
internal import Synchronization

/// The slots of workers, in two lines, each first come, first served: the quick one, in which every picture begins, and
/// the slow one, for pictures that have used more processor time than good ones do.
///
/// The slow line never takes a slot of the quick one, so that no number of slow pictures holds up the others.
final class WorkerPool: Sendable {
    enum Line { case quick, slow }

    private struct Queue {
        /// Slots in use at the same time, at most.
        let slotsMax: Int
        var inUse = 0
        var waiting: [Waiter] = []

        var mayServe: Bool { !waiting.isEmpty && inUse < slotsMax }

        /// Gives the first waiting caller its turn.
        mutating func serve(_ slot: WorkerSlot) {
            inUse += 1
            waiting.removeFirst().wake(with: slot)
        }

        /// False if it does not wait.
        mutating func remove(_ waiter: Waiter) -> Bool {
            let index = waiting.firstIndex { $0 === waiter }
            if let index { waiting.remove(at: index) }
            return index != nil
        }
    }

    private struct State {
        /// Free slots, most recently used last. Reusing that one keeps the number of workers low for a few callers.
        var idle: [WorkerSlot]
        var quick: Queue
        var slow: Queue
        var isClosed = false
        /// Callers of `close()`, woken when all slots are idle.
        var closing: [Waiter] = []

        mutating func handOut() {
            while quick.mayServe, let slot = idle.popLast() { quick.serve(slot) }
            while slow.mayServe, let slot = idle.popLast() { slow.serve(slot) }
        }

        mutating func add(_ slot: WorkerSlot, of count: Int) {
            idle.append(slot)
            handOut()
            wakeClosing(count)
        }

        mutating func wakeClosing(_ count: Int) {
            guard idle.count == count else { return }
            for waiter in closing { waiter.wake(with: nil) }
            closing = []
        }
    }

    private let slots: [WorkerSlot]
    private let state: Mutex<State>

    /// Callers in the slow line, served or waiting, at most. Each occupies a request of a program, and thereby a thread
    /// of the mount.
    static let slowCallersMax = 8

    /// - Parameter count: slots of the quick line. The slow line has one less, but at least one.
    init(count: Int) {
        let slowCount = max(1, count - 1)
        let slots = (0..<count + slowCount).map { _ in WorkerSlot() }
        self.slots = slots
        state = Mutex(
            State(idle: slots, quick: Queue(slotsMax: count), slow: Queue(slotsMax: slowCount)))
    }

    /// Callers that wait for a slot.
    func waitingCount(_ line: Line) -> Int {
        state.withLock { line == .quick ? $0.quick.waiting.count : $0.slow.waiting.count }
    }

    /// Blocks until the caller's turn. `giveBack` follows. Throws `cancelled` after `close`, and `workerFailed` if too
    /// many callers are in the slow line.
    func take(_ line: Line, unless cancellation: Cancellation) throws(ThumbnailError) -> WorkerSlot {
        let waiter = Waiter()
        let isAdmitted = try state.withLock { state throws(ThumbnailError) -> Bool in
            if state.isClosed { throw .cancelled }
            switch line {
            case .quick: state.quick.waiting.append(waiter)
            case .slow:
                guard state.slow.inUse + state.slow.waiting.count < Self.slowCallersMax else { return false }
                state.slow.waiting.append(waiter)
            }
            state.handOut()
            return true
        }
        guard isAdmitted else { throw .workerFailed }
        let leaveLine: @Sendable () -> Void = { [self] in leave(line, waiter) }
        let slot = cancellation.during(leaveLine) { waiter.wait() }
        guard let slot else { throw .cancelled }
        return slot
    }

    /// Removes the waiter of a cancelled request from its line. It may have received a slot already.
    private func leave(_ line: Line, _ waiter: Waiter) {
        let isWaiting = state.withLock { state in
            switch line {
            case .quick: state.quick.remove(waiter)
            case .slow: state.slow.remove(waiter)
            }
        }
        if isWaiting { waiter.wake(with: nil) }
    }

    /// Ends a turn.
    func giveBack(_ slot: WorkerSlot, _ line: Line) {
        state.withLock { state in
            switch line {
            case .quick: state.quick.inUse -= 1
            case .slow: state.slow.inUse -= 1
            }
            state.add(slot, of: slots.count)
        }
    }

    /// Moves a caller and its slot from the quick line to the slow one, if that has room without waiting.
    func moveToSlow() -> Bool {
        state.withLock { state in
            guard state.slow.waiting.isEmpty, state.slow.inUse < state.slow.slotsMax else { return false }
            state.quick.inUse -= 1
            state.slow.inUse += 1
            state.handOut()
            return true
        }
    }

    /// Ends the workers of idle slots.
    func releaseIdle() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for slot in idle {
            slot.retire()
            state.withLock { $0.add(slot, of: slots.count) }
        }
    }

    /// Refuses all waiting and future callers, interrupts those that have a slot, and returns when all workers have
    /// ended. May be called more than once.
    func close() {
        let (refused, closing) = state.withLock { state -> ([Waiter], Waiter) in
            state.isClosed = true
            let closing = Waiter()
            state.closing.append(closing)
            state.wakeClosing(slots.count)
            defer { (state.quick.waiting, state.slow.waiting) = ([], []) }
            return (state.quick.waiting + state.slow.waiting, closing)
        }
        for waiter in refused { waiter.wake(with: nil) }
        for slot in slots { slot.interrupt() }
        _ = closing.wait()
        for slot in slots { slot.retire() }
    }
}
