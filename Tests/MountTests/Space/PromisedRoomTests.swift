import Foundation
import TestSupport
import TestThreads
import Testing
import VaultFormat

/// What `create` says of a size, beside the photos that fit.
@Suite("Space: as many photos as were promised", .serialized, .waiting) struct PromisedRoomTests {
    private static let photoBytes = 4_000_000

    /// Of both sizes of segments, and with and without more of them for pages.
    @Test(arguments: [(16, 2), (24, 3), (32, 2), (64, 3), (272, 2)])
    func `all photos that were promised fit`(mebibytes: Int, spaces: Int) throws {
        let place = try Place(spaces: spaces, size: "\(mebibytes)M")
        try place.mount()
        let count = FixedSpace(newOfBytes: UInt64(mebibytes) << 20).photosWhenNew(
            bytesPerPhoto: Self.photoBytes)
        for number in 0..<count {
            try place.source("\(number).jpg", Photo(width: 300, height: 200, seed: UInt8(number)).bytes)
        }
        // Different bytes: of equal files the content is kept once.
        try place.shell(
            """
            for photo in source/*.jpg; do
                head -c $((\(Self.photoBytes) - $(stat -c %s $photo))) /dev/urandom >>$photo
            done
            """)
        try place.shell("cp source/*.jpg D/albums")
        try place.unmount()
        try place.mount()
        try place.shell("diff -r source D/albums")
        // And not a quarter more, so that the promise is worth something.
        let more = """
            for n in {0..\(count / 4)}; do head -c \(Self.photoBytes) /dev/urandom >D/albums/$n || exit 1; done
            """
        #expect(try place.run(["/bin/bash", "-c", more]).errors.contains("No space left on device"))
        try place.unmount()
    }
}
