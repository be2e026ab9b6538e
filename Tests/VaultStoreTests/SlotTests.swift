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
}
