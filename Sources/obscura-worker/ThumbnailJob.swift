internal import PhotoImaging

/// Serves `request` and writes the picture into `result`. False if that fails or exceeds the limits. `fonts`: mapped
/// font files for labels.
func serveRequest(
    _ request: WorkerRequest, picture: ArrivingPicture, fonts: [UnsafeRawBufferPointer],
    result: UnsafeMutableRawBufferPointer
) -> Bool {
    switch request.job {
    case .thumbnail:
        return makeThumbnail(request, picture: picture, result: result)
    case .likeness:
        guard let hash = likenessHash(of: picture, in: request.size) else { return false }
        storeResult([withUnsafeBytes(of: hash) { Array($0) }], into: result)
        return true
    case .stack:
        guard let composition = CompositionRequest(picture.whole),
            let pixels = drawStack(composition, size: request.size.box)
        else {
            return false
        }
        return storePicture(pixels, as: .jpeg, colorProfile: [], into: result)
    case .sheet:
        guard let composition = CompositionRequest(picture.whole),
            let pixels = drawSheet(composition, LabelFont(fonts))
        else {
            return false
        }
        return storePicture(pixels, as: .jpeg, colorProfile: [], into: result)
    }
}

private func makeThumbnail(
    _ request: WorkerRequest, picture: ArrivingPicture, result: UnsafeMutableRawBufferPointer
) -> Bool {
    guard let decoder = openPicture(picture, type: request.type), isWithinLimits(decoder.size) else {
        return false
    }
    let told = Placement(of: decoder.size, turnedBy: decoder.orientation, in: request.size)
    guard let decoded = decoder.decode(for: told) else { return false }
    // Decoding may have corrected the size that the file claims.
    let placement = Placement(of: decoder.size, turnedBy: decoder.orientation, in: request.size)
    // Before the filter: its overshoot at an edge would be clipped in opacity and colour separately.
    if request.format == .jpeg { decoded.layOnWhite() }
    guard let resized = decoded.resized(for: placement), let turned = resized.turned(by: decoder.orientation)
    else { return false }
    return storePicture(turned, as: request.format, colorProfile: decoder.colorProfile, into: result)
}

/// Encodes the picture and writes its length, then the picture. False if memory is short.
private func storePicture(
    _ pixels: borrowing Pixels, as format: PictureFormat, colorProfile: [UInt8],
    into result: UnsafeMutableRawBufferPointer
) -> Bool {
    let profile = isProfile(colorProfile, forChannels: pixels.channels) ? colorProfile : []
    switch format {
    case .png:
        storeResult([encodePNG(pixels, colorProfile: profile)], into: result)
    case .jpeg:
        pixels.layOnWhite()
        guard let jpeg = encodeJPEG(pixels) else { return false }
        let body = jpeg.bytes
        guard let head = JPEGSegments.lengthOfHead(body) else { return false }
        storeResult(
            [Array(body[..<head]), JPEGSegments.carrying(profile), Array(body[head...])], into: result)
    }
    return true
}

/// Whether an ICC profile is whole and matches the picture's number of channels: bytes 0 to 3 and 16 to 19 of its
/// header (ICC.1:2010, 7.2.2 and 7.2.6), and a table of tags that lies inside (7.3). False above the size limit.
private func isProfile(_ profile: [UInt8], forChannels channels: Int) -> Bool {
    let headerBytes = 128
    let tagBytes = 12
    func number(_ offset: Int) -> Int { profile[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
    guard profile.count <= WorkerProtocol.colorProfileBytesMax, profile.count >= headerBytes + 4,
        (headerBytes + 4...profile.count).contains(number(0)),
        profile[16..<20].elementsEqual((channels == 1 ? "GRAY" : "RGB ").utf8)
    else { return false }
    let tagCount = number(headerBytes)
    guard tagCount <= (profile.count - headerBytes - 4) / tagBytes else { return false }
    return (0..<tagCount).allSatisfy { index in
        let tag = headerBytes + 4 + index * tagBytes
        return number(tag + 4) + number(tag + 8) <= profile.count
    }
}

/// Writes the total length, then the parts in order. They fit: the request's result size is the worst case.
func storeResult(_ parts: [[UInt8]], into result: UnsafeMutableRawBufferPointer) {
    var end = WorkerProtocol.resultHeaderBytes
    for part in parts {
        precondition(part.count <= result.count - end)
        UnsafeMutableRawBufferPointer(rebasing: result[end...]).copyBytes(from: part)
        end += part.count
    }
    result.storeBytes(of: UInt64(end - WorkerProtocol.resultHeaderBytes), as: UInt64.self)
}
