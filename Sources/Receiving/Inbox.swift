import Encodings
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import ReceiveProtocol

/// Handles the messages of the server. Writes files itself; passes complete files and questions to other
/// threads, so that no client waits for another's disk.
///
/// `take` is called on one thread; each answer is sent by the thread that has it.
final class Inbox: @unchecked Sendable {
    private let mount: ReceivingMount
    private let album: [Name]
    private let limits: ReceiveLimits
    private let pieces: PieceBuffer
    let record: ReceiveRecord
    private let webdav: WebDAVTree
    private let send: @Sendable (ParentMessage) -> Void
    /// Several threads: those that wait for the disk at a time share one durable commit of the space.
    private let finisher = JobQueue(threads: 4)
    private let questions = JobQueue()
    /// Searches read much: the questions of other devices do not wait for them.
    private let searches = JobQueue()

    /// Uploads in progress. Only `take` uses it.
    private var uploads: [RequestID: Upload] = [:]
    /// Working names of files that the finisher has.
    private let lock = Lock()
    private var finishing: Set<Name> = []

    init(
        _ mount: ReceivingMount, album: [Name], _ limits: ReceiveLimits, _ pieces: PieceBuffer,
        record: ReceiveRecord, send: @escaping @Sendable (ParentMessage) -> Void
    ) {
        (self.mount, self.album, self.limits, self.pieces) = (mount, album, limits, pieces)
        self.record = record
        self.send = send
        webdav = WebDAVTree(limits)
    }

    private var albumPath: [Name] { ["albums"] + album }

    /// Removes working files of earlier sessions that nobody has gone on with.
    func removeOldWorkingFiles(now: Timestamp) {
        guard let directory = try? mount.open(albumPath, makes: false), let names = try? directory.list()
        else {
            return
        }
        for name in names where name.bytes.starts(with: Upload.workingNameStart.utf8) {
            guard name.bytes.suffix(5).elementsEqual(Upload.workingNameEnd.utf8),
                let found = try? directory.status(name), found.isRegular,
                Timestamp(found.st_mtim).seconds < now.seconds - Self.workingSeconds
            else { continue }
            directory.remove(name)
        }
    }

    /// Two days.
    private static let workingSeconds: Int64 = 2 * 86_400

    func take(_ message: ServerMessage) {
        switch message {
        case .ready: break
        case .joined: record.noteDevice()
        case .begin(let id, let head): begin(id, head)
        case .piece(let id, let index, let count):
            if let bytes = pieces.bytes(index, count) {
                append(bytes, to: id)
                send(.free(index))
            }
        case .end(let id, let isComplete): end(id, isComplete)
        case .ask(let id, let question):
            let queue = if case .known = question { searches } else { questions }
            queue.add { [self] in answer(id, answer(to: question)) }
        }
    }

    /// Keeps the received bytes of unfinished files, and finishes complete ones.
    func close() {
        for upload in uploads.values { _ = upload.endBody(isComplete: false) }
        uploads = [:]
        finisher.close()
        questions.close()
        searches.close()
        makeEmptyFiles()
    }

    /// Makes the files that WebDAV clients left empty. Not earlier: most are about to send the bytes.
    private func makeEmptyFiles() {
        for path in webdav.emptyFiles {
            let directory = try? mount.open(albumPath + path.dropLast().map { Name($0) }, makes: false)
            guard let directory, let name = path.last else { continue }
            let file = try? directory.openFile(Name(name), O_WRONLY | O_CREAT | O_EXCL)
            if let file { Glibc.close(file) }
        }
    }

    private func answer(_ id: RequestID, _ answer: Answer) { send(.answer(id, answer)) }

    private func fail(_ id: RequestID, _ head: UploadHead, _ refusal: Refusal) {
        if let reason = refusal.reason { record.fail(head, reason) }
        answer(id, refusal.answer)
    }

    private func fail(_ id: RequestID, _ upload: Upload, _ refusal: Refusal) {
        // The bytes of a file that does not fit would take the room of smaller ones.
        if refusal.answer.status == ReceiveStatus.noRoom { upload.directory.remove(upload.workingName) }
        fail(id, upload.head, refusal)
    }

    // MARK: Uploads

