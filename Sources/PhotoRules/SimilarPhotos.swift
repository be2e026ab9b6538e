/// A photo, and the hash of its picture: of similar pictures the hashes differ in few bits.
package struct PhotoLikeness: Equatable, Sendable {
    package var ino: UInt64
    package var hash: UInt64

    package init(ino: UInt64, hash: UInt64) { (self.ino, self.hash) = (ino, hash) }
}

/// Groups photos whose pictures are similar.
///
/// Two photos of a group are linked by pairs that differ in at most ``NearPairs/distanceMax`` bits, the nearest ones
/// first. But a group grows only as far as its pictures remain similar to the one around which it grew: without that a
/// library's pages of text would be one group.
package struct SimilarPhotos {
    /// Bits in which a photo of a group may differ from the one around which the group grew.
    package static let spreadMax = 12
    /// Pairs that are examined at most: 12 bytes each.
    private static let pairsMax = 1 << 21

    /// The hashes, ascending, each once.
    private let hashes: [UInt64]
    /// The place of a hash's first photo, for each hash, and the end.
    private let starts: [UInt32]
    private let photos: [PhotoLikeness]
    /// The hash around which the group of each hash grew.
    private var centres: [UInt32]
    /// The next hash of the group, in a ring.
    private var next: [UInt32]
    /// Hashes of a group, at its centre.
    private var sizes: [UInt32]

    /// The groups of two photos and more, the largest first, at most `limit`. The photos of a group are in the order of
    /// their numbers.
    ///
    /// - Parameter photos: in the order of their numbers, each once.
    package static func groups(of photos: [PhotoLikeness], limit: Int) -> [[UInt64]] {
        guard photos.count > 1 else { return [] }
        var search = SimilarPhotos(sortedByHash(photos))
        search.join()
        return search.largest(limit)
    }

    private init(_ sorted: [PhotoLikeness]) {
        var (hashes, starts): ([UInt64], [UInt32]) = ([], [])
        for (index, photo) in sorted.enumerated() where index == 0 || hashes.last != photo.hash {
            hashes.append(photo.hash)
            starts.append(UInt32(index))
        }
        starts.append(UInt32(sorted.count))
        (photos, self.hashes, self.starts) = (sorted, hashes, starts)
        (centres, next, sizes) = ([], [], [])
    }

    /// Sorts by hash, and keeps the order of those with one hash.
    private static func sortedByHash(_ photos: [PhotoLikeness]) -> [PhotoLikeness] {
        var (from, to) = (photos, photos)
        for shift in stride(from: 0 as UInt64, to: 64, by: 16) {
            var places = [Int](repeating: 0, count: 1 << 16 + 1)
            for photo in from { places[Int(photo.hash >> shift & 0xFFFF) + 1] += 1 }
            for value in 1...1 << 16 { places[value] += places[value - 1] }
            unsafe to.withUnsafeMutableBufferPointer { to in
                for photo in from {
                    let value = Int(photo.hash >> shift & 0xFFFF)
                    unsafe to[places[value]] = photo
                    places[value] += 1
                }
            }
            swap(&from, &to)
        }
        return from
    }

    private mutating func join() {
        let pairs = NearPairs.find(among: hashes, limit: Self.pairsMax)
        centres = (0..<UInt32(hashes.count)).map { $0 }
        next = centres
        sizes = [UInt32](repeating: 1, count: hashes.count)
        for distance in 1...UInt8(NearPairs.distanceMax) {
            for pair in pairs where pair.distance == distance { join(pair.first, pair.second) }
        }
    }

    /// Joins the groups of two hashes, unless they would be too wide then.
    private mutating func join(_ first: UInt32, _ second: UInt32) {
        var (larger, smaller) = (Int(centres[Int(first)]), Int(centres[Int(second)]))
        if larger == smaller { return }
        if sizes[larger] < sizes[smaller] { swap(&larger, &smaller) }
        var member = smaller
        repeat {
            if (hashes[larger] ^ hashes[member]).nonzeroBitCount > Self.spreadMax { return }
            member = Int(next[member])
        } while member != smaller
        repeat {
            centres[member] = UInt32(larger)
            member = Int(next[member])
        } while member != smaller
        next.swapAt(larger, smaller)
        sizes[larger] += sizes[smaller]
    }

    private func largest(_ limit: Int) -> [[UInt64]] {
        var counts = [UInt32](repeating: 0, count: hashes.count)
        for index in hashes.indices { counts[Int(centres[index])] += starts[index + 1] - starts[index] }
        let found = counts.indices.filter { counts[$0] > 1 }
            .sorted { (counts[$0], $1) > (counts[$1], $0) }
            .prefix(limit)
        return found.map { centre in
            var (group, member): ([UInt64], Int) = ([], centre)
            group.reserveCapacity(Int(counts[centre]))
            repeat {
                group += photos[Int(starts[member])..<Int(starts[member + 1])].map(\.ino)
                member = Int(next[member])
            } while member != centre
            return group.sorted()
        }
    }
}
