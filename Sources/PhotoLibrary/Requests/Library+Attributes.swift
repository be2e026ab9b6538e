import CatalogueRows
public import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue

extension Library {
    /// SETATTR: chmod(2), chown(2), truncate(2) and utimensat(2), in one. Permissions were checked by the
    /// kernel.
    public func setAttributes(
        _ ino: UInt64, _ changes: AttributeChanges, handle: FileHandle? = nil, _ caller: Caller
    ) throws(FileError) -> (Attributes, timeout: Double) {
        guard Node(ino).isReal else { throw .readOnly }
        if let size = changes.size {
            if let file = handle?.state {
                try truncate(file, to: size, caller)
            } else {
                // Without a handle a new size comes by a name; all other changes may come by a descriptor too.
                try session.locked { tree throws(FileError) in
                    if try session.resolve(ino, tree, by: caller).isVersion { throw .readOnly }
                }
                try session.withState(of: ino) { file throws(FileError) in
                    try truncate(file, to: size, caller)
                }
            }
        }
        var isUndated = false
        let result = try session.change { change throws(FileError) in
            let isByName = handle == nil && changes.size == nil
            let inode =
                if isByName {
                    try session.resolveUnlessOpen(ino, change.tree, by: caller)
                } else if let state = handle?.state {
                    state.inode
                } else {
                    try change.tree.inode(ino)
                }
            if inode.isVersion { throw .readOnly }
            try change.tree.set(changes, on: inode, now: .now())
            if changes.modified != nil {
                isUndated = try change.tree.effects.followTime(inode, session.space, change)
            }
            return (change.tree.attributes(inode), Tree.attributeTimeout(of: inode.row))
        }
        // A photo without a date other than its mtime is dated by the new one.
        if isUndated { try classifier.classifyAndApply(ino, by: caller.pid) }
        return result
    }

    /// Shortens or extends a file and saves it. Also classifies it, unless the close of an open writer will.
    func truncate(_ file: FileState, to size: UInt64, _ caller: Caller) throws(FileError) {
        guard !isReadOnly else { throw .readOnly }
        file.writer.lock()
        defer { file.writer.unlock() }
        try file.truncate(to: size, now: .now())
        // A copy becomes an ordinary file as soon as it is saved.
        let mayBePhoto = try session.locked { _ throws(FileError) in file.inode.isPhoto || file.inode.isCopy }
        let hasWriters = file.hasWriters
        let classification = mayBePhoto && !hasWriters ? classifier.classify(file) : .unknown
        try session.save(file, by: caller.pid, isClassified: !hasWriters) { change throws(FileError) in
            if caller.uid != 0 { change.tree.dropPrivileges(file.inode) }
            try change.tree.effects.apply(classification, to: file.inode, session.space, change)
            if classification.isUndecided { try change.tree.tables.pendingClassification.add(file.ino) }
        }
        if classification.isUndecided { classifier.deferClassification(file) }
        if hasWriters { return }
        file.needsClassification = false
        session.endEdit(of: file)
        if !mayBePhoto { try classifier.classifyBesideSidecar(file.inode) }
    }

    // MARK: Extended attributes