    private func begin(_ id: RequestID, _ head: UploadHead) {
        do throws(Refusal) {
            uploads[id] = try upload(head)
            record.begin(head)
            answer(id, Answer(ReceiveStatus.done))
        } catch { fail(id, head, error) }
    }

    private func upload(_ head: UploadHead) throws(Refusal) -> Upload {
        guard uploads.count < limits.uploads else { throw Refusal(status: ReceiveStatus.conflict) }
        let path = head.path.dropLast().map { Name($0) }
        if head.door == .webdav, !webdav.hasDirectory(Array(head.path.dropLast())) {
            throw Refusal(status: ReceiveStatus.conflict)
        }
        if head.door == .webdav, webdav.hasDirectory(head.path) {
            throw Refusal(status: ReceiveStatus.notAllowed)
        }
        let working = Upload.workingName(head)
        if lock.withLock({ finishing.contains(working) }) { throw Refusal(status: ReceiveStatus.conflict) }
        // The same file of the same device: its connection is lost, or it was sent twice. The newer one goes on.
        for (other, upload) in uploads where upload.workingName == working {
            _ = upload.endBody(isComplete: false)
            uploads[other] = nil
        }
        let directory: OpenDirectory
        do throws(Errno) { directory = try mount.open(albumPath + path, makes: true) } catch {
            throw Refusal(error)
        }
        // For the rest of the file, not for this piece alone: the space would be full before the last piece.
        let rest = max(head.length ?? 0, head.total.map { $0 - min($0, head.offset) } ?? 0)
        var room = statvfs()
        if fstatvfs(directory.descriptor, &room) == 0, rest > UInt64(room.f_bavail) * UInt64(room.f_frsize) {
            throw Refusal.noRoom(rest)
        }
        return try Upload(head, in: directory, limits)
    }

    private func append(_ bytes: UnsafeRawBufferPointer, to id: RequestID) {
        guard let upload = uploads[id] else { return }
        upload.append(bytes)
        record.addBytes(bytes.count, to: upload)
        guard let failure = upload.failure else { return }
        // The server discards the rest, then responds.
        uploads[id] = nil
        fail(id, upload, Refusal(failure))
    }

    private func end(_ id: RequestID, _ isComplete: Bool) {
        guard let upload = uploads.removeValue(forKey: id) else {
            if isComplete { answer(id, Answer(ReceiveStatus.conflict)) }
            return
        }
        let isWhole = upload.endBody(isComplete: isComplete)
        if let failure = upload.failure { return fail(id, upload, Refusal(failure)) }
        guard isComplete else { return }
        guard isWhole else {
            return answer(id, Answer(ReceiveStatus.unprocessable, offset: upload.position))
        }
        guard upload.isFileWhole else {
            return answer(id, Answer(ReceiveStatus.noContent, offset: upload.position))
        }
        if upload.head.door == .webdav, upload.position == 0 {
            // Many clients make an empty file first: it only takes the name.
            upload.directory.remove(upload.workingName)
            return answer(id, Answer(webdav.add(upload.head.path, size: 0)))
        }
        lock.withLock { _ = finishing.insert(upload.workingName) }
        let job = FinishingJob(id: id, upload: upload)
        finisher.add { [self] in finish(job) }
    }

    private struct FinishingJob: @unchecked Sendable {
        var id: RequestID
        /// Used by one thread at a time: the queue hands it over.
        var upload: Upload
    }

    private func finish(_ job: FinishingJob) {
        let (id, upload) = (job.id, job.upload)
        defer { lock.withLock { _ = finishing.remove(upload.workingName) } }
        do throws(Refusal) {
            try upload.closeFile(at: .now())
            let directory = albumPath + upload.head.path.dropLast().map { Name($0) }
            let file = try upload.place(in: directory)
            let path = upload.directory.path(file.name)
            let captured = CapturedTime(path)
            if let captured, !file.isKnown { correctTime(path, captured) }
            // Bytes, name and time at once: the mount saves bytes before a name, and syncs all that it has.
            do throws(Errno) { try upload.directory.sync() } catch { throw Refusal(error) }
            record.add(file, upload.head, day: captured?.day)
            if upload.head.door == .webdav {
                return answer(id, Answer(webdav.add(upload.head.path, size: file.bytes)))
            }
            answer(id, Answer(file.isKnown ? ReceiveStatus.done : ReceiveStatus.created, offset: file.bytes))
        } catch { fail(id, upload, error) }
    }

