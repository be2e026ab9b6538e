public import Glibc

// Calls of Glibc for the text of a path, see `pathText`. Where this module is imported, Swift prefers them to Glibc's
// own, which would pass on the text's UTF-8.

@discardableResult
public func open(_ path: String, _ flags: Int32) -> Int32 { path.withPath { Glibc.open($0, flags) } }

@discardableResult
public func access(_ path: String, _ mode: Int32) -> Int32 { path.withPath { Glibc.access($0, mode) } }

@discardableResult
public func mkdir(_ path: String, _ mode: mode_t) -> Int32 { path.withPath { Glibc.mkdir($0, mode) } }

@discardableResult
public func rmdir(_ path: String) -> Int32 { path.withPath { Glibc.rmdir($0) } }

@discardableResult
public func unlink(_ path: String) -> Int32 { path.withPath { Glibc.unlink($0) } }

@discardableResult
public func umount2(_ path: String, _ flags: Int32) -> Int32 { path.withPath { Glibc.umount2($0, flags) } }

public func opendir(_ path: String) -> OpaquePointer? { path.withPath { Glibc.opendir($0) } }

/// The resolved path, from realpath(3); nil and errno if it cannot be resolved.
public func resolvedPath(_ path: String) -> String? {
    guard let resolved = path.withPath({ realpath($0, nil) }) else { return nil }
    defer { free(resolved) }
    return pathText(resolved)
}
