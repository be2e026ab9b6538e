import PhotoImaging

/// Pictures of formats that few cameras and scanners write.
extension Picture {
    /// A raw file of Sigma's, with a JPEG as its picture and the camera's clock as a property.
    package static func x3f(_ jpeg: [UInt8], seconds: String? = nil, major: Int = 2) -> [UInt8] {
        var file = ByteBuilder(isBig: false)
        file.add("FOVb")
        file.u16(0)
        file.u16(major)
        for index in 2..<24 {
            let place = major < 4 ? 7 : 10
            file.u32(index == place ? 2640 : index == place + 1 ? 1760 : 0)
        }
        var directory: [(type: String, offset: Int, length: Int)] = []
        func add(_ type: String, _ section: [UInt8]) {
            directory.append((type, file.bytes.count, section.count))
            file.add(section)
        }
        var picture = ByteBuilder(isBig: false)
        picture.add("SECi")
        for number in [0x20000, 2, 18, 640, 480, 0] { picture.u32(number) }
        picture.add(jpeg)
        add("IMA2", picture.bytes)
        if let seconds {
            let texts = ["ISO", "100", "TIME", seconds]
            var properties = ByteBuilder(isBig: false)
            properties.add("SECp")
            for number in [0x20000, 2, 0, 0, texts.reduce(0) { $0 + $1.utf8.count + 1 }] {
                properties.u32(number)
            }
            var unit = 0
            for text in texts {
                properties.u32(unit)
                unit += text.utf8.count + 1
            }
            for text in texts { for byte in Array(text.utf8) + [0] { properties.u16(Int(byte)) } }
            add("PROP", properties.bytes)
        }
        let start = file.bytes.count
        file.add("SECd")
        file.u32(0x20000)
        file.u32(directory.count)
        for entry in directory {
            file.u32(entry.offset)
            file.u32(entry.length)
            file.add(entry.type)
        }
        file.u32(start)
        return file.bytes
    }

    /// A raw file of Minolta's with a block of EXIF.
    package static func mrw(_ exif: [UInt8]) -> [UInt8] {
        func block(_ name: String, _ body: [UInt8]) -> [UInt8] {
            var out = ByteBuilder()
            out.add("\0" + name)
            out.u32(body.count)
            return out.bytes + body
        }
        var size = ByteBuilder()
        size.add("21810002")
        for number in [2018, 2640, 2016, 2624] { size.u16(number) }
        let blocks = block("PRD", size.bytes) + block("TTW", exif)
        return block("MRM", blocks) + [UInt8](repeating: 7, count: 64)
    }

    /// A codestream of JPEG 2000 that ends behind its size.
    package static func codestream(width: Int, height: Int) -> [UInt8] {
        var out = ByteBuilder()
        for number in [0xFF4F, 0xFF51, 41, 0] { out.u16(number) }
        for number in [width + 3, height + 5, 3, 5, width, height, 0, 0] { out.u32(number) }
        out.u16(1)
        out.add([7, 1, 1])
        return out.bytes
    }

    /// JPEG 2000 in boxes: the picture, and others.
    package static func jp2(_ boxes: [UInt8], width: Int = 2000, height: Int = 1500) -> [UInt8] {
        var header = ByteBuilder()
        header.u32(height)
        header.u32(width)
        header.add([0, 1, 7, 7, 0, 0])
        return box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]) + ftyp("jp2 ") + box("jp2h", box("ihdr", header.bytes))
            + boxes + box("jp2c", codestream(width: width, height: height))
    }
}
