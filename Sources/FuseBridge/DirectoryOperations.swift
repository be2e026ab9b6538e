internal import CFuse3
internal import FileRequests
internal import PhotoLibrary

// Requests about open directories.

func openDirectory(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: FileInformation) {
    let request = Request(request)
    let bridge = request.bridge
    do throws(FileError) {
        let handle = try request.repeating { library throws(FileError) in try library.openDirectory(ino) }
        file!.pointee.keep(handle)
        file!.pointee.cache_readdir = handle.mayKeepListing ? 1 : 0
        file!.pointee.keep_cache = handle.keepsListing ? 1 : 0
        bridge.countOpened(1)
        if !request.sendOpened(file!.pointee) { releaseHandle(of: file!.pointee, bridge) }
    } catch {
        request.fail(error.errorNumber)
    }
}

private func releaseHandle(of directory: fuse_file_info, _ bridge: Bridge) {
    bridge.library.releaseDirectory(directory.handle(as: DirectoryHandle.self))
    directory.dropHandle()
    bridge.countOpened(-1)
}

func releaseDirectory(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: FileInformation) {
    let request = Request(request, isUse: false)
    releaseHandle(of: file!.pointee, request.bridge)
    request.fail(0)
}

func readDirectory(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ size: Int, _ offset: off_t, _ file: FileInformation
) {
    sendListing(request, size, offset, file, plus: false)
}

func readDirectoryPlus(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ size: Int, _ offset: off_t, _ file: FileInformation
) {
    sendListing(request, size, offset, file, plus: true)
}

/// The kernel's offset is the library's cookie of the last entry that it received, 0 at the start.
private func sendListing(
    _ request: fuse_req_t?, _ size: Int, _ offset: off_t, _ file: FileInformation, plus: Bool
) {
    Request(request).sendListing(byteCount: size, plus: plus) { library, packer throws(FileError) in
        let directory = file!.directory
        // The kernel looks a name in moments up at each use, so it makes no use of attributes.
        let isKept = directory.ino != WellKnownInode.moments
        try library.readDirectory(directory, after: UInt64(offset), plus: plus && isKept) { packer.add($0) }
    }
}

func syncDirectory(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ dataOnly: Int32, _ file: FileInformation) {
    Request(request).answer { call throws(FileError) in
        try call.library.fsyncDirectory(file!.directory)
        return .done
    }
}
