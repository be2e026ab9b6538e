import Foundation
import Glibc
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Of one long piece of work each system call fails once, in every way; a test tries some, `scripts/faults` all.
@Suite("Crashes: failures in a long workload") struct FaultCourseTests {
    struct Size: CustomTestStringConvertible {
        let spaces: Int
        let size: MemoryVault.SizeClass
        var host = MemoryVault.Host.files
        var testDescription: String { "\(spaces) spaces, \(size)\(host == .files ? "" : ", on a cluster")" }

        func course() throws -> FaultCourse { try FaultCourse(spaces: spaces, size, on: host) }
    }

    private static let sizes = [
        Size(spaces: 1, size: .usual), Size(spaces: 2, size: .usual), Size(spaces: 1, size: .least),
        Size(spaces: 3, size: .least),
    ]
    private static let courses = sizes.map { size in Result { try size.course() } }

    /// A test tries the first; `scripts/faults cluster` all.
    private static let clusterSizes = Array(
        [
            Size(spaces: 2, size: .usual, host: .cluster), Size(spaces: 1, size: .usual, host: .cluster),
            Size(spaces: 1, size: .least, host: .cluster), Size(spaces: 3, size: .least, host: .cluster),
        ].prefix(distance == nil ? 1 : 4))
    private static let clusterCourses = clusterSizes.map { size in Result { try size.course() } }

    static let clusterFaults: [FaultyCalls.Fault] = [
        .error(.inputOutput), .error(.noSpace), .error(.wouldBlock), .error(Errno(ETIMEDOUT)),
        .done(Errno(ETIMEDOUT)), .fenced,
    ]

    static let faults: [FaultyCalls.Fault] = [
        .error(.inputOutput), .error(.noSpace), .error(.quotaExceeded), .error(.interrupted), .short,
    ]

    private static func variable(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// One call in so many is tried, beginning with a call before that. Nil: as many in each vault as a test has time
    /// for.
    private static let distance = variable("OBSCURA_FAULTS_DISTANCE")
    /// Only of this vault, if any is named.
    private static let onlySize = variable("OBSCURA_FAULTS_VAULT")
    /// Calls are tried from the first to before the last of these.
    private static let first = variable("OBSCURA_FAULTS_FROM") ?? 0
    private static let last = variable("OBSCURA_FAULTS_TO") ?? .max

    @Test(arguments: sizes.indices, faults)
    func `a call fails, what it was for is done again, and all is as if none had`(
        number: Int, fault: FaultyCalls.Fault
    ) throws {
        if Self.onlySize.map({ $0 != number }) == true { return }
        let course = try Self.courses[number].get()
        // Others for each kind.
        let start = (Self.faults.firstIndex(of: fault) ?? 0) * 4 + number
        suffer(course, fault, Self.sizes[number], callsMin: 2500, count: 5, start: start)
    }

    @Test(arguments: clusterSizes.indices, clusterFaults)
    func `a request to a cluster fails, what it was for is done again, and all is as if none had`(
        number: Int, fault: FaultyCalls.Fault
    ) throws {
        if Self.onlySize.map({ $0 != number }) == true { return }
        let course = try Self.clusterCourses[number].get()
        let start = (Self.clusterFaults.firstIndex(of: fault) ?? 0) * 4 + number
        // Pages that lie near each other are one request, and all roots of a copy.
        suffer(course, fault, Self.clusterSizes[number], callsMin: 2000, count: 3, start: start)
    }

    /// Tries a fault at some calls, or at those that are asked for.
    private func suffer(
        _ course: FaultCourse, _ fault: FaultyCalls.Fault, _ size: Size, callsMin: Int, count: Int, start: Int
    ) {
        #expect(course.callCount > callsMin)
        let distance = Self.distance ?? course.callCount / count
        var count = 0
        for call in stride(
            from: Self.first + start * distance / 26, to: min(Self.last, course.callCount),
            by: distance)
        {
            do { try course.suffer(fault, at: call) } catch {
                Issue.record("\(size.testDescription): \(error)")
            }
            count += 1
        }
        print("faults: \(count) of \(fault) in \(course.callCount) calls, \(size.testDescription)")
    }

    /// The room of a cluster, new segments, content, pages, roots.
    @Test func `a mount that is shut out is read-only at once`() throws {
        let vault = try MemoryVault(spaces: 1, .usual, on: .cluster)
        var (number, isOver) = (0, false)
        while !isOver {
            let session = try FaultSession(vault)
            defer { session.kill() }
            try session.put("albums/kept", noise(300_000))
            try session.makeDurable()
            session.calls.inject(.fenced, after: number)
            var isTold = false
            do {
                try session.put("albums/n", noise(5_000_000))
                try session.makeDurable()
            } catch is FileError { isTold = true }
            isOver = session.calls.isFaultDue
            #expect(
                isTold != isOver && (session.library.writeStop == .claimLost) != isOver, "request \(number)")
            number += 3
        }
    }

    @Test func `a read that fails once costs no photo its day`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 2, segments: 6))
        defer { session.kill() }
        let (path, day) = ("albums/p.jpg", "2024-06-01")
        var (number, isOver) = (0, false)
        while !isOver {
            let new = jpeg(day, more: 2 * number + 1, size: 20_000)
            try session.put(path, jpeg(day, more: 2 * number))
            try session.put("albums/.new~", new)
            session.calls.inject(.error(.inputOutput), after: number)
            let isDone = (try? session.mv("albums/.new~", path)) != nil
            isOver = session.calls.isFaultDue
            session.calls.injectNothing()
            if isDone {
                #expect(try session.ls("moments/" + day) == ["p.jpg"], "call \(number)")
                #expect(try session.get("moments/\(day)/p.jpg") == new, "call \(number)")
            } else {
                try session.rm("albums/.new~")
            }
            try session.rm("moments/\(day)/p.jpg")
            number += 1
        }
        #expect(number > 1)
    }

    @Test func `a call that fails while a claim is made ends no writing`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 1, .usual))
        defer { session.kill() }
        var (number, isOver) = (0, false)
        while !isOver {
            try session.put("albums/n", noise(2000, seed: number))
            try session.makeDurable()
            // The claim of a process that was killed stands.
            session.kill()
            try session.mount()
            session.calls.inject(.error(.inputOutput), after: number)
            _ = try? session.put("albums/m", noise(2000))
            isOver = session.calls.isFaultDue
            session.calls.injectNothing()
            #expect(session.library.writeStop == nil, "call \(number)")
            try session.put("albums/m", noise(2000))
            number += 1
        }
        #expect(number > 10)
    }
}
