import Foundation

// Built by `scripts/fuzz` alone, with libFuzzer's main and all modules of the package instrumented.

private let name = ProcessInfo.processInfo.environment["OBSCURA_FUZZ"] ?? ""

private let target: @Sendable (UnsafeRawBufferPointer) -> Void = {
    guard let found = fuzzTargets[name] else {
        preconditionFailure("OBSCURA_FUZZ is one of \(fuzzTargets.keys.sorted().joined(separator: " "))")
    }
    return found
}()

private typealias Arguments = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// libFuzzer's own main, for programs that have another (llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a library").
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ words: UnsafeMutablePointer<Arguments?>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// SwiftPM links this as `main`.
@_cdecl("obscura_fuzz_main")
public func main(
    _ count: CInt, _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
    if name == "metadata" { seedMetadata() }
    var (count, words) = (count, words)
    return runDriver(&count, &words) { start, count in
        target(UnsafeRawBufferPointer(start: start, count: count))
        return 0
    }
}
