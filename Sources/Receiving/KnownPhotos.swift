import FileRequests
import Glibc
import HostFiles
import LinuxIO
import ReceiveProtocol
import VaultCrypto

/// Looks for files that a device is about to send, among the photos of the space: by name, size and a sample.
struct KnownPhotos {
    private let mount: ReceivingMount
    private let album: OpenDirectory

    init(_ mount: ReceivingMount, _ album: OpenDirectory) { (self.mount, self.album) = (mount, album) }

    /// Whether each is there. A photo that is in another place of the space is added to the album.
    func find(_ queries: [KnownQuery]) -> [Bool] {
        var isKnown = queries.map { isSame($0, album) }
        let rest = queries.indices.filter { !isKnown[$0] }
        guard !rest.isEmpty, let moments = try? mount.open(["moments"], makes: false),
            let days = try? moments.list()
        else { return isKnown }
        var wanted: [Name: [Int]] = [:]
        for index in rest { wanted[Name(queries[index].name), default: []].append(index) }
        for day in days where !wanted.isEmpty {
            guard let directory = try? moments.open(day), let names = try? directory.list() else { continue }
            for name in names {
                guard let indices = wanted[name] else { continue }
                for index in indices where isSame(queries[index], directory) {
                    isKnown[index] = link(name, from: directory)
                }
                if indices.allSatisfy({ isKnown[$0] }) { wanted[name] = nil }
            }
        }
        return isKnown
    }

    /// Adds a photo to the album. False if its name is taken there: then it is sent, and numbered.
    private func link(_ name: Name, from directory: OpenDirectory) -> Bool {
        HostPath(name.bytes).withCString { linkat(directory.descriptor, $0, album.descriptor, $0, 0) } == 0
    }

    private func isSame(_ query: KnownQuery, _ directory: OpenDirectory) -> Bool {
        let name = Name(query.name)
        guard let found = try? directory.status(name), found.isRegular, found.byteCount == query.size,
            let descriptor = try? directory.openFile(name, O_RDONLY)
        else { return false }
        defer { close(descriptor) }
        return fileSample(descriptor, query.size) == query.sample
    }
}

/// The sample of an open file (`sampleRanges`); nil if it cannot be read.
private func fileSample(_ descriptor: Int32, _ size: UInt64) -> [UInt8]? {
    let digest = SHA256()
    withUnsafeBytes(of: size.bigEndian) { digest.update($0) }
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    for range in sampleRanges(size) {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(range.upperBound - offset, UInt64(buffer.count)))
            let count = pread(descriptor, &buffer, wanted, off_t(offset))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return nil }
            buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += UInt64(count)
        }
    }
    return digest.finish()
}
