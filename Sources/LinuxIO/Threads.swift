import Glibc

/// Runs `body` on a new detached thread.
package func startThread(_ body: @escaping @Sendable () -> Void) {
    precondition(startThreadIfPossible(body), "no thread could be started")
}

/// As `startThread`; false if no thread can be created.
package func startThreadIfPossible(_ body: @escaping @Sendable () -> Void) -> Bool {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    let status = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            Processors.releaseThread()
            Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, box.toOpaque())
    guard status == 0 else {
        box.release()
        return false
    }
    pthread_detach(thread)
    return true
}
