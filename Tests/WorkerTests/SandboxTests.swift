import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    @Suite("Decoders: the sandbox") struct SandboxTests {
        @Test func `the sandbox refuses all system calls but those of memory`() throws {
            let bytes = try makeWorkers(trial: "sandbox").thumbnail(TestPicture().jpeg)
            #expect(String(decoding: bytes.dropFirst(3).dropLast(2), as: UTF8.self) == "1111111111111")
        }

        @Test func `the sandbox is in force on a running decoder`() throws {
            let workers = makeWorkers(trial: "stall")
            let group = onThreads(1) { _ in _ = try? workers.thumbnail(TestPicture().jpeg) }
            var status: [Substring: String] = [:]
            var decoder: Int32 = 0
            // The fork by which a worker tries its sandbox is none: it has no picture.
            let isConfined = eventually {
                guard let worker = workerProcesses().first, let found = workerProcesses(of: worker).first,
                    let text = kernelText("/proc/\(found)/status"),
                    let maps = kernelText("/proc/\(found)/maps")
                else { return false }
                decoder = found
                for line in text.split(separator: "\n") {
                    let parts = line.split(separator: ":", maxSplits: 1)
                    status[parts[0]] = parts.last.map { $0.trimmingCharacters(in: .whitespaces) }
                }
                return status["Seccomp"] == "2" && maps.contains("/memfd:obscura")
            }
            #expect(isConfined)
            #expect(status["NoNewPrivs"] == "1")
            #expect(status["Threads"] == "1")
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] + (geteuid() == 0 ? ["CapBnd"] : []) {
                #expect(status[Substring(set)] == String(repeating: "0", count: 16), "\(set)")
            }
            let held = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(decoder)/fd").sorted()
            #expect(held == ["0", "1", "2"])
            let limits = try #require(kernelText("/proc/\(decoder)/limits"))
            #expect(limits.contains(#/Max core file size +0 /#))
            #expect(limits.contains(#/Max address space +1073741824 /#))
            #expect(limits.contains(#/Max cpu time +10 /#))
            let environment = try #require(kernelText("/proc/\(decoder)/environ"))
            #expect(environment == "SWIFT_BACKTRACE=enable=no\0")
            workers.shutDown()
            group.wait()
        }

        /// As when the daemon is killed: both processes go, though one is busy.
        @Test func `a worker ends with its socket`() throws {
            for trial in [nil, "stall"] as [String?] {
                let worker = try #require(
                    WorkerProcess.spawn(
                        executable: workerPath, arguments: trial.map { ["--trial", $0] } ?? []))
                guard case .words([WorkerProtocol.greeting]) = worker.receive(within: 5000) else {
                    Issue.record("no hello")
                    continue
                }
                if trial != nil {
                    let bytes = TestPicture().jpeg
                    let request = WorkerRequest(
                        .thumbnail, pictureBytes: bytes.count, size: PictureSize(fitting: 9))
                    guard
                        let picture = PictureFile.make(byteCount: bytes.count),
                        let result = MemoryFile.forResult(byteCount: request.resultBytes)
                    else {
                        Issue.record("no memory file")
                        continue
                    }
                    let descriptors = [picture.descriptor, result.descriptor]
                    #expect(worker.socket.send(request.words, descriptors: descriptors))
                    #expect(eventually { !workerProcesses(of: worker.processID).isEmpty })
                }
                let forks = workerProcesses(of: worker.processID)
                shutdown(worker.socket.descriptor, Int32(SHUT_RDWR))
                var status: Int32 = -1
                #expect(eventually { waitpid(worker.processID, &status, WNOHANG) == worker.processID })
                #expect(status == 0)
                for fork in forks { #expect(kill(fork, 0) != 0) }
                close(worker.socket.descriptor)
            }
        }

        @Test func `the picture cannot be changed or resized`() {
            guard let file = MemoryFile.copy(of: MemorySource(bytes: [1, 2, 3, 4]), byteCount: 4) else {
                Issue.record("no memory file")
                return
            }
            let descriptor = file.descriptor
            #expect(pwrite(descriptor, "x", 1, 0) == -1)
            #expect(ftruncate(descriptor, 2) == -1)
            #expect(ftruncate(descriptor, 8) == -1)
        }

        @Test func `an arriving picture is written by its client alone`() {
            guard let file = PictureFile.make(byteCount: 4) else {
                Issue.record("no memory file")
                return
            }
            let descriptor = file.descriptor
            let length = WorkerProtocol.pictureHeaderBytes + 4
            #expect(pwrite(descriptor, "x", 1, 0) == -1)
            #expect(ftruncate(descriptor, 2) == -1)
            #expect(ftruncate(descriptor, off_t(length + 1)) == -1)
            #expect(mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED)
            let mapping = mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, 0)!
            defer { munmap(mapping, length) }
            #expect(mprotect(mapping, length, PROT_READ | PROT_WRITE) == -1)
            let picture = ArrivingPicture(file: UnsafeRawBufferPointer(start: mapping, count: length)) {
                preconditionFailure("given up")
            }
            #expect(picture.wait(for: 0) == 0)
            let isFilled = file.fill(from: MemorySource(bytes: [1, 2, 3, 4]), while: { true })
            #expect(isFilled)
            #expect(Array(picture.whole) == [1, 2, 3, 4])
        }

        @Test func `requests are checked`() {
            let size = PictureSize(width: 3, height: 4, isFilled: true)
            var request = WorkerRequest(.sheet, pictureBytes: 10, size: size, format: .png, type: .gif)
            request.quickMilliseconds = 7
            #expect(WorkerRequest(words: request.words) == request)
            #expect(WorkerRequest(words: []) == nil)
            for index in 0..<8 {
                for value in [0, UInt64.max] {
                    var words = request.words
                    words[index] = value
                    // Without a job's number, flags or quick time it is another request.
                    let isAnother = value == 0 && [0, 5, 7].contains(index)
                    #expect((WorkerRequest(words: words) == nil) == !isAnother)
                }
            }
        }

        @Test func `composition requests are checked`() {
            let composition = CompositionRequest(
                title: "Día", tiles: [.init(jpeg: [1, 2, 3], label: "a"), .init(jpeg: [], label: "")])
            let bytes = composition.bytes
            bytes.withUnsafeBytes { #expect(CompositionRequest($0) == composition) }
            for count in 0..<bytes.count {
                bytes.prefix(count).withUnsafeBytes { #expect(CompositionRequest($0) == nil) }
            }
            for word in 0..<6 {
                for value in [UInt64(1) << 62, .max] {
                    var changed = bytes
                    withUnsafeBytes(of: value) { changed.replaceSubrange(word * 8..<word * 8 + 8, with: $0) }
                    changed.withUnsafeBytes { #expect(CompositionRequest($0) == nil) }
                }
            }
        }
    }
}
