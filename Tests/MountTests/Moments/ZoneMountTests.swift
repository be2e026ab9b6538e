import Foundation
import TestSupport
import TestThreads
import Testing

/// A photo dated in UTC stays on the day on which it was filed when it is edited under a mount with another time zone.
@Suite("Days: edits under another time zone", .serialized, .waiting) struct ZoneMountTests {
    @Test func `filed in Tokyo, edited in New York`() throws {
        let place = try Place()
        // 2024-05-01 20:00 UTC: the second in Tokyo, the first in New York.
        let time = 1_714_593_600
        try place.source("v.mov", movie(created: Int64(time)))
        try place.source("PXL_20240501_200000000.jpg", jpeg(nil, more: 1))
        try place.source("m.jpg", jpeg(nil, more: 2), modified: time)
        try place.mount(variables: ["TZ=JST-9"])
        try place.shell("cp -p source/* D/albums")
        let names = ["PXL_20240501_200000000.jpg", "m.jpg", "v.mov"]
        let shown = names.map { "2024-05-02/" + $0 }
        #expect(try place.shown() == shown)
        func captured() throws -> String {
            try place.shell("cd D/albums; getfattr --absolute-names --only-values -n user.obscura.captured *")
        }
        let before = try captured()
        try place.unmount()

        try place.mount(variables: ["TZ=EDT4"])
        try place.shell(
            """
            cd D/albums
            printf '\\0\\0\\0\\x08free' >>v.mov
            printf x >>PXL_20240501_200000000.jpg
            printf x >>m.jpg; touch -d @\(time) m.jpg
            """)
        #expect(try place.shown() == shown && captured() == before)
        try place.shell(
            """
            cd D/albums
            for name in *; do cp -p $name .$name.tmp; printf '\\0\\0\\0\\x08free' >>.$name.tmp; \
            touch -r $name .$name.tmp; mv .$name.tmp $name; done
            """)
        #expect(try place.shown() == shown && captured() == before)
        #expect(
            try place.shell("getfattr --only-values -n user.obscura.captured.source D/albums/v.mov")
                == "QuickTimeMovieHeader")
        // A copy is of the same photo.
        try place.shell("cd D/albums; mkdir B; cp PXL_20240501_200000000.jpg v.mov B")
        #expect(try place.shown() == shown)
        // Another time is local where the photo was filed.
        try Data(movie(created: Int64(time - 3600))).write(to: URL(fileURLWithPath: place.albums + "/v.mov"))
        let corrected = try place.shell("getfattr --only-values -n user.obscura.captured D/albums/v.mov")
        #expect(corrected == "2024-05-02 04:00:00")
        try place.unmount()
    }
}
