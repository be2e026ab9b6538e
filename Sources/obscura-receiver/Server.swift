internal import CMicroHTTPD
internal import Glibc
internal import ReceiveProtocol

/// The HTTP server: one thread, one daemon of libmicrohttpd, one socket to the parent.
final class Server {
    private static let listener: Int32 = 4
    /// Connections that libmicrohttpd has not closed yet, beside those in use.
    private static let closingMax = 32
    /// TLS 1.2 and 1.3 only: every phone of the last ten years knows one of them.
    private static let priorities = Array("SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2".utf8CString)
    private static let drainBytesMax: UInt64 = 16 << 20
    /// Rounds of libmicrohttpd, which reads one TLS record of each connection in a round, before the parent and new
    /// connections have their turn.
    private static let roundsMax = 8
    private static let emptyRoundsMax = 32
    private static let emptyRoundMilliseconds: UInt64 = 10

    private let limits: ReceiveLimits
    private let certificate: Certificate
    private var daemon: OpaquePointer?
    private var channel = ParentChannel()
    private var memory: PieceMemory
    private var connections: Connections
    var devices: Devices
    /// The secret of WebDAV; empty if WebDAV is off.
    private(set) var password: [UInt8] = []
    private var page = Page(words: "")
    private var exchanges: [RequestID: Exchange] = [:]
    private var nextID: RequestID = 1
    /// Connections that wait for a free piece.
    private var blocked: [RequestID] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: PacketLimits.packetBytes, alignment: 16)
    private var sweptAt = 0
    /// Rounds of the loop in which nothing happened, and whether something did in this one.
    private var emptyRounds = 0
    private var isRoundEmpty = true

    init(_ certificate: Certificate, _ memory: PieceMemory, _ limits: ReceiveLimits) {
        (self.certificate, self.memory, self.limits) = (certificate, memory, limits)
        connections = Connections(limits)
        devices = Devices(limits)
    }

    deinit { buffer.deallocate() }

    /// Starts libmicrohttpd. False if it fails.
    func start() -> Bool {
        let context = Unmanaged.passUnretained(self).toOpaque()
        func option(_ kind: MHD_OPTION, _ value: Int = 0, _ pointer: UnsafeMutableRawPointer? = nil)
            -> MHD_OptionItem
        { MHD_OptionItem(option: kind, value: value, ptr_value: pointer) }
        let completed: MHD_RequestCompletedCallback = { context, _, request, reason in
            guard let context, let exchange = request?.pointee else { return }
            let server = Unmanaged<Server>.fromOpaque(context).takeUnretainedValue()
            server.complete(Unmanaged<Exchange>.fromOpaque(exchange).takeRetainedValue())
            request?.pointee = nil
        }
        let connected: MHD_NotifyConnectionCallback = { context, connection, _, code in
            guard let context, let connection, code == .CONNECTION_NOTIFY_CLOSED else { return }
            Unmanaged<Server>.fromOpaque(context).takeUnretainedValue().close(connection)
        }
        // Paths stay as they were sent: see `percentDecoded`.
        let unescape:
            @convention(c) (
                UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?
            ) -> Int = { _, _, text in text.map { strlen($0) } ?? 0 }
        let handler: MHD_AccessHandlerCallback = {
            context, connection, url, method, _, data, count, request in
            guard let context, let connection, let url, let method, let count, let request else { return .NO }
            let server = Unmanaged<Server>.fromOpaque(context).takeUnretainedValue()
            return server.handle(connection, method, url, data, count, request)
        }
        daemon = withPointers([certificate.key, certificate.certificate, Self.priorities]) { texts in
            var options = [
                option(.NOTIFY_COMPLETED, unsafeBitCast(completed, to: Int.self), context),
                option(.NOTIFY_CONNECTION, unsafeBitCast(connected, to: Int.self), context),
                option(.UNESCAPE_CALLBACK, unsafeBitCast(unescape, to: Int.self), context),
                option(.HTTPS_MEM_KEY, 0, texts[0]), option(.HTTPS_MEM_CERT, 0, texts[1]),
                option(.HTTPS_PRIORITIES, 0, texts[2]),
                option(.CONNECTION_LIMIT, limits.connections + Self.closingMax),
                option(.CONNECTION_MEMORY_LIMIT, limits.connectionBytes),
                option(.CONNECTION_TIMEOUT, Int(limits.idleSeconds)),
                option(.STRICT_FOR_CLIENT, 1),
                option(.SIGPIPE_HANDLED_BY_APP, 1),
                option(.END),
            ]
            let flags =
                MHD_USE_TLS.rawValue | MHD_USE_EPOLL.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
                | MHD_ALLOW_SUSPEND_RESUME.rawValue
            return shim_start_daemon(UInt32(flags), handler, context, &options)
        }
        return daemon != nil
    }

    // MARK: The loop

    /// Greets the parent, and serves until the parent goes.
    func run() {
        guard let daemon else { return }
        let epoll = shim_epoll_descriptor(daemon)
        channel.send(.ready(fingerprint: certificate.fingerprint))
        guard case .start(let words, let password) = channel.receive(into: buffer, waiting: true) else {
            return
        }
        page = Page(words: String(decoding: words, as: UTF8.self))
        self.password = password
        var entries = [
            pollfd(fd: ParentChannel.descriptor, events: 0, revents: 0),
            pollfd(fd: Self.listener, events: Int16(POLLIN), revents: 0),
            pollfd(fd: epoll, events: Int16(POLLIN), revents: 0),
        ]
        while !channel.isBroken {
            entries[0].events = Int16(POLLIN | (channel.isFull ? POLLOUT : 0))
            var wait = timeout(daemon)
            // libmicrohttpd (0.9.75) asks to be run again at once for as long as a client stops in the middle of a TLS
            // record of the handshake: a stranger with three bytes would occupy a processor.
            emptyRounds = isRoundEmpty ? emptyRounds + 1 : 0
            if emptyRounds > Self.emptyRoundsMax { wait = max(wait, Self.emptyRoundMilliseconds) }
            isRoundEmpty = poll(&entries, 3, Int32(wait)) <= 0
            if entries[0].revents & Int16(POLLIN | POLLHUP) != 0 { receive() }
            if channel.isFull { channel.flush() }
            if entries[1].revents != 0 { accept(daemon) }
            var rounds = 0
            repeat {
                MHD_run(daemon)
                rounds += 1
            } while rounds < Self.roundsMax && !isRoundEmpty && timeout(daemon) == 0
            sweep()
        }
    }

    /// Milliseconds after which libmicrohttpd wants to be run, at most a second.
    private func timeout(_ daemon: OpaquePointer) -> UInt64 {
        var wait: UInt64 = 0
        return MHD_get_timeout(daemon, &wait) == .YES ? min(wait, 1000) : 1000
    }

    private var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }

    private func sweep() {
        let now = now
        if now == sweptAt { return }
        sweptAt = now
        connections.sweep(at: now)
    }

    private func accept(_ daemon: OpaquePointer) {
        // At most this many in one round, so that others are served too.
        for _ in 0..<16 {
            var address = sockaddr_storage()
            var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let descriptor = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.accept(Self.listener, $0, &count)
                }
            }
            if descriptor < 0 { return }
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            Self.setReceiveBuffer(descriptor, limits.strangerBufferBytes)
            guard connections.enter(descriptor, at: now) else {
                Glibc.close(descriptor)
                continue
            }
            let isAdded = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    MHD_add_connection(daemon, descriptor, $0, count)
                }
            }
            // It closes the descriptor when it refuses.
            if isAdded != .YES { connections.forget(descriptor) }
        }
    }

    private func receive() {
        while let message = channel.receive(into: buffer) {
            switch message {
            case .start: break
            case .token(let token): devices.token = token
            case .answer(let id, let answer): take(answer, for: id)
            case .free(let index):
                memory.giveBack(index)
                unblock()
            }
        }
    }

    private func take(_ answer: Answer, for id: RequestID) {
        guard let exchange = exchanges[id] else { return }
        switch exchange.state {
        case .starting where answer.status == HTTPStatus.go: exchange.state = .accepted
        case .starting:
            exchange.isUpload = false
            exchange.state = .answered(answer)
        case .waiting: exchange.state = .answered(answer)
        case .receiving:
            // The parent accepts no more. libmicrohttpd responds only after the body, which is discarded.
            exchange.isUpload = false
            if let piece = exchange.piece { memory.giveBack(piece.index) }
            exchange.piece = nil
            exchange.state = .draining(answer)
            unblock()
            return
        default: return
        }
        MHD_resume_connection(exchange.connection)
    }

    /// Lets all go on that wait for a piece: those for which there is none wait again.
    private func unblock() {
        let waiting = blocked
        blocked = []
        for id in waiting { if let exchange = exchanges[id] { MHD_resume_connection(exchange.connection) } }
    }

    // MARK: Connections

    func trust(_ connection: OpaquePointer, _ owner: [UInt8]) {
        connections.trust(shim_connection_descriptor(connection), owner)
    }

    /// Bytes of an unread connection that the kernel may hold; it takes twice as much memory for them.
    private static func setReceiveBuffer(_ descriptor: Int32, _ bytes: Int32) {
        var bytes = bytes
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }

    private func close(_ connection: OpaquePointer) {
        connections.forget(shim_connection_descriptor(connection))
    }

    private func complete(_ exchange: Exchange) {
        exchanges[exchange.id] = nil
        Self.setReceiveBuffer(shim_connection_descriptor(exchange.connection), limits.strangerBufferBytes)
        guard exchange.isUpload else { return }
        handOver(exchange)
        channel.send(.end(exchange.id, isComplete: false))
    }

    // MARK: Requests

    private func handle(
        _ connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ url: UnsafePointer<CChar>,
        _ data: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<Int>,
        _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        isRoundEmpty = false
        guard let known = request.pointee else {
            let exchange = Exchange(nextID, connection)
            nextID &+= 1
            exchanges[exchange.id] = exchange
            request.pointee = Unmanaged.passRetained(exchange).toOpaque()
            return begin(exchange, String(cString: method), String(cString: url))
        }
        let exchange = Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
        let bytes = UnsafeRawBufferPointer(start: data, count: count.pointee)
        switch exchange.state {
        case .new, .done, .starting, .waiting:
            count.pointee = 0
            return .YES
        case .accepted:
            exchange.state = .receiving
            return bytes.isEmpty ? .YES : transfer(exchange, bytes, count)
        case .receiving:
            if !bytes.isEmpty { return transfer(exchange, bytes, count) }
            exchange.isUpload = false
            exchange.state = .waiting
            handOver(exchange)
            channel.send(.end(exchange.id, isComplete: true))
            MHD_suspend_connection(connection)
            return .YES
        case .draining(let answer):
            count.pointee = 0
            return bytes.isEmpty ? respond(exchange, answer) : .YES
        case .answered(let answer):
            if case .upload(let head) = exchange.route, bytes.isEmpty, answer.status >= 300,
                let length = head.length, length > 0, length <= Self.drainBytesMax, !exchange.isBodyRead
            {
                exchange.isBodyRead = true
                exchange.state = .draining(answer)
                return .YES
            }
            count.pointee = 0
            return respond(exchange, answer)
        case .collecting(var body):
            if bytes.isEmpty { return finish(exchange, body) }
            guard body.count + bytes.count <= exchange.bodyBytesMax else { return .NO }
            body.append(contentsOf: bytes)
            exchange.state = .collecting(body)
            count.pointee = 0
            return .YES
        }
    }

    private func begin(_ exchange: Exchange, _ method: String, _ url: String) -> MHD_Result {
        let connection = exchange.connection
        exchange.route = route(method, url, RequestFields(connection: connection))
        switch exchange.route {
        case .upload(let head):
            let running = exchanges.values.filter { $0.isUpload }
            let owned = running.count { $0.owner == head.device }
            guard running.count < limits.uploads, owned < max(limits.uploads / 2, 1) else {
                return respond(exchange, Answer(HTTPStatus.busy))
            }
            exchange.isUpload = true
            Self.setReceiveBuffer(shim_connection_descriptor(connection), limits.uploadBufferBytes)
            exchange.owner = head.device
            exchange.state = .starting
            channel.send(.begin(exchange.id, head))
            MHD_suspend_connection(connection)
            return .YES
        default:
            let fields = RequestFields(connection: connection)
            let hasBody =
                (fields.header("Content-Length") ?? "0") != "0" || fields.header("Transfer-Encoding") != nil
            // An answer before the body closes the connection.
            if hasBody, exchange.bodyBytesMax == 0 {
                // A request with an unsupported body changes nothing (MKCOL: RFC 4918, 9.3).
                if case .ask = exchange.route { return respond(exchange, Answer(HTTPStatus.unsupported)) }
                return finish(exchange, [])
            }
            exchange.state = .collecting([])
            return .YES
        }
    }

    /// Acts on a request whose body was collected.
    private func finish(_ exchange: Exchange, _ body: [UInt8]) -> MHD_Result {
        switch exchange.route {
        case .join:
            guard let secret = devices.join(body) else {
                return respond(exchange, Answer(HTTPStatus.missing))
            }
            channel.send(.joined)
            return respond(exchange, .joined(secret))
        case .known(let device): return ask(exchange, .known(device: device, body: body))
        case .ask(let question): return ask(exchange, question)
        case .page: return respond(exchange, page.response())
        case .options: return respond(exchange, .options)
        case .unauthorized: return respond(exchange, .unauthorized)
        case .forbidden: return respond(exchange, Answer(HTTPStatus.forbidden))
        case .invalid: return respond(exchange, Answer(HTTPStatus.invalid))
        case .missing: return respond(exchange, Answer(HTTPStatus.missing))
        case .upload: return .NO
        }
    }

    private func ask(_ exchange: Exchange, _ question: Question) -> MHD_Result {
        exchange.state = .waiting
        channel.send(.ask(exchange.id, question))
        MHD_suspend_connection(exchange.connection)
        return .YES
    }

    /// Collects bytes of an upload, and hands each full piece to the parent; the connection waits where the parent is
    /// behind.
    private func transfer(
        _ exchange: Exchange, _ bytes: UnsafeRawBufferPointer, _ count: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        var rest = bytes
        while !rest.isEmpty {
            guard var piece = exchange.piece ?? memory.take() else {
                blocked.append(exchange.id)
                MHD_suspend_connection(exchange.connection)
                break
            }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(memory.fill(&piece, rest)))
            exchange.piece = piece
            if memory.isFull(piece) {
                handOver(exchange)
                // The piece is sealed while the next one comes, also where there are few processors.
                sched_yield()
            }
        }
        count.pointee = rest.count
        return .YES
    }

    /// Gives the parent what was collected.
    private func handOver(_ exchange: Exchange) {
        guard let piece = exchange.piece else { return }
        exchange.piece = nil
        channel.send(.piece(exchange.id, piece.index, count: UInt32(piece.count)))
    }

    private func respond(_ exchange: Exchange, _ answer: Answer) -> MHD_Result {
        respond(exchange, Response(answer))
    }

    private func respond(_ exchange: Exchange, _ response: Response) -> MHD_Result {
        exchange.state = .done
        return response.queue(on: exchange.connection)
    }
}

/// Calls `body` with pointers to C strings, which libmicrohttpd reads while it starts.
private func withPointers<R>(_ texts: [[CChar]], _ body: ([UnsafeMutableRawPointer?]) -> R) -> R {
    let pointers = texts.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers.map { UnsafeMutableRawPointer($0) })
}

/// Makes the server, confines it and runs it. Returns the exit status: 0 after the parent has gone.
func runReceiver() -> Int32 {
    signal(SIGPIPE, SIG_IGN)
    guard let address = listeningAddress(), let certificate = Certificate(for: address),
        let memory = PieceMemory(.ofProcess)
    else { return 1 }
    let server = Server(certificate, memory, .ofProcess)
    guard server.start(), confineServer() else { return 1 }
    server.run()
    return 0
}
