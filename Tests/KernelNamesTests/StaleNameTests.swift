import Testing

@testable import KernelNames

@Suite("Kernel: names that it has cached") struct StaleNameTests {
    private var names = KernelNames(
        threadsMax: 4, lookupsMin: 3, listingsMax: 2, staleInodesMin: 2, virtualNamesMin: 2)
    private var dentries = DentryState()

    @Test mutating func `an inode that lost a name is refused until it is looked up`() {
        names.noteArrival(of: &dentries, as: Array("a".utf8), in: 2, isInDay: false)
        #expect(names.mustRetry(7, &dentries, by: 1, isNotified: false))
        names.noteRefused(1)
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 1, isNotified: false)
        // The thread that was refused looked the name up: its answer is right.
        #expect(!names.mustRetry(7, &dentries, by: 1, isNotified: false))
        // Another thread may still use the outdated name.
        #expect(names.mustRetry(7, &dentries, by: 2, isNotified: false))
    }

    @Test mutating func `after the kernel is notified nothing is refused`() {
        names.noteArrival(of: &dentries, as: Array("a".utf8), in: 2, isInDay: false)
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 1, isNotified: true)
        #expect(!dentries.isDoubtful)
        #expect(!names.mustRetry(7, &dentries, by: 2, isNotified: true))
    }

    @Test mutating func `a lookup before the notices is confirmed by them`() {
        dentries.mayBeStale = true
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 1, isNotified: false)
        #expect(dentries.isUnconfirmed)
        #expect(!names.mustRetry(7, &dentries, by: 2, isNotified: true))
        #expect(!dentries.isUnconfirmed)
    }

    @Test mutating func `an inode that left memory is still refused`() {
        dentries.mayBeStale = true
        for ino in 1...4 as ClosedRange<UInt64> { names.noteEvicted(ino, dentries) }
        names.noteEvicted(5, DentryState())
        #expect(!names.loadedState(of: 5).isDoubtful)
        // Two generations of two.
        names.noteEvicted(6, dentries)
        for ino in [1, 2] as [UInt64] { #expect(!names.loadedState(of: ino).isDoubtful) }
        for ino in [3, 4, 6] as [UInt64] {
            #expect(names.loadedState(of: ino).mayBeStale)
            #expect(!names.loadedState(of: ino).mayBeStale)
        }
    }

    @Test mutating func `names in views are remembered until others are newer`() {
        let (name, other) = (Array("a.jpg".utf8), Array("b.jpg".utf8))
        // One inode by the same name, again and again, among others.
        for ino in 10...19 as ClosedRange<UInt64> {
            names.noteVirtualName(name, in: 5, of: 1)
            names.noteVirtualName(name, in: 6, of: 1)
            names.noteVirtualName(other, in: 5, of: ino)
        }
        let evicted = names.notices
        #expect(
            evicted.allSatisfy { $0 == .lostEntry(parent: 5, name: other, isInDay: true) }
                && evicted.count >= 6)
        names.dropVirtualNames(of: 1)
        #expect(
            names.notices.dropFirst(evicted.count) == [
                .lostEntry(parent: 5, name: name, isInDay: true),
                .lostEntry(parent: 6, name: name, isInDay: true),
            ])
        // The newest one is remembered, those before it are not.
        let before = names.notices.count
        for ino in [18, 19] as [UInt64] { names.dropVirtualNames(of: ino) }
        #expect(names.notices.count == before + 1)
    }

    @Test func `a table remembers its newest entries`() {
        var sizes = RecentTable<Int, Int>(countMax: 2)
        for number in 1...5 { sizes.insert(number * 10, for: number) }
        #expect((1...5).map { sizes[$0] } == [nil, nil, 30, 40, 50])
        sizes.insert(31, for: 3)
        #expect(sizes[3] == 31)
        #expect(sizes.remove(3) == 31 && sizes[3] == nil && sizes.remove(3) == nil)
    }

    @Test mutating func `a thread is refused once for one lookup`() {
        dentries.mayBeStale = true
        names.noteRefused(1)
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 1, isNotified: false)
        // The answer to another request of the thread counts only once.
        #expect(!names.mustRetry(7, &dentries, by: 1, isNotified: false))
        #expect(names.mustRetry(7, &dentries, by: 1, isNotified: false))
    }

    @Test mutating func `a directory on the way is not the thread's target`() {
        var directory = DentryState()
        dentries.mayBeStale = true
        names.noteRefused(1)
        names.noteLookup(of: 3, &directory, continuesPath: true, by: 1, isNotified: false)
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 1, isNotified: false)
        #expect(!names.mustRetry(7, &dentries, by: 1, isNotified: false))
    }

    @Test mutating func `notices leave in the order of the changes`() {
        names.noteChange(of: 5)
        names.noteLoss(of: [97], in: 2, isInDay: false)
        names.noteLoss(of: [97], in: 4, isInDay: true)
        names.noteArrival(of: &dentries, as: [98], in: 3, isInDay: false)
        names.noteNewBytes(of: 6)
        #expect(
            names.takeNotices() == [
                .attributes(5), .lostEntry(parent: 2, name: [97], isInDay: false),
                .lostEntry(parent: 4, name: [97], isInDay: true),
                .entry(parent: 3, name: [98], isInDay: false), .inode(6),
            ])
        #expect(names.notices.isEmpty)
    }

    @Test mutating func `threads that were refused are bounded`() {
        dentries.mayBeStale = true
        for thread in Int32(1)...5 { names.noteRefused(thread) }
        names.noteLookup(of: 7, &dentries, continuesPath: false, by: 5, isNotified: false)
        #expect(!names.mustRetry(7, &dentries, by: 5, isNotified: false))
    }

    @Test func `of many threads' lookups the newest are remembered`() {
        let countMax = 3
        var lookups = DayLookups(threadsMax: countMax)
        for thread in Int32(1)...20 {
            lookups.note(UInt64(thread) + 100, isMarked: true, by: thread)
            for older in max(1, thread - 2)...thread { #expect(lookups[older] == UInt64(older) + 100) }
            #expect((1...20).filter { lookups[$0] != nil }.count <= 2 * countMax)
        }
        lookups.note(120, isMarked: false, by: 19)
        #expect(lookups[19] == 119)
        lookups.note(119, isMarked: false, by: 19)
        #expect(lookups[19] == nil)
    }
}

