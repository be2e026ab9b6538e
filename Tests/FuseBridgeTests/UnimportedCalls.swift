import Glibc

// Calls of glibc that Swift does not import, found by name.

private func call<Signature>(_ name: String, _ type: Signature.Type = Signature.self) -> Signature {
    unsafeBitCast(dlsym(nil, name)!, to: type)
}

/// renameat2(2).
let renameat2: @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32 =
    call("renameat2")
/// setxattr(2): path, name, value, its bytes, flags.
let setxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>, Int, Int32) -> Int32 =
        call("setxattr")
let getxattr:
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int =
        call("getxattr")
let listxattr: @convention(c) (UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int = call("listxattr")
let removexattr: @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32 = call("removexattr")
