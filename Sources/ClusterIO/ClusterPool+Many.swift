import Glibc
package import LinuxIO

/// Writes to many objects at once, each by itself.
extension ClusterPool {
    /// Does all steps of writes to different objects, and returns when all are durable or have failed. No other write
    /// to these objects is on its way. Throws the first error, except for one kind of it.
    package func applyAll(
        _ writes: [(object: String, steps: [Step])], _ whenFull: WhenFull = .force, except ignored: Errno
    ) throws(Errno) {
        var begun: [(completion: Librados.Handle, turn: ObjectVersions.Turn?)] = []
        var requests: [RequestMeter.Request] = []
        defer { for write in begun { Librados.release(write.completion) } }
        var failure: Errno?
        for write in writes {
            let request = meter.begin(.write, bytes: write.steps.reduce(0) { $0 + $1.byteCount })
            var made: Librados.Handle?
            let turn = versions.begin(write.object)
            let status = begin(write.steps, on: write.object, turn, whenFull, nil, nil, &made)
            guard status == 0, let completion = made else {
                _ = versions.giveUp(turn, status)
                if let made { Librados.release(made) }
                failure = Errno(-status)
                break
            }
            begun.append((completion, turn))
            requests.append(request)
        }
        for (completion, turn) in begun {
            _ = Librados.wait(completion)
            let result = versions.end(turn, completion)
            guard result < 0, Errno(-result) != ignored else { continue }
            failure = failure ?? Errno(-result)
        }
        withExtendedLifetime(requests) {}
        if let failure { throw failure }
    }

    /// Removes objects, as far as they exist.
    package func remove(_ objects: [String]) throws(Errno) {
        for start in stride(from: 0, to: objects.count, by: Self.removedAtOnce) {
            let some = objects[start...].prefix(Self.removedAtOnce)
            try applyAll(some.map { ($0, [.removal]) }, except: .noEntry)
        }
    }

    private static let removedAtOnce = 64
}
