import Foundation
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoLibrary
import TestSupport
import Testing

@testable import FileRequests
@testable import Importing
@testable import obscura

@Suite("Commands: import and export, progress") struct TransferTests {
    @Test func `the line fits the terminal`() {
        let state = TransferState(photos: 412, photosMax: 1023, bytes: 1 << 30, bytesMax: 3 << 30)
        let whole = "Importing: 33 %, 412 of 1023 photos, 1 GiB of 3 GiB, 102 MiB/s, about 21 s left"
        #expect(state.line("Importing", seconds: 10, width: 200).hasSuffix(whole))
        for width in 0..<200 {
            let line = state.line("Importing", seconds: 10, width: width)
            #expect(line.count <= width)
            if width > 20 { #expect(line.contains("Importing: 33 %")) }
        }
        #expect(state.line("Importing", seconds: 10, width: 80) == whole)
        #expect(state.line("I", seconds: 0, width: 52).hasPrefix("[#     ] I: 33 %"))
        let slow = TransferState(photosMax: 1, bytes: 1 << 20, bytesMax: 1 << 30)
        #expect(slow.line("I", seconds: 10, width: 200).contains("about 171 min left"))
    }

    @Test func `nothing to do is all done`() {
        #expect(TransferState(photosMax: 0, bytesMax: 0).share == 1000)
        #expect(TransferState(photos: 1, photosMax: 4, bytesMax: 0).share == 250)
        #expect(TransferState(photosMax: 1, bytes: 5, bytesMax: 4).share == 1000)
    }
}

@Suite("Commands: progress on a terminal") struct ProgressWidthTests {
    @Test(arguments: [(79, 3), (39, 2), (30, 1), (5, 0)]) func `a line never fills its terminal`(
        width: Int, parts: Int
    ) {
        let all = ["Filling the vault: 10 %", "1 GiB of 2 GiB", "about 20 min left"]
        let text = fitting(all, width: width)
        #expect(text.count <= width)
        #expect(text == (parts == 0 ? "Filli" : all.prefix(parts).joined(separator: ", ")))
    }
}

@Suite("Commands: import, its report") struct ImportReportTests {
    @Test func `tells what was done, by name where few`() {
        var report = ImportReport()
        #expect(report.lines(isVerbose: false) == ["0 photos added"])
        report.add(day: "2024-05-01", 1024)
        #expect(report.lines(isVerbose: false) == ["1 photo added, 1 KiB, on 2024-05-01"])
        report.add(day: "2024-05-03", 1024)
        report.duplicates = 2
        report.joined = 1
        report.sidecars = 1
        report.others = ["x", "y", "z"].map { HostPath($0) }
        report.removed = 4
        for index in 0..<ImportReport.namesMax { report.undated.append(HostPath("u\(index)")) }
        let names = (0..<ImportReport.namesMax).map { "u\($0)" }.joined(separator: ", ")
        #expect(
            report.lines(isVerbose: false) == [
                "2 photos added, 2 KiB, on 2 days from 2024-05-01 to 2024-05-03",
                "2 duplicates skipped, 1 of them added to the album",
                "10 without a date, under the day of their file's time: \(names)",
                "1 sidecar carried along", "3 left out: no photos (x, y, z)",
                "4 removed from where they were",
            ])
        report.others.append(HostPath("w"))
        #expect(
            report.lines(isVerbose: false).contains(
                "4 left out: no photos (x, y, z and 1 more: --verbose names them)"))
        #expect(
            report.lines(isVerbose: true).suffix(6) == [
                "4 left out: no photos:", "  x", "  y", "  z", "  w", "4 removed from where they were",
            ])
        report.undated.append(HostPath("one more"))
        #expect(report.lines(isVerbose: false)[2] == "11 without a date, under the day of their file's time")
        report.isDry = true
        #expect(report.lines(isVerbose: false)[0].hasPrefix("2 photos would be added"))
        #expect(report.lines(isVerbose: false)[1].hasSuffix("would be added to the album"))
        report.addUnreadable(HostPath("a\nb"), "no")
        #expect(report.failures.map(\.line) == ["obscura: a?b: no"])
    }
}

@Suite("Commands: import, its sources") final class SourceListTests {
    private let root = "/tmp/obscura-sources-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: root) }

