internal import CFuse3
internal import FileRequests
internal import Glibc
internal import PhotoLibrary

// Requests about open files.

typealias FileInformation = UnsafeMutablePointer<fuse_file_info>?

/// The first byte of a hidden name.
private let dot = CChar(bitPattern: UInt8(ascii: "."))

func createFile(
    _ request: fuse_req_t?, _ parent: fuse_ino_t, _ name: CString, _ mode: mode_t, _ file: FileInformation
) {
    let request = Request(request)
    let bridge = request.bridge
    do throws(FileError) {
        let flags = file!.pointee.flags
        let (entry, handle) = try bridge.writers.opening(flags) { () throws(FileError) in
            try bridge.library.create(parent, Name(name), mode: mode, flags: flags, request.caller)
        }
        file!.pointee.take(handle, bridge, isWorkingFile: name!.pointee == dot)
        if !request.sendCreated(entry, file!.pointee) { releaseHandle(of: file!.pointee, bridge) }
    } catch {
        request.fail(error.errorNumber)
    }
}

func openFile(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: FileInformation) {
    let request = Request(request)
    let bridge = request.bridge
    do throws(FileError) {
        let (flags, caller) = (file!.pointee.flags, request.caller)
        let handle = try bridge.writers.opening(flags) { () throws(FileError) in
            let handle = try request.interruptible(ino) { cancellation throws(FileError) in
                try request.repeating { library throws(FileError) in
                    try library.open(ino, flags: flags, caller, unless: cancellation)
                }
            }
            return ((), handle)
        }.handle
        file!.pointee.take(handle, bridge)
        if !request.sendOpened(file!.pointee) { releaseHandle(of: file!.pointee, bridge) }
    } catch {
        request.fail(error.errorNumber)
    }
}

extension fuse_file_info {
    /// Keeps the handle and tells the kernel how to treat the file. Only a file open for writing needs a FLUSH at each
    /// close; a reader's would cost a round trip for nothing.
    ///
    /// A file open only for writing bypasses the page cache: that saves a copy of every byte, the pages' memory, and a
    /// request about security.capability. So does a file that a program creates under a hidden name to rename it later
    /// (rsync, GLib), although it is open for reading too, if the kernel can still map such a file.
    fileprivate mutating func take(_ handle: FileHandle, _ bridge: Bridge, isWorkingFile: Bool = false) {
        keep(handle)
        bridge.countOpened(1)
        keep_cache = handle.keepsCache ? 1 : 0
        let isOnlyWritten =
            flags & O_ACCMODE == O_WRONLY || isWorkingFile && bridge.initialisation.canMapDirectFiles
        direct_io = isOnlyWritten ? 1 : 0
        noflush = flags & O_ACCMODE == O_RDONLY ? 1 : 0
    }
}

private func releaseHandle(of file: fuse_file_info, _ bridge: Bridge, for request: LongCall? = nil) {
    let handle = file.handle(as: FileHandle.self)
    bridge.library.release(handle, for: request)
    file.dropHandle()
    bridge.writers.release(handle)
    bridge.countOpened(-1)
}

func releaseFile(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: FileInformation) {
    let request = Request(request, isUse: false)
    releaseHandle(of: file!.pointee, request.bridge, for: request.asLong)
    request.fail(0)
}

func readFile(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ size: Int, _ offset: off_t, _ file: FileInformation
) {
    let request = Request(request)
    let bridge = request.bridge
    var attempts = RequestAttempts(bridge)
    var pending: Request? = request
    while true {
        do throws(FileError) {
            return try bridge.library.read(file!.file, offset: UInt64(offset), count: size) {
                pending.take()?.send($0)
            }
        } catch {
            // Nothing was sent.
            if !attempts.mayRepeat(after: error) { return pending.take()?.fail(error.errorNumber) ?? () }
        }
    }
}

func writeFile(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ data: CString, _ size: Int, _ offset: off_t,
    _ file: FileInformation
) {
    let request = Request(request)
    let (library, handle) = (request.library, file!.file)
    let bytes = UnsafeRawBufferPointer(start: data, count: size)
    let isWriteback = file!.pointee.writepage != 0
    let isHeld = size >= RequestWeight.largeWriteBytes
    request.answer { call throws(FileError) in
        .written(
            try call.library.write(
                handle, offset: UInt64(offset), bytes, call.caller, isWriteback: isWriteback, isHeld: isHeld))
    }
    // The program goes on meanwhile.
    if isHeld { library.sealAccepted(handle, offset: UInt64(offset), bytes) }
}

func flushFile(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ file: FileInformation) {
    Request(request).answer { call throws(FileError) in
        try call.library.flush(file!.file, for: call.asLong)
        return .done
    }
}

func syncFile(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ dataOnly: Int32, _ file: FileInformation) {
    Request(request).answer { call throws(FileError) in
        try call.library.fsync(file!.file, dataOnly: dataOnly != 0)
        return .done
    }
}

func allocate(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ mode: Int32, _ offset: off_t, _ length: off_t,
    _ file: FileInformation
) {
    Request(request).answer { call throws(FileError) in
        try call.library.ranges.allocate(
            file!.file, mode: mode, offset: UInt64(offset), length: UInt64(length))
        return .done
    }
}

/// SEEK_DATA and SEEK_HOLE of lseek(2).
private let seekData: Int32 = 3
private let seekHole: Int32 = 4

/// Serves only SEEK_DATA and SEEK_HOLE; the kernel answers the others.
func seekFile(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ offset: off_t, _ whence: Int32, _ file: FileInformation
) {
    Request(request).answer { call throws(FileError) in
        guard whence == seekData || whence == seekHole else { throw .invalid }
        guard offset >= 0 else { throw .noSuchDeviceOrAddress }
        return .offset(
            try call.library.ranges.seek(
                file!.file, offset: UInt64(offset), whence: whence == seekData ? .data : .hole))
    }
}

func copyFileRange(
    _ request: fuse_req_t?, _ source: fuse_ino_t, _ sourceOffset: off_t, _ sourceFile: FileInformation,
    _ target: fuse_ino_t, _ targetOffset: off_t, _ targetFile: FileInformation, _ count: Int, _ flags: Int32
) {
    Request(request).answer { call throws(FileError) in
        .written(
            try call.library.ranges.copyRange(
                from: sourceFile!.file, offset: UInt64(sourceOffset), to: targetFile!.file,
                offset: UInt64(targetOffset), count: UInt64(count)))
    }
}

/// Serves no ioctl(2) (FICLONE never gets here): ENOTTY, as for any file without one.
func controlFile(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ command: UInt32, _ argument: UnsafeMutableRawPointer?,
    _ file: FileInformation, _ flags: UInt32, _ input: UnsafeRawPointer?, _ inputBytes: Int,
    _ outputBytes: Int
) {
    Request(request).fail(ENOTTY)
}