    /// getxattr(2). Throws `.noData` if there is no such attribute.
    ///
    /// - Parameter caller: the client; nil for this program itself.
    public func getExtendedAttribute(
        _ ino: UInt64, name: [UInt8], _ caller: Caller? = nil
    ) throws(FileError) -> [UInt8] {
        guard hasPrefix(name, userPrefix) else {
            // The kernel requests these all the time: answered without a lock.
            throw hasPrefix(name, securityPrefix) ? .noData : .notSupported
        }
        guard Node(ino).isReal else { throw .noData }
        if hasPrefix(name, ownPrefix) {
            let name = Array(name.dropFirst(ownPrefix.count))
            if ino == WellKnownInode.root,
                let value = try ControlAttributes(library: self).value(name, caller)
            {
                return value
            }
            return try OwnAttributes(session: session).value(of: ino, name)
        }
        return try session.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.row.flags.contains(.hasAttributes),
                let value = try tree.tables.attributes.value(ino, name)
            else { throw .noData }
            return value
        }
    }

    /// setxattr(2). Only `user.*` is kept, on files and directories. `caller` as for `getExtendedAttribute`.
    public func setExtendedAttribute(
        _ ino: UInt64, name: [UInt8], value: [UInt8], policy: AttributePolicy, _ caller: Caller? = nil
    ) throws(FileError) {
        try checkAttribute(ino, name)
        guard value.count <= attributeBytesMax else { throw .tooBig }
        try session.room.requireRowRoom()
        let isUnrated = try session.change { change throws(FileError) in
            let inode = try session.resolveUnlessOpen(ino, change.tree, by: caller)
            guard inode.isRegular || inode.isDirectory else { throw .notPermitted }
            if inode.isVersion { throw .readOnly }
            let isThere = try change.tree.tables.attributes.value(ino, name) != nil
            switch policy {
            case .any: break
            case .create: if isThere { throw .exists }
            case .replace: if !isThere { throw .noData }
            }
            try change.tree.tables.attributes.store(ino, name, value)
            inode.row.flags.insert(.hasAttributes)
            change.tree.noteChanged(inode)
            return name == ratingAttribute
                ? try change.tree.views.followRatingAttribute(of: inode, change) : false
        }
        if isUnrated { readRating(of: ino, caller) }
    }

    /// Reads the rating of a photo without a rating attribute from its metadata. An error is ignored, because
    /// the attribute is already changed: the photo then counts as unrated.
    private func readRating(of ino: UInt64, _ caller: Caller?) {
        try? classifier.classifyAndApply(ino, by: caller?.pid ?? -1)
    }

    /// listxattr(2), in the names' order. The virtual attributes are not listed.
    public func listExtendedAttributes(_ ino: UInt64) throws(FileError) -> [[UInt8]] {
        guard Node(ino).isReal else { return [] }
        return try session.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.row.flags.contains(.hasAttributes) else { return [] }
            return try tree.tables.attributes.names(ino)
        }
    }

    /// removexattr(2). `caller` as for `getExtendedAttribute`.
    public func removeExtendedAttribute(
        _ ino: UInt64, name: [UInt8], _ caller: Caller? = nil
    ) throws(FileError) {
        try checkAttribute(ino, name)
        let isUnrated = try session.change { change throws(FileError) in
            let inode = try session.resolveUnlessOpen(ino, change.tree, by: caller)
            guard try change.tree.tables.attributes.value(ino, name) != nil else { throw .noData }
            if inode.isVersion { throw .readOnly }
            try change.tree.tables.attributes.delete(ino, name)
            change.tree.noteChanged(inode)
            return name == ratingAttribute
                ? try change.tree.views.followRatingAttribute(of: inode, change) : false
        }
        if isUnrated { readRating(of: ino, caller) }
    }

    private func checkAttribute(_ ino: UInt64, _ name: [UInt8]) throws(FileError) {
        guard hasPrefix(name, userPrefix) else { throw .notSupported }
        guard name.count > userPrefix.count else { throw .invalid }
        guard name.count <= nameBytesMax else { throw .range }
        guard Node(ino).isReal else { throw .readOnly }
        // Own attributes are views of the photo and cannot be written.
        if hasPrefix(name, ownPrefix) { throw .notPermitted }
    }
}

/// XATTR_SIZE_MAX.
private let attributeBytesMax = 65_536
private let userPrefix = Array("user.".utf8)
private let securityPrefix = Array("security.".utf8)
private let ownPrefix = Array("user.obscura.".utf8)

private func hasPrefix(_ name: [UInt8], _ prefix: [UInt8]) -> Bool { name.starts(with: prefix) }
