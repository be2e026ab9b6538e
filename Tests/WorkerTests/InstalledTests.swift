import Foundation
import Glibc
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// Thumbnailers that others installed, in their boxes. Real ones, made of scripts.
    @Suite("Decoders: installed programs") struct InstalledTests {
        let home: DataHome

        init() throws { home = try DataHome() }

        private let video = Array("a video, by what is said of it".utf8)

        @Test func `the picture that a program draws is shown`() throws {
            let png = TestPNG(width: 200, height: 120).bytes
            // It must be given the very bytes, under a name of the type, and the size that was asked for.
            let check = """
                [ "$1" = /tmp/input.mkv ] && [ "$3" = 256 ] || exit 1
                [ "$(cat "$1")" = '\(String(decoding: video, as: UTF8.self))' ] || exit 1

                """
            try home.add(check + DataHome.writing(png), types: "video/webm;")
            let workers = makeWorkers(installed: home.installed())
            #expect(workers.decodableTypes == ThumbnailWorkers.decodedTypes.union([.matroska]))
            let jpeg = try workers.makeThumbnail(of: MemorySource(bytes: video), type: .matroska, box: 256)
            let thumbnail = try #require(DecodedThumbnail(jpeg))
            #expect(thumbnail.size == PixelSize(width: 200, height: 120))
            #expect(thumbnail.corners == Corner.stored)
            let source = MemorySource(bytes: video)
            #expect(throws: ThumbnailError.unavailable) {
                try workers.makeThumbnail(of: source, type: .avi, box: 256)
            }
        }

        /// Its picture goes the way of all pictures: it is turned, cropped, and made smaller, never larger.
        @Test func `a program's JPEG is a picture like any other`() throws {
            var picture = TestPicture(width: 400, height: 300)
            picture.orientation = 6
            try home.add(DataHome.writing(picture.jpeg))
            let workers = makeWorkers(installed: home.installed())
            for (size, expected) in [
                (PictureSize(fitting: 100), (75, 100)), (PictureSize(fitting: 4096), (300, 400)),
                (PictureSize(width: 60, height: 60, isFilled: true), (60, 60)),
            ] {
                let bytes = try workers.makeThumbnail(of: MemorySource(bytes: video), type: .mp4, size: size)
                let found = try #require(DecodedThumbnail(bytes))
                #expect((found.size.width, found.size.height) == expected)
                #expect(found.corners == [[.blue, .red], [.white, .green]])
            }
        }

        @Test func `a picture to be filled is asked for in a larger size`() throws {
            try home.add("printf '\(DataHome.reportHead)size %s\\n' \"$3\" >\"$2\"")
            let installed = home.installed()
            for (size, side) in [
                (PictureSize(fitting: 512), "512"), (PictureSize(fitting: 16), "128"),
                (PictureSize(width: 256, height: 100, isFilled: true), "768"),
                (PictureSize(width: 4096, height: 100, isFilled: true), "4096"),
            ] {
                let drawn = try installed.draw(MemorySource(bytes: video), type: .mp4, side: size.drawnSide)
                #expect(reportLines(drawn.bytes)["size"] == side)
            }
        }

        /// Some enlarge their picture to the size that they are given.
        @Test func `no program is asked for more than the picture has`() throws {
            try home.add(
                """
                if [ "$3" = 90 ]; then
                \(DataHome.writing(TestPicture(width: 90, height: 60).jpeg))
                else
                \(DataHome.writing(TestPicture(width: 1024, height: 683).jpeg))
                fi
                """, types: "image/bmp;")
            // The headers of a bitmap of 90 by 60 pixels.
            let bmp: [UInt8] =
                Array("BM".utf8) + [
                    62, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 90, 0, 0, 0, 60, 0, 0, 0,
                ]
                + [1, 0, 24, 0] + [UInt8](repeating: 0, count: 32)
            for size in [
                PictureSize(fitting: 1024), PictureSize(width: 256, height: 256, isFilled: true),
            ] {
                let jpeg = try makeWorkers(installed: home.installed()).makeThumbnail(
                    of: MemorySource(bytes: bmp), type: .bmp, size: size)
                #expect(try #require(DecodedThumbnail(jpeg)).size == PixelSize(width: 90, height: 60))
            }
        }

        @Test func `without installed programs there are no pictures`() throws {
            let installed = home.installed()
            #expect(installed.types.isEmpty)
            #expect(throws: ThumbnailError.unavailable) { try installed.report() }
            // As soon as there is one it is known, and forgotten when it is gone.
            try home.add("printf '\(DataHome.reportHead)' >\"$2\"")
            #expect(installed.types == [.mp4, .m4v])
            #expect(try installed.report().isEmpty)
            try home.remove("a")
            #expect(installed.types.isEmpty)
            try home.add("printf '\(DataHome.reportHead)' >\"$2\"")
            #expect(
                home.installed(bubblewrap: "/nonexistent/bwrap").types.isEmpty, "without a box there is none")
            // Programs that are there and make no box.
            #expect(home.installed(bubblewrap: "/usr/bin/true").types.isEmpty)
        }

        @Test func `if one program fails, the next is tried`() throws {
            try home.add("exit 3", named: "a")
            try home.add("echo no picture >\"$2\"", named: "b")
            try home.add("printf '\(DataHome.reportHead)c\\n' >\"$2\"", named: "c")
            #expect(try home.installed().report() == ["c": ""])
        }

        @Test func `a photo of which all programs fail is undecodable`() throws {
            let scripts = ["exit 1", "exit 0", "echo text >\"$2\"", "kill -9 $$", "ln -s /dev/zero \"$2\""]
            for script in scripts {
                try home.add(script)
                let installed = home.installed { $0.outputBytes = 1 << 20 }
                #expect(throws: ThumbnailError.undecodable, "\(script)") { try installed.report() }
            }
            try home.add("mkfifo \"$2\"")
            #expect(throws: ThumbnailError.outOfTime) {
                try home.installed { $0.milliseconds = 500 }.report()
            }
            // A picture to the end of its header alone is the worker's to refuse.
            try home.add("printf '\(DataHome.reportHead)' >\"$2\"")
            let workers = makeWorkers(installed: home.installed())
            let source = MemorySource(bytes: video)
            #expect(throws: ThumbnailError.undecodable) {
                try workers.makeThumbnail(of: source, type: .mp4, box: 256)
            }
        }

        /// That a program cannot be run says nothing of the picture.
        @Test func `a program that cannot be run is unavailable`() throws {
            try home.add("exit 0", shell: "/nonexistent/interpreter")
            #expect(throws: ThumbnailError.unavailable) { try home.installed().report() }
            #expect(throws: ThumbnailError.workerFailed) {
                try home.installed().draw(FailingSource(), type: .mp4, side: 128)
            }
        }

        @Test func `a program that hangs costs its picture alone`() throws {
            try home.add(
                """
                [ "$(cat "$1")" = picture ] || exec sleep \(home.nap)
                printf '\(DataHome.reportHead)' >"$2"
                """)
            var hasRun = false
            // Until it is seen: on a busy machine its time may be over before it is there.
            for milliseconds in [700, 3000, 30_000] where !hasRun {
                let installed = home.installed { $0.milliseconds = milliseconds }
                let group = onThreads(1) { [video] _ in
                    #expect(throws: ThumbnailError.outOfTime) { try installed.report(video) }
                }
                while group.wait(timeout: .now() + 0.01) == .timedOut {
                    hasRun = hasRun || !home.processes.isEmpty
                }
            }
            #expect(hasRun)
            let left = home.processes
            #expect(left.isEmpty, "\(left.map { kernelText("/proc/\($0)/status") ?? "gone" })")
            #expect(home.installed().types == [.mp4, .m4v])
            #expect(try home.installed().report().isEmpty)
        }

        /// Its time may be over at any moment of its start.
        @Test func `a program that is stopped while it starts leaves none`() throws {
            try home.add("exec sleep \(home.nap)")
            let program = home.root + "/a.sh"
            let entry = try #require(
                ThumbnailerEntry("[Thumbnailer Entry]\nExec=\(program) %i %o\nMimeType=video/mp4\n"))
            let sleep = ThumbnailerCatalogue.Thumbnailer(entry: entry, program: program)
            let command = ThumbnailerSandbox().command(sleep, type: .mp4, side: 128)
            let alarm = try #require(Alarm())
            for round in 0..<300 {
                guard let input = MemoryFile.copy(of: MemorySource(bytes: video), byteCount: video.count)
                else {
                    throw POSIXError(.ENOMEM)
                }
                var limits = ThumbnailerLimits()
                limits.milliseconds = round % 30
                #expect(runSandboxed(command, input: input, limits, unless: alarm) == .outOfTime)
                #expect(home.processes.isEmpty, "round \(round)")
            }
        }

        /// Processes that it leaves running end with it, in any session and group.
        @Test func `processes are limited, and none is left`() throws {
            try home.add(
                """
                for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
                    setsid sleep \(home.nap) || exit 1 &
                done
                n=0
                # Until all are there, or one could not be made.
                while [ $n -lt 25 ]; do
                    kill -0 $! || exit 1
                    n=$(cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^sleep$')
                done
                printf '\(DataHome.reportHead)left %s\\n' $n >"$2"
                """)
            #expect(try home.installed().report()["left"] == "25")
            #expect(home.processes.isEmpty)
            let strict = home.installed { $0.processCount = 12 }
            #expect(throws: ThumbnailError.undecodable) { try strict.report() }
            #expect(home.processes.isEmpty)
        }

        @Test func `memory, files and time are limited`() throws {
            let installed = home.installed {
                $0.outputBytes = 1 << 20
                $0.scratchBytes = 3 << 20
                $0.memoryBytes = 200 << 20
                $0.processorSeconds = 1
            }
            // A gigabyte of output, in one file and in many.
            try home.add("printf '\(DataHome.reportHead)' >\"$2\"; head -c 1000000000 /dev/zero >>\"$2\"")
            #expect(throws: ThumbnailError.undecodable) { try installed.report() }
            try home.add(
                """
                i=0
                while head -c 1000000 /dev/zero >/tmp/$i; do i=$((i+1)); [ $i -lt 1000 ] || break; done 2>/dev/null
                rm /tmp/0
                printf '\(DataHome.reportHead)files %s\\n' $i >"$2"
                """)
            #expect(try installed.report()["files"] == "3")
            try home.add("perl -e '$x = \"a\" x 300_000_000' && printf '\(DataHome.reportHead)' >\"$2\"")
            #expect(throws: ThumbnailError.undecodable) { try installed.report() }
            #expect(try home.installed().report().isEmpty)
            try home.add("while :; do :; done")
            #expect(throws: ThumbnailError.undecodable) { try installed.report() }
        }

        /// Of a large one the parts that are wanted, in a file of the whole size that takes no more memory than they.
        @Test func `a large video is given in parts`() throws {
            let video = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 >> 16 &+ 1) }
            try home.add(
                """
                at() { dd if="$1" bs=1 skip=$2 count=1 2>/dev/null | od -An -tu1 | tr -d ' '; }
                printf '\(DataHome.reportHead)size %s\\nblocks %s\\n' $(stat -L -c '%s %b' "$1") >"$2"
                for i in 0 838860 2796202 5000000 8388607; do echo "$i $(at "$1" $i)" >>"$2"; done
                """)
            let report = try home.installed { $0.inputBytes = 1 << 20 }.report(video)
            #expect(report["size"] == "\(8 << 20)")
            #expect(Int(report["blocks"] ?? "").map { $0 * 512 <= 3 << 19 } == true)
            for place in [0, 838_860, 2_796_202, 8_388_607] {
                #expect(report["\(place)"] == "\(video[place])")
            }
            #expect(report["5000000"] == "0")
        }

        @Test func `shutting down ends the programs that run`() throws {
            try home.add("sleep \(home.nap)")
            let before = openDescriptors()
            let installed = home.installed()
            let group = onThreads(5) { _ in
                #expect(throws: ThumbnailError.cancelled) { try installed.report() }
            }
            #expect(eventually { home.processes.filter { isNap($0) }.count == 2 }, "two at a time")
            installed.shutDown()
            #expect(home.processes.isEmpty)
            group.wait()
            #expect(throws: ThumbnailError.cancelled) { try installed.report() }
            installed.shutDown()
            #expect(eventually { openDescriptors().isSubset(of: before) })
        }

        private func isNap(_ process: Int32) -> Bool {
            let line = kernelText("/proc/\(process)/cmdline") ?? ""
            return line.hasPrefix("sleep")
        }

        /// As when the daemon is killed: the outer process takes the inner ones with it.
        @Test func `a box ends with its maker`() throws {
            try home.add("sleep \(home.nap)")
            let installed = home.installed()
            let group = onThreads(1) { _ in
                #expect(throws: ThumbnailError.undecodable) { try installed.report() }
            }
            #expect(eventually { home.processes.contains { isNap($0) } })
            let outside = try #require(home.processes.first { parent(of: $0) == getpid() })
            kill(outside, SIGKILL)
            group.wait()
            #expect(eventually { home.processes.isEmpty })
        }

        private func parent(of process: Int32) -> Int32? {
            let line = kernelText("/proc/\(process)/stat") ?? ""
            guard let close = line.lastIndex(of: ")") else { return nil }
            return Int32(line[close...].split(separator: " ")[2])
        }
    }
}
