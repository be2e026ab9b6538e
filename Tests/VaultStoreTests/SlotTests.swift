import Testing

@testable import VaultFormat
@testable import VaultStore

@Suite struct SlotTests {
    @Test func onlySlotsThatHaveTheirDiskAreGivenOut() throws {
        var slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [], backed: 20)
        #expect(slots.freeSlots == 20 - RootLayout.rootSlots)
        var taken: [UInt32] = []
        while let slot = slots.take() { taken.append(slot) }
        #expect(taken == [16, 17, 18, 19])
        // The search begins where it ended, and comes round.
        slots.back(22)
        try slots.release(17)
        #expect([slots.take(), slots.take(), slots.take(), slots.take()] == [20, 21, 17, nil])
        slots.addPair()
        #expect(slots.slotCount == 512 && slots.freeSlots == 0 && slots.take() == nil)
        slots.back(512)
        #expect(slots.freeSlots == 490 && slots.take() == 22)
    }

    @Test func whatIsInUseHasItsDisk() {
        let slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [0xFFFF, 1 << 6], backed: 20)
        #expect(slots.backedSlots == 71 && slots.freeSlots == 71 - 17)
    }

    @Test func preferredSlotsAreGivenOutFirst() {
        var slots = SlotAllocator(slotsPerPair: 256, pairCount: 2, words: [], backed: 512)
        #expect(slots.take() == 16)
        slots.prefer(300..<Int.max)
        #expect(slots.preferredFree == 212 && slots.take() == 300 && slots.preferredFree == 211)
        for slot in 301..<512 { #expect(slots.take() == UInt32(slot)) }
        // Then the others, rather than none.
        #expect(slots.preferredFree == 0 && slots.take() == 17)
        slots.prefer(0..<20)
        #expect(slots.take() == 18 && slots.take() == 19 && slots.take() == 20)
        slots.prefer(600..<700)
        #expect(slots.preferredFree == 0 && slots.take() == 21)
    }
}
