internal import CFuse3
internal import FileRequests
internal import PhotoLibrary

// Requests about extended attributes. Only `user.*` exist here. Others are refused at once with "not supported by this
// filesystem" (EOPNOTSUPP): ls(1) then stops asking for security.selinux and access lists on this mount, cp -a and
// rsync fall back to the mode, and the library need not know.

func setExtendedAttribute(
    _ request: fuse_req_t?, _ ino: fuse_ino_t, _ name: CString, _ value: CString, _ size: Int, _ flags: Int32
) {
    Request(request).answer { call throws(FileError) in
        let value = Array(UnsafeRawBufferPointer(start: value, count: size))
        try call.library.setExtendedAttribute(
            ino, name: try userName(name), value: value, policy: AttributePolicy(flags), call.caller)
        return .done
    }
}

func getExtendedAttribute(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ name: CString, _ room: Int) {
    Request(request).answer { call throws(FileError) in
        .value(try call.library.getExtendedAttribute(ino, name: try userName(name), call.caller), room: room)
    }
}

func listExtendedAttributes(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ room: Int) {
    Request(request).answer { call throws(FileError) in
        let names = try call.library.listExtendedAttributes(ino)
        return .value(names.flatMap { $0 + [0] }, room: room)
    }
}

func removeExtendedAttribute(_ request: fuse_req_t?, _ ino: fuse_ino_t, _ name: CString) {
    Request(request).answer { call throws(FileError) in
        try call.library.removeExtendedAttribute(ino, name: try userName(name), call.caller)
        return .done
    }
}

extension AttributePolicy {
    /// XATTR_CREATE and XATTR_REPLACE of setxattr(2).
    fileprivate init(_ flags: Int32) {
        switch flags {
        case 1: self = .create
        case 2: self = .replace
        default: self = .any
        }
    }
}

private func userName(_ name: CString) throws(FileError) -> [UInt8] {
    let name = bytes(name)
    guard name.starts(with: "user.".utf8) else { throw .notSupported }
    return name
}
