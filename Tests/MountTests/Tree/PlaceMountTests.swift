import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Photos by place through a mount, with the list of towns that the system has, or without one.
@Suite("The tree: photos by place through a mount", .serialized, .waiting) struct PlaceMountTests {
    private let place: Place

    init() throws { place = try Place(spaces: 1) }

    private func words(_ line: String) throws -> [String] {
        try place.shell(line).split(separator: "\n").map(String.init)
    }

    @Test func `photos are shown near Berlin, and removed there; without a list the status says why`() throws
    {
        for number in 1...3 {
            try place.source("a\(number).jpg", placedJPEG(52.52, 13.4, more: number))
        }
        try place.source("b.jpg", placedJPEG(-13.85, -171.75, more: 9))
        try place.mount(options: "rw,views")
        try place.shell("cp source/*.jpg D/albums")
        let status = try place.shell("'\(obscura)' status D; '\(obscura)' status D --json")
        guard exists("/usr/share/libgweather-4/Locations.xml") else {
            #expect(status.contains("No views/place") && status.contains("libgweather-4-common"))
            #expect(try !words("ls D/views").contains("place"))
            return try place.unmount()
        }
        #expect(!status.contains("no_places"))
        let shown = try words("cd D/views/place && find . -type f | sort")
        #expect(shown.count == 4 && shown.filter { $0.hasPrefix("./Germany/") }.count == 3, "\(shown)")
        let town = place.mountPoint + "/views/place/Germany/Berlin"
        try place.shell("cmp source/a1.jpg '\(town)/a1.jpg'; rm '\(town)/a1.jpg'")
        try place.shell("gio trash '\(town)/a2.jpg'")
        #expect(try words("ls D/albums") == ["a3.jpg", "b.jpg"])
        #expect(
            try words("grep -h Path= D/.Trash-0/info/a2.jpg.trashinfo") == ["Path=moments/2024-05-01/a2.jpg"])
        try place.shell("rm -r '\(town)'; mv D/.Trash-0/files/a1.jpg '\(town)/a1.jpg'")
        #expect(try words("ls '\(town)'") == ["a1.jpg"])
        #expect(try words("ls D/albums") == ["a1.jpg", "b.jpg"])
        try place.shell("cmp source/a1.jpg D/moments/2024-05-01/a1.jpg")
        try place.unmount()
    }
}