    // MARK: Questions

    private func answer(to question: Question) -> Answer {
        switch question {
        case .offset(let head): return offset(head)
        case .known(let device, let body):
            guard let queries = KnownQuery.parse(body) else { return Answer(ReceiveStatus.invalid) }
            return known(queries, device)
        case .state(let device): return state(device)
        case .thumbnail(let device, let number): return thumbnail(device, number)
        case .properties(let path, let withChildren):
            return webdav.properties(path, withChildren: withChildren)
        case .size(let path): return webdav.size(path)
        case .makeDirectory(let path):
            return webdav.makeDirectory(path) { () throws(Errno) in
                try mount.open(albumPath + path.map { Name($0) }, makes: true)
            }
        }
    }

    /// The number of bytes that are already here of an interrupted file.
    private func offset(_ head: UploadHead) -> Answer {
        let directory = try? mount.open(albumPath, makes: false)
        let found = try? directory?.status(Upload.workingName(head))
        return Answer(ReceiveStatus.done, offset: found?.byteCount ?? 0)
    }

    private func known(_ queries: [KnownQuery], _ device: [UInt8]) -> Answer {
        var known = [Bool](repeating: false, count: queries.count)
        if let directory = try? mount.open(albumPath, makes: true) {
            known = KnownPhotos(mount, directory).find(queries)
        }
        record.announce(queries, known, of: device)
        return Answer(.json, Array(JSON.list(known.map { .bool($0) }).line.utf8))
    }

    private func state(_ device: [UInt8]) -> Answer {
        let recent = record.recent(of: device).map { number, file, day in
            JSON.object([
                ("number", .number(UInt64(number))), ("name", .path(file.name.bytes)),
                ("day", .optional(day)),
            ])
        }
        let name = album.map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: "/")
        let state = JSON.object([("album", .text(name)), ("recent", .list(recent))])
        return Answer(.json, Array(state.line.utf8))
    }

    private func thumbnail(_ device: [UInt8], _ number: UInt32) -> Answer {
        guard let file = record.file(number, of: device),
            let directory = try? mount.open(file.directory + [".thumbs"], makes: false),
            let descriptor = try? directory.openFile(thumbnailName(file.name), O_RDONLY)
        else { return Answer(ReceiveStatus.missing) }
        defer { Glibc.close(descriptor) }
        let bytes = readAll(descriptor, countMax: PacketLimits.bodyBytes + 1)
        guard !bytes.isEmpty, bytes.count <= PacketLimits.bodyBytes else {
            return Answer(ReceiveStatus.missing)
        }
        return Answer(.jpeg, bytes)
    }
}

/// The name of a photo's thumbnail in `.thumbs`.
private func thumbnailName(_ name: Name) -> Name {
    let text = String(decoding: name.bytes, as: UTF8.self).lowercased()
    return text.hasSuffix(".jpg") || text.hasSuffix(".jpeg") ? name : Name(name.bytes + Array(".jpg".utf8))
}

/// Jobs that are begun in order.
final class JobQueue: @unchecked Sendable {
    private let lock = Lock()
    private let change = Condition()
    private var jobs: [@Sendable () -> Void] = []
    private var isClosing = false
    private var threads: Int

    init(threads: Int = 1) {
        self.threads = threads
        for _ in 0..<threads { startThread { [self] in run() } }
    }

    /// As many as there are requests at most: each has its connection.
    func add(_ job: @escaping @Sendable () -> Void) {
        lock.withLock { jobs.append(job) }
        change.signal()
    }

    /// Waits until all jobs are done, and ends the threads.
    func close() {
        lock.withLock { isClosing = true }
        change.signalAll()
        lock.lock()
        while threads > 0 { change.wait(lock) }
        lock.unlock()
    }

    private func run() {
        while let job = next() { job() }
        lock.withLock { threads -= 1 }
        change.signalAll()
    }

    private func next() -> (@Sendable () -> Void)? {
        lock.lock()
        defer { lock.unlock() }
        while jobs.isEmpty && !isClosing { change.wait(lock) }
        return jobs.isEmpty ? nil : jobs.removeFirst()
    }
}
