internal import CFuse3

/// The callbacks, in libfuse's order. Locks (flock, fcntl) have none, so the kernel keeps them itself. access(2) has
/// none: with `default_permissions` the kernel decides from mode and owner.
func operationTable() -> fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    table.`init` = { Bridge.from($0).initialisation.negotiate(&$1!.pointee) }
    table.lookup = lookUp
    table.forget = forget
    table.getattr = getAttributes
    table.setattr = setAttributes
    table.readlink = readLink
    table.mknod = makeNode
    table.mkdir = makeDirectory
    table.unlink = unlinkFile
    table.rmdir = removeDirectory
    table.symlink = makeSymbolicLink
    table.rename = renameEntry
    table.link = linkFile
    table.open = openFile
    table.read = readFile
    table.write = writeFile
    table.flush = flushFile
    table.release = releaseFile
    table.fsync = syncFile
    table.opendir = openDirectory
    table.readdir = readDirectory
    table.releasedir = releaseDirectory
    table.fsyncdir = syncDirectory
    table.statfs = fileSystemStatistics
    table.setxattr = setExtendedAttribute
    table.getxattr = getExtendedAttribute
    table.listxattr = listExtendedAttributes
    table.removexattr = removeExtendedAttribute
    table.create = createFile
    table.ioctl = controlFile
    table.forget_multi = forgetMany
    table.fallocate = allocate
    table.readdirplus = readDirectoryPlus
    table.copy_file_range = copyFileRange
    table.lseek = seekFile
    return table
}
