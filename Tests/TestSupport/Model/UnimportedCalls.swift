import Glibc

// Calls of glibc that Swift does not import, found by name.

private func call<Signature>(_ name: String, _ type: Signature.Type = Signature.self) -> Signature {
    guard let found = dlsym(nil, name) else { preconditionFailure("glibc has no \(name)") }
    return unsafeBitCast(found, to: type)
}

/// renameat2(2).
let renameat2: @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32 =
    call("renameat2")
/// lsetxattr(2): path, name, value, its bytes, flags.
let lsetxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32 =
        call("lsetxattr")
/// lgetxattr(2): path, name, where to put the value, room there.
let lgetxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int =
        call("lgetxattr")
/// llistxattr(2): path, where to put the names, room there.
let llistxattr: @convention(c) (UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int = call("llistxattr")
/// lremovexattr(2).
let lremovexattr: @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32 = call("lremovexattr")
