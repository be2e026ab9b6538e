import Glibc

// Calls of glibc that Swift does not import, found by name.

private func call<Signature>(_ name: String, _ type: Signature.Type = Signature.self) -> Signature {
    guard let found = dlsym(nil, name) else { preconditionFailure("glibc has no \(name)") }
    return unsafeBitCast(found, to: type)
}

/// renameat2(2).
let renameat2: @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32 =
    call("renameat2")
/// fallocate(2): descriptor, mode, offset, length.
let fallocate: @convention(c) (Int32, Int32, Int, Int) -> Int32 = call("fallocate")
/// copy_file_range(2): source, its offset, target, its offset, count, flags.
let copyFileRange:
    @convention(c) (Int32, UnsafeMutablePointer<off_t>, Int32, UnsafeMutablePointer<off_t>, Int, UInt32) ->
        Int =
        call("copy_file_range")
/// lsetxattr(2): path, name, value, its bytes, flags.
let lsetxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32 =
        call("lsetxattr")
/// lgetxattr(2): path, name, where to put the value, room there.
let lgetxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int =
        call("lgetxattr")
/// llistxattr(2): path, where to put the names, room there.
let llistxattr: @convention(c) (UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int = call(
    "llistxattr")
/// lremovexattr(2).
let lremovexattr: @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32 = call("lremovexattr")