    private func make(_ paths: String...) throws {
        for path in paths {
            let url = URL(fileURLWithPath: root + "/" + path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("x".utf8).write(to: url)
        }
    }

    private func found(_ paths: String..., vault: String? = nil, restores: Bool = true) -> SourceList {
        SourceList(
            paths.map { HostPath(root + "/" + $0) },
            vault: vault.flatMap { try? HostPath(root + "/" + $0).status().identity }, restores: restores)
    }

    private func names(_ list: SourceList) -> [String] {
        list.items.map { list.path(of: $0).shown.replacingOccurrences(of: root + "/", with: "") }
    }

    @Test func `files are in order, working files left out, links not followed`() throws {
        try make(
            "b/z.jpg", "b/a.jpg", "a.jpg", "c.jpg~", ".c.jpg", ".d/c.jpg", "@eaDir/d.jpg", "e.part", "V/x.jpg"
        )
        #expect(symlink("b", root + "/link") == 0 && symlink("a.jpg", root + "/link.jpg") == 0)
        #expect(mkfifo(root + "/fifo.jpg", 0o600) == 0)
        let list = found("", vault: "V")
        #expect(names(list) == ["a.jpg", "b/a.jpg", "b/z.jpg"])
        #expect(list.byteCount == 3 && list.unreadable.isEmpty && list.others.isEmpty)
        // A path that the user names is followed, and taken under any name.
        #expect(names(found("link", ".c.jpg")) == ["b/a.jpg", "b/z.jpg", ".c.jpg"])
        #expect(found("nowhere", "fifo.jpg").unreadable.map(\.error) == [.noEntry, Errno(EINVAL)])
    }

    @Test(arguments: [0, 1, 7, 8, 9, 16, 17, 100]) func `files are opened ahead, in order`(count: Int) throws
    {
        for number in 0..<count { try make(String(format: "%03d.jpg", number)) }
        let list = count == 0 ? SourceList([], vault: nil, restores: false) : found("")
        if count > 2 { try FileManager.default.removeItem(atPath: root + "/002.jpg") }
        let reader = SourceReader(list)
        defer { reader.close() }
        for number in 0..<count {
            let next = try #require(reader.next())
            #expect(next.item == list.items[number])
            switch next.opened {
            case .success(let opened):
                #expect(opened.source.path == list.path(of: next.item) && opened.facts == nil)
            case .failure(let error): #expect(number == 2 && error == .noEntry)
            }
        }
        #expect(reader.next() == nil)
        #expect(reader.next() == nil)
    }

    /// Its thread holds the reader, which so is freed when it has ended.
    @Test(arguments: [0, 3, 16]) func `opening ahead ends early`(taken: Int) throws {
        for number in 0..<64 { try make("\(number).jpg") }
        weak var left: SourceReader?
        do {
            let reader = SourceReader(found(""))
            left = reader
            for _ in 0..<taken { #expect(reader.next() != nil) }
            reader.close()
        }
        #expect(eventually { left == nil })
    }

    @Test func `sidecars are no items of their own`() throws {
        try make("a.jpg", "a.jpg.xmp", "a.xmp", "b.CR2", "b.XMP", "alone.xmp")
        let list = found("")
        #expect(names(list) == ["a.jpg", "b.CR2"])
        #expect(list.items.map(\.sidecars) == [["a.jpg.xmp", "a.xmp"], ["b.XMP"]])
        #expect(list.others.map(\.name) == ["alone.xmp"])
        #expect(found("a.jpg").items.map(\.sidecars) == [["a.jpg.xmp", "a.xmp"]])
    }

    @Test func `files of an export are known as such`() throws {
        try make("e/moments/2024-05-01/a.jpg", "e/albums/b.jpg", "o/moments/2024-05-01/a.jpg", "o/x.jpg")
        try make("p/moments/May/a.jpg", "q/moments/2024-02-30/a.jpg")
        #expect(found("e").exports.map(\.shown) == [root + "/e"])
        #expect(found("e").items.isEmpty)
        #expect(found("e", restores: false).items.count == 2)
        // Others may have added to it.
        #expect(found("o").exports.map(\.shown) == [root + "/o"])
        #expect(found("o").items.map(\.name) == ["x.jpg"])
        for other in ["p", "q"] { #expect(found(other).exports.isEmpty && !found(other).items.isEmpty) }
    }

    @Test func `paths within others are taken once`() {
        let paths = ["/a/b", "/a", "/ab", "/a", "/c/d"].map { HostPath($0) }
        #expect(outermost(paths).map(\.shown) == ["/a", "/ab", "/c/d"])
        #expect(outermost([HostPath("/x"), HostPath("/")]).map(\.shown) == ["/"])
    }

    @Test func `equal bytes are equal`() throws {
        try make("a", "b")
        try Data("y".utf8).write(to: URL(fileURLWithPath: root + "/c"))
        let files = try ["a", "b", "c"].map { try SourceFile(HostPath(root + "/" + $0)) }
        #expect(compare(files[0], files[1]) { _ in false } == .equal)
        #expect(compare(files[0], files[2]) { _ in false } == .different)
        try Data("xx".utf8).write(to: URL(fileURLWithPath: root + "/a"))
        #expect(!files[0].isUnchanged && files[1].isUnchanged)
    }

    @Test func `holes are believed, unless every byte counts`() throws {
        try make("a")
        let (path, size) = (root + "/a", 1 << 33 as UInt64)
        #expect(truncate(path, off_t(size)) == 0)
        let (source, all) = (
            try SourceFile(HostPath(path)), try SourceFile(HostPath(path), believesHoles: false)
        )
        #expect(all.storedRange(from: 5) == 5..<size)
        // A host without holes has written it.
        if source.status.st_blocks < 1000 {
            #expect(source.storedRange(from: 0)?.lowerBound == 0)
            #expect(source.storedRange(from: 1 << 32) == nil)
        }
        #expect(source.storedRange(from: size) == nil && all.storedRange(from: size) == nil)
    }
}
