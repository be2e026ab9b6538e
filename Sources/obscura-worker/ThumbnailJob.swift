internal import PhotoImaging

/// Decodes `picture` and writes its thumbnail into `result`. False when it cannot be decoded or is beyond the
/// limits.
func makeThumbnail(
    _ request: WorkerRequest, picture: UnsafeRawBufferPointer, result: UnsafeMutableRawBufferPointer
) -> Bool {
    guard request.type == .jpeg, let segments = JPEGSegments(picture),
        let decoder = JPEGDecoder.open(picture),
        decoder.size.width * decoder.size.height <= WorkerProtocol.pixelsMax
    else { return false }
    let isTransposed = segments.orientation.isTransposed
    let upright = isTransposed ? decoder.size.transposed : decoder.size
    let fitted = upright.fitted(in: request.box)
    let target = isTransposed ? fitted.transposed : fitted

    guard let decoded = decoder.decode(atLeast: target, adobeInks: segments.hasAdobeMarker),
        let resized = decoded.resized(to: target), let turned = resized.turned(by: segments.orientation),
        let jpeg = encodeJPEG(turned)
    else { return false }
    // An ink profile would be wrong on what is no longer CMYK.
    let profile = decoder.isCMYK ? [] : segments.colorProfile
    let body = jpeg.bytes
    guard let head = JPEGSegments.lengthOfHead(body) else { return false }
    storeResult(
        [Array(body[..<head])] + profile.map { Array(picture[$0]) } + [Array(body[head...])], into: result)
    return true
}

/// Writes the parts one after another behind their length. They fit: the request's size counts them at their
/// worst.
func storeResult(_ parts: [[UInt8]], into result: UnsafeMutableRawBufferPointer) {
    var end = WorkerProtocol.resultHeaderBytes
    for part in parts {
        precondition(part.count <= result.count - end)
        UnsafeMutableRawBufferPointer(rebasing: result[end...]).copyBytes(from: part)
        end += part.count
    }
    result.storeBytes(of: UInt64(end - WorkerProtocol.resultHeaderBytes), as: UInt64.self)
}
