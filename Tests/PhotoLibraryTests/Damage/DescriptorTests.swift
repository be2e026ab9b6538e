import LibraryFixtures
import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// A repair of descriptors on storage that answers twice differently: nothing that it answers destroys an extent.
@Suite("Damage: descriptors") struct DescriptorTests {
    /// Storage that answers some reads of one sector with another nonce.
    private final class TwoFaced: ForwardingCalls {
        let real: any FileSystemCalls
        private let offset: UInt64
        /// Which of the answers are true, in their order; behind the last all are.
        private let truths: Mutex<[Bool]>

        init(_ real: any FileSystemCalls, offset: UInt64, truths: [Bool]) {
            self.real = real
            self.offset = offset
            self.truths = Mutex(truths)
        }

        func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int
        {
            let count = try real.pread(d, bytes, at: offset)
            // Pages may lie there in other segments.
            let isOfExtent = bytes.count == Geometry.sectorBytes || bytes.count % Geometry.pageBytes != 0
            guard offset == self.offset, isOfExtent, count > 0 else { return count }
            let isTrue = truths.withLock { $0.isEmpty || $0.removeFirst() }
            if !isTrue { bytes[0] ^= 1 }
            return count
        }
    }

    @Test(arguments: [
        [true, false], [false, true], [false], [true, true, false], [true, false, true], [],
    ])
    func `storage that answers twice differently chooses no nonce`(truths: [Bool]) throws {
        let vault = try MemoryVault(spaces: 2, segments: 4)
        let disk = MemoryDisk(vault.empty, isRecording: false)
        let bytes = noise(200_000)
        let user = try MemoryUser(vault, disk)
        // Not where a segment begins: other files are read there.
        try user.put("albums/first", [1])
        try user.put("albums/a", bytes)
        let content = try user.library.session.locked { tree throws(FileError) in
            try tree.inode(try tree.tables.dentries.entry(3, Array("a".utf8))?.ino ?? 0).row.content
        }
        try user.close()
        let space = try vault.openSpace(disk, isReadOnly: true)
        let run = try #require(try space.fileRuns(of: content).first)
        // A bit of the descriptor.
        var head = [UInt8](repeating: 0, count: 80)
        try head.withUnsafeMutableBytes { try space.parts.disk.read(run.sector, into: $0) }
        let whole = head
        head[30] ^= 1
        try head.withUnsafeBytes { try space.parts.disk.write(run.sector, $0) }
        disk.closeAll()
        let plan = try SpaceCheck.run(try vault.unlock(disk)).plan
        #expect(plan.lines == ["rewrite a descriptor"])
        disk.closeAll()
        let perSegment = UInt64(space.sectors.perSegment)
        let files = try #require(space.parts.disk.host as? SegmentFiles)
        let offset = files.start(Int(run.sector / perSegment)) + run.sector % perSegment * 512
        try SpaceRepair.run(try vault.unlock(TwoFaced(disk, offset: offset, truths: truths)), plan)
        disk.closeAll()
        // At worst the descriptor is as it was.
        try head.withUnsafeMutableBytes { bytes in
            try vault.openSpace(disk, isReadOnly: true).parts.disk.read(run.sector, into: bytes)
        }
        let (isNonceSame, isMended) = (head[..<24] == whole[..<24], head == whole)
        #expect(isNonceSame && isMended == truths.first ?? true)
        disk.closeAll()
        #expect(try SpaceCheck.run(try vault.unlock(disk)).findings.contains { !$0.isHarmless } == false)
        disk.closeAll()
        let again = try MemoryUser(vault, disk)
        let isWhole = try again.get("albums/a") == bytes
        #expect(isWhole)
        try again.close()
    }
}

extension Space {
    fileprivate func fileRuns(of content: UInt64) throws -> [ExtentRun] {
        try Catalogue(storage: self, readOnly: true).locked {
            try $0.runs.runs(of: content, isRecord: false).map(\.run)
        }
    }
}
