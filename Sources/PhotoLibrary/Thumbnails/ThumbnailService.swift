import FileRequests
package import LinuxIO
package import PhotoImaging

/// A finished thumbnail.
package enum Thumbnail: Sendable {
    /// Sealed in the vault.
    case kept(KeptPicture)
    case held([UInt8])

    /// Its size in bytes.
    package var byteCount: Int {
        switch self {
        case .kept(let picture): picture.byteCount
        case .held(let bytes): bytes.count
        }
    }

    /// Its bytes; see `StoredPhoto.bytes`.
    func bytes(_ source: StoredPhoto) throws(FileError) -> [UInt8] {
        switch self {
        case .kept(let picture): try source.bytes(of: picture)
        case .held(let bytes): bytes
        }
    }
}

/// The maker of a picture, and the cancellation of the request.
struct DecoderContext: Sendable {
    package let maker: any PictureMaking
    /// Cancelled when no request wants the picture any more.
    package let cancellation: Cancellation
}

/// The priority of a request for a picture.
package enum RequestPriority: Sendable {
    /// A client request. `nil` cannot be cancelled.
    case interactive(Cancellation?)
    /// No client has requested it yet. Pictures that use much processor time are postponed.
    case background
    /// The same, for a postponed one.
    case postponed
}

/// Makes pictures, each once for all simultaneous requests, and caches some that the vault does not keep.
package final class ThumbnailService: @unchecked Sendable {
    package let settings: ThumbnailSettings
    private let maker: (any PictureMaking)?
    /// For background requests, so that client requests never wait behind them.
    let backgroundMaker: (any PictureMaking)?
    private let postponedMaker: (any PictureMaking)?
    package let nodes: VirtualNodes
    package let repositoryNames = RepositoryNames()
    package let background: BackgroundThumbnailer

    private let lock = Lock()
    private let finished = Condition()
    // All under `lock`.
    private var inFlight: [PictureKey: InFlightRequest] = [:]
    /// Requests that have not finished, cancelled or not.
    private var inFlightCount = 0
    private var held: HeldPictures
    private var failed: Set<PictureKey> = []
    /// Photos whose background request was just postponed.
    private var postponed: Set<UInt64> = []

    /// A picture that is being made. All but the decoder is under the service's lock.
    private final class InFlightRequest {
        package let decoder: DecoderContext
        let isBackground: Bool
        /// Callers that need the result.
        package var waiters = 1
        package var result: Result<Thumbnail, FileError>?

        package init(_ decoder: DecoderContext, isBackground: Bool) {
            self.decoder = decoder
            self.isBackground = isBackground
        }
    }

    /// The number of callers that wait for pictures.
    package var waiterCount: Int { lock.withLock { inFlight.values.reduce(0) { $0 + $1.waiters } } }

    package init(_ settings: ThumbnailSettings) {
        nodes = settings.nodes ?? VirtualNodes()
        func makeMaker(
            isInBackground: Bool, _ pictures: ThumbnailWorkers.Pictures
        ) -> (any PictureMaking)? {
            settings.maker
                ?? settings.workerPath.map {
                    ThumbnailWorkers(
                        executable: $0, count: settings.workerCount, isInBackground: isInBackground,
                        pictures: pictures,
                        installed: InstalledThumbnailers(
                            dataDirectories: settings.dataDirectories, isInBackground: isInBackground))
                }
        }
        maker = makeMaker(isInBackground: false, .all)
        backgroundMaker = makeMaker(isInBackground: true, .quick)
        postponedMaker = makeMaker(isInBackground: true, .slow)
        background = BackgroundThumbnailer(settings)
        self.settings = settings
        held = HeldPictures(bytesMax: settings.heldBytesMax)
    }

    /// Returns the cached picture or the result of an in-flight request, else that of `make`. Throws `.noEntry` if
    /// there can be no picture, and `.interrupted` as soon as the caller is cancelled. When all waiters are, the
    /// request is cancelled.
    ///
    /// A background request gives way to all others. A client request does not wait for it: it cancels it, and makes
    /// the picture anew. Throws `.busy` if the background request was cancelled, or the one that it gave way to.
    func picture(
        _ key: PictureKey, for priority: RequestPriority,
        _ make: @escaping @Sendable (DecoderContext) throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        lock.lock()
        if let bytes = held.find(key) {
            lock.unlock()
            return .held(bytes)
        }
        if failed.contains(key) {
            lock.unlock()
            throw .noEntry
        }
        switch (inFlight[key], priority) {
        case (let request?, .background), (let request?, .postponed):
            lock.unlock()
            // Not as one of its waiters: it is cancelled when they have left.
            return try result(of: request)
        case (let request?, .interactive(let cancellation)) where !request.isBackground:
            request.waiters += 1
            lock.unlock()
            return try wait(for: request, key, cancellation)
        case (let known, _):
            let request: InFlightRequest
            do throws(FileError) { request = try begin(key, priority) } catch {
                lock.unlock()
                throw error
            }
            lock.unlock()
            known?.decoder.cancellation.cancel()
            return try run(request, key, priority, make)
        }
    }

    /// Types that can be decoded now. May read directories of the system.
    package var decodableTypes: Set<MediaType> { maker?.decodableTypes ?? ThumbnailWorkers.decodedTypes }

    /// Begins a request. The caller holds `lock`.
    private func begin(_ key: PictureKey, _ priority: RequestPriority) throws(FileError) -> InFlightRequest {
        let (chosen, isBackground) =
            switch priority {
            case .interactive: (maker, false)
            case .background: (backgroundMaker, true)
            case .postponed: (postponedMaker, true)
            }
        guard let chosen else { throw .noEntry }
        let request = InFlightRequest(
            DecoderContext(maker: chosen, cancellation: Cancellation()), isBackground: isBackground)
        inFlight[key] = request
        inFlightCount += 1
        return request
    }

    /// Makes the picture: on another thread if the caller may be cancelled before it is finished.
    private func run(
        _ request: InFlightRequest, _ key: PictureKey, _ priority: RequestPriority,
        _ make: @escaping @Sendable (DecoderContext) throws(FileError) -> Thumbnail
    ) throws(FileError) -> Thumbnail {
        let decoder = request.decoder
        let work: @Sendable () -> Result<Thumbnail, FileError> = {
            Result { () throws(FileError) in try make(decoder) }
        }
        guard case .interactive(let cancellation?) = priority else {
            finish(request, key, work())
            return try result(of: request)
        }
        let box = RequestBox(request: request)
        if !startThreadIfPossible({ [self] in finish(box.request, key, work()) }) {
            finish(request, key, work())
        }
        return try wait(for: request, key, cancellation)
    }

    /// Takes a request to another thread. The request is only touched under the service's lock.
    private struct RequestBox: @unchecked Sendable { let request: InFlightRequest }

    private func finish(_ request: InFlightRequest, _ key: PictureKey, _ result: Result<Thumbnail, FileError>)
    {
        lock.withLock {
            if case .success(.held(let bytes)) = result { held.add(key, bytes) }
            request.result = result
            if inFlight[key] === request { inFlight[key] = nil }
            inFlightCount -= 1
            finished.signalAll()
        }
    }

    private func wait(
        for request: InFlightRequest, _ key: PictureKey, _ cancellation: Cancellation?
    ) throws(FileError) -> Thumbnail {
        guard let cancellation else { return try waitForResult(request, nil) }
        do throws(FileError) {
            return try cancellation.during(wakeAll) { () throws(FileError) in
                try waitForResult(request, cancellation)
            }
        } catch {
            if error == .interrupted { leave(request, key) }
            throw error
        }
    }

    /// Waits for a request that is made without waiting, or by others. Throws `.busy` if it was cancelled.
    private func result(of request: InFlightRequest) throws(FileError) -> Thumbnail {
        do throws(FileError) { return try waitForResult(request, nil) } catch {
            throw request.decoder.cancellation.isCancelled ? .busy : error
        }
    }

    private func wakeAll() { lock.withLock { finished.signalAll() } }

    private func waitForResult(_ request: InFlightRequest, _ cancellation: Cancellation?) throws(FileError)
        -> Thumbnail
    {
        lock.lock()
        defer { lock.unlock() }
        while true {
            if let result = request.result { return try result.get() }
            if cancellation?.isCancelled == true { throw .interrupted }
            finished.wait(lock)
        }
    }

    private func leave(_ request: InFlightRequest, _ key: PictureKey) {
        let isEmpty = lock.withLock {
            request.waiters -= 1
            guard request.waiters == 0 else { return false }
            // Later callers begin another request.
            if inFlight[key] === request { inFlight[key] = nil }
            return true
        }
        if isEmpty { request.decoder.cancellation.cancel() }
    }

    /// Remembers, for as long as this library is open, that there is no such picture.
    func noteImpossible(_ key: PictureKey) {
        lock.withLock {
            if failed.count >= settings.failedMax { failed = [] }
            failed.insert(key)
        }
    }

    /// Remembers that the photo's background request was postponed.
    func notePostponed(_ photo: UInt64) { lock.withLock { _ = postponed.insert(photo) } }

    /// Whether the photo's last background request was postponed. Forgets it.
    package func takePostponed(_ photo: UInt64) -> Bool {
        lock.withLock { postponed.remove(photo) != nil }
    }

    func hasFailed(_ key: PictureKey) -> Bool { lock.withLock { failed.contains(key) } }

    /// A cached JPEG of the same photo that has enough pixels for one of that size.
    func heldPicture(of photo: UInt64, revision: UInt64, serving size: PictureSize) -> [UInt8]? {
        lock.withLock {
            held.first { key in
                guard case .photo(photo, revision, .sized(let box), .jpeg) = key else { return false }
                return box.serves(size)
            }
        }
    }

    /// Releases resources that are only needed while pictures are made in the background.
    package func releaseIdleInBackground() {
        // Slow pictures leave no process behind.
        backgroundMaker?.releaseIdle()
    }

    /// Ends all in-flight requests: their waiters get no picture.
    package func close() {
        background.askToStop()
        maker?.shutDown()
        backgroundMaker?.shutDown()
        postponedMaker?.shutDown()
        background.awaitEnd()
        lock.withLock {
            while inFlightCount > 0 { finished.wait(lock) }
        }
    }
}
