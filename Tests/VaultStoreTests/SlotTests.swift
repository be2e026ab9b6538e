import Testing

@testable import VaultFormat
@testable import VaultStore

@Suite("Space: slots of pages") struct SlotTests {
    @Test func `only slots that have their disk are given out`() throws {
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

    @Test func `slots in use have their disk`() {
        let slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [0xFFFF, 1 << 6], backed: 20)
        #expect(slots.backedSlots == 71 && slots.freeSlots == 71 - 17)
    }

    @Test func `a slot of soft roots alone is reused once its replacement is published, and first of all`() {
        var slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [0xFFFF, 1], backed: 256)
        #expect([slots.take(), slots.take()] == [16, 17])
        // Slot 64 was taken by another mount: a durable root may refer to it.
        #expect([slots.replace(64), slots.replace(16)] == [false, true])
        #expect(!slots.isUsed(16) && slots.usedSlots == 19)
        // The published root still refers to it.
        #expect(slots.take() == 18)
        slots.didPublish(durable: false, mayReuse: true)
        #expect(slots.usedSlots == 19 && slots.take() == 16)
        // A second free slot of the same commit, and a durable root that refers to the others.
        #expect(slots.replace(17) == true)
        slots.didPublish(durable: true, mayReuse: true)
        #expect([slots.replace(16), slots.replace(18)] == [false, false])
        #expect(slots.take() == 19)
    }

    @Test func `slots that a failed commit replaced are in use again, and none counts as one of soft roots`()
    {
        var slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [], backed: 256)
        #expect([slots.take(), slots.take()] == [16, 17])
        #expect(slots.replace(16) == true)
        slots.takeBack()
        #expect(slots.isUsed(16) && slots.usedSlots == 18 && slots.dirtyPages == [0])
        #expect([slots.replace(16), slots.replace(17)] == [false, false])
        #expect(slots.take() == 18 && slots.replace(18) == true)
    }

    @Test func `while an older state is read, its slots are withheld`() {
        var slots = SlotAllocator(slotsPerPair: 256, pairCount: 1, words: [], backed: 19)
        #expect([slots.take(), slots.take()] == [16, 17])
        #expect(slots.replace(16) == true)
        slots.didPublish(durable: false, mayReuse: false)
        #expect(slots.freeSlots == 1 && slots.lastUsed == 17)
        #expect(slots.take() == 18 && slots.take() == nil)
        slots.didPublish(durable: false, mayReuse: true)
        #expect(slots.freeSlots == 1 && slots.take() == 16)
    }

    @Test func `preferred slots are given out first`() {
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
