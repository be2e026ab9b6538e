internal import CFuse3
internal import FileRequests
internal import PhotoLibrary

// Requests about names and inodes. Each decodes, makes one call of the library, and is answered once.

typealias CString = UnsafePointer<CChar>?

func lookUp(_ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString) {
    Request(request).answer { call throws(FileError) in
        let (library, caller) = (call.library, call.caller)
        return .entry(
            try call.interruptible(parent) { cancellation throws(FileError) in
                try library.lookup(parent, Name(name), caller, unless: cancellation)
            })
    }
}

func forget(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ count: UInt64) {
    let request = Request(request, isUse: false)
    request.library.forget(ino, count: count)
    request.finish()
}

func forgetMany(_ request: fuse_req_t?, _ count: Int, _ items: UnsafeMutablePointer<fuse_forget_data>?) {
    let request = Request(request, isUse: false)
    for item in UnsafeBufferPointer(start: items, count: count) {
        request.library.forget(item.ino, count: item.nlookup)
    }
    request.finish()
}

func getAttributes(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: UnsafeMutablePointer<fuse_file_info>?) {
    Request(request).answer { call throws(FileError) in
        let (library, caller) = (call.library, call.caller)
        let (attributes, timeout) = try call.interruptible(ino) { cancellation throws(FileError) in
            try library.attributes(ino, handle: file?.file, caller, unless: cancellation)
        }
        return .attributes(attributes, timeout: timeout)
    }
}

func setAttributes(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ status: UnsafeMutablePointer<stat>?, _ mask: Int32,
    _ file: UnsafeMutablePointer<fuse_file_info>?
) {
    Request(request).answer { call throws(FileError) in
        let changes = AttributeChanges(status!.pointee, mask: mask)
        let (attributes, timeout) = try call.library.setAttributes(
            ino, changes, handle: file?.file, call.caller)
        return .attributes(attributes, timeout: timeout)
    }
}

func readLink(_ request: fuse_req_t?, _ ino: fuse_ino_t) {
    Request(request).answer { call throws(FileError) in .target(try call.library.readLink(ino)) }
}

func makeNode(
    _ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString, _ mode: mode_t, _ device: dev_t
) {
    Request(request).answer { call throws(FileError) in
        .entry(try call.library.makeNode(parent, Name(name), mode: mode, rdev: UInt64(device), call.caller))
    }
}

func makeDirectory(_ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString, _ mode: mode_t) {
    Request(request).answer { call throws(FileError) in
        .entry(try call.library.makeDirectory(parent, Name(name), mode: mode, call.caller))
    }
}

func makeSymbolicLink(_ request: fuse_req_t?, _ target: CString, _ parent: fuse_ino_t, _ name: CString) {
    Request(request).answer { call throws(FileError) in
        .entry(
            try call.library.makeSymbolicLink(parent, Name(name), target: bytes(target), call.caller))
    }
}

func unlinkFile(_ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString) {
    Request(request).answer { call throws(FileError) in
        try call.library.unlink(parent, Name(name), call.caller)
        return .done
    }
}

func removeDirectory(_ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString) {
    Request(request).answer { call throws(FileError) in
        try call.library.removeDirectory(parent, Name(name), call.caller)
        return .done
    }
}

/// RENAME_NOREPLACE and RENAME_EXCHANGE of renameat2(2); every other flag is refused.
private let renameNoReplace: UInt32 = 1
private let renameExchange: UInt32 = 2

func renameEntry(
    _ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString, _ newParent: fuse_ino_t,
    _ newName: CString,
    _ bits: UInt32
) {
    Request(request).answer { call throws(FileError) in
        guard bits & ~(renameNoReplace | renameExchange) == 0 else { throw .invalid }
        var flags: RenameFlags = []
        if bits & renameNoReplace != 0 { flags.insert(.noReplace) }
        if bits & renameExchange != 0 { flags.insert(.exchange) }
        try call.library.rename(parent, Name(name), newParent, Name(newName), flags, call.caller)
        return .done
    }
}

func linkFile(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ newParent: fuse_ino_t, _ newName: CString) {
    Request(request).answer { call throws(FileError) in
        .entry(try call.library.link(ino, newParent, Name(newName), call.caller))
    }
}

func fileSystemStatistics(_ request: fuse_req_t?, _ ino: fuse_ino_t) {
    Request(request, isUse: false).answer { call in .statistics(call.library.statistics()) }
}