@Suite("Kernel: listings that it keeps") struct KeptListingTests {
    private var listings = KeptListings(directoriesMax: 2)

    /// Opens, reads and closes a directory. Returns whether the kernel was told to keep its pages.
    private mutating func list(_ directory: UInt64) -> Bool {
        let opened = listings.open(directory)
        listings.noteRead(directory, by: opened)
        listings.close(directory, opened)
        return opened.isKept
    }

    private mutating func expectListing(_ directory: UInt64, isKept: Bool) {
        let wasKept = list(directory)
        #expect(wasKept == isKept)
    }

    private mutating func expectChange(of directory: UInt64, dropsPages: Bool) {
        let dropped = listings.change(directory)
        #expect(dropped == dropsPages)
    }

    @Test mutating func `a listing is kept until a name changes`() {
        expectListing(2, isKept: false)
        expectListing(2, isKept: true)
        expectChange(of: 2, dropsPages: false)
        expectListing(2, isKept: false)
        expectListing(2, isKept: true)
    }

    @Test mutating func `a directory that was opened and not read has no listing`() {
        let opened = listings.open(2)
        listings.close(2, opened)
        expectListing(2, isKept: false)
    }

    @Test mutating func `a second handle keeps nothing before the first has read`() {
        let first = listings.open(2)
        let second = listings.open(2)
        #expect(!first.isKept && !second.isKept)
        listings.noteRead(2, by: second)
        let third = listings.open(2)
        #expect(third.isKept)
    }

    @Test mutating func `a handle from before a change keeps all others from keeping`() {
        let old = listings.open(2)
        listings.noteRead(2, by: old)
        _ = listings.change(2)
        // It may fill pages with names that it read before the change.
        expectListing(2, isKept: false)
        expectListing(2, isKept: false)
        listings.close(2, old)
        expectListing(2, isKept: false)
        expectListing(2, isKept: true)
    }

    @Test mutating func `a change drops the pages of an open directory, once for each reading`() {
        let opened = listings.open(2)
        expectChange(of: 2, dropsPages: false)
        listings.noteRead(2, by: opened)
        expectChange(of: 2, dropsPages: true)
        expectChange(of: 2, dropsPages: false)
        listings.noteRead(2, by: opened)
        expectChange(of: 2, dropsPages: true)
        listings.close(2, opened)
        #expect(listings.count == 0)
    }

    @Test mutating func `closed directories are forgotten when there are many, open ones never`() {
        let open = listings.open(2)
        for directory in UInt64(3)..<20 { _ = list(directory) }
        #expect(listings.count <= 2)
        expectListing(3, isKept: false)
        listings.close(2, open)
    }
}
