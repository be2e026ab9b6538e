import Glibc

/// `path` made absolute and otherwise unchanged: it ends as the user typed it.
package func absolutePath(_ path: String) -> String {
    if path.hasPrefix("/") || isAddress(path) { return path }
    guard let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    let here = pathText(directory)
    let relative = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
    return here == "/" ? "/" + relative : here + "/" + relative
}

/// `path` without symbolic links, `.` and `..` (realpath(3)).
///
/// A path that does not exist yet, or cannot be entered (a dead mount), is its name joined to its parent's resolved
/// path.
package func realPath(_ path: String) -> String {
    if isAddress(path) { return path }
    if let resolved = resolvedPath(path) { return resolved }
    return joinedToResolvedParent(path)
}

/// As `realPath`, except that the last component is not resolved, nor looked into.
package func pathBelowResolved(_ path: String) -> String {
    [".", ".."].contains(lastComponent(path)) ? realPath(path) : joinedToResolvedParent(path)
}

private func joinedToResolvedParent(_ path: String) -> String {
    var parts = absolutePath(path).split(separator: "/")
    guard let last = parts.popLast() else { return "/" }
    let parent = realPath("/" + parts.joined(separator: "/"))
    return parent == "/" ? "/" + last : parent + "/" + last
}

/// Whether `path` is `directory` or below it. Both are resolved paths.
package func isInside(_ path: String, _ directory: String) -> Bool {
    directory == "/" || path == directory || path.hasPrefix(directory + "/")
}

/// The last component; for "/" the empty string.
package func lastComponent(_ path: String) -> String {
    String(path.split(separator: "/").last ?? "")
}

/// The beginning of names of vaults on a Ceph cluster.
package let clusterPrefix = "ceph:"

/// Whether a path is the address of a vault on a host that has no files.
package func isAddress(_ path: String) -> Bool { isClusterPath(path) }

/// Whether a path names a vault on a cluster. A directory of that name is `./ceph:…`.
package func isClusterPath(_ path: String) -> Bool { path.hasPrefix(clusterPrefix) }
