import CatalogueRows
public import FileRequests
import KernelNames
public import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// Name operations: lookup, creation and removal.
extension Library {
    /// Whether a request for this inode, or a lookup in it, may have to create the content first, which takes long.
    public static func mayTakeLong(_ ino: UInt64) -> Bool {
        switch Node(ino) {
        case .real, .view: false
        case .version, .thumbnail: true
        }
    }

    /// Finds a name in a directory. Throws `.interrupted` once `cancellation` is cancelled.
    public func lookup(
        _ parent: UInt64, _ name: Name, _ caller: Caller, unless cancellation: Cancellation? = nil
    ) throws(FileError) -> Entry {
        try check(name)
        switch Node(parent) {
        case .version(let node): return try session.versions.lookup(name.bytes, in: node)
        case .view(let node):
            guard options.views else { throw .stale }
            if let thumbs = try virtual?.lookup(name, in: node, caller, unless: cancellation) {
                return thumbs
            }
            return try session.views.lookup(name.bytes, in: node, caller)
        case .thumbnail(let number):
            guard let virtual else { throw .stale }
            return try virtual.lookup(name, in: number, caller, unless: cancellation)
        case .real(let directory):
            if let found = try lookupVirtual(name, in: directory, caller, unless: cancellation) {
                return found
            }
            if let entry = try find(directory, name, caller) { return entry }
            try session.applyCompanionMoves()
            guard let entry = try find(directory, name, caller) else { throw .noEntry }
            return entry
        }
    }

    /// The virtual directory of that name in a real one; nil for any other name.
    private func lookupVirtual(
        _ name: Name, in directory: UInt64, _ caller: Caller, unless cancellation: Cancellation?
    ) throws(FileError) -> Entry? {
        if name.bytes == versionsName, let found = try session.versions.lookupVersions(beside: directory) {
            return found
        }
        if let found = try virtual?.lookup(name, beside: directory, caller, unless: cancellation) {
            return found
        }
        guard options.views, directory == WellKnownInode.root, name.bytes == viewsName else { return nil }
        return try session.views.viewsEntry()
    }

    /// As `lookup`, but only in the tree; nil if the answer depends on pending companion
    /// moves, or on photos that are to be dated anew.
    private func find(_ parent: UInt64, _ name: Name, _ caller: Caller) throws(FileError) -> Entry? {
        try session.locked { tree throws(FileError) in
            let directory = try tree.directory(parent)
            let found = try tree.find(directory, name.bytes)
            if tree.companions.hasPendingCompanionMove(
                name.bytes, in: directory, found?.inode, thread: caller.pid)
            {
                return nil
            }
            guard let found else {
                if directory.isDay || directory.area == .moments,
                    tree.sidecars.hasNoted(byOtherThan: caller.pid)
                {
                    return nil
                }
                throw .noEntry
            }
            session.noteLookedUp(found.inode, tree, by: caller)
            if found.inode.isRegular {
                tree.kernelNames.noteLookup(
                    of: found.inode.ino, isInDayOrView: directory.isDay, by: caller.pid)
            }
            return try tree.entry(found.inode, in: directory)
        }
    }

    /// The attributes, and how many seconds the kernel may cache them. `cancellation` as for `lookup`.
    ///
    /// - Parameter caller: the client; nil for this program itself.
    public func attributes(
        _ ino: UInt64, handle: FileHandle? = nil, _ caller: Caller? = nil,
        unless cancellation: Cancellation? = nil
    ) throws(FileError) -> (Attributes, timeout: Double) {
        switch Node(ino) {
        case .version(let node): return (try session.versions.attributes(of: node), KernelTimeout.none)
        case .view(let node): return (try session.views.attributes(of: node), KernelTimeout.brief)
        case .thumbnail(let number):
            guard let virtual else { throw .stale }
            return (try virtual.attributes(number, caller, unless: cancellation), KernelTimeout.brief)
        case .real(let ino):
            return try session.locked { tree throws(FileError) in
                let inode = try session.shown(ino, handle?.state(in: self), tree)
                if inode.isVersion { return (try tree.versions.versionAttributes(inode), KernelTimeout.none) }
                var shown = tree.attributes(inode)
                if options.views, inode.ino == WellKnownInode.root { shown.nlink += 1 }
                return (shown, Tree.attributeTimeout(of: inode.row))
            }
        }
    }

    /// A symbolic link's target, up to PATH_MAX bytes.
    public func readLink(_ ino: UInt64) throws(FileError) -> [UInt8] {
        try session.locked { tree throws(FileError) in
            guard let target = try tree.tables.links.target(ino) else { throw .invalid }
            return target
        }
    }

    /// mknod(2): a regular file, a FIFO, a socket or a device node.
    public func makeNode(
        _ parent: UInt64, _ name: Name, mode: UInt32, rdev: UInt64, _ caller: Caller
    ) throws(FileError) -> Entry {
        try make(parent, name, mode: mode, caller) { tree, inode throws(FileError) in
            inode.row.rdev = rdev
        }
    }

    /// mkdir(2).
    public func makeDirectory(
        _ parent: UInt64, _ name: Name, mode: UInt32, _ caller: Caller
    ) throws(FileError) -> Entry {
        if case .view(.similar) = Node(parent), options.views {
            return try session.views.makeGroup(named: name.bytes)
        }
        let mode = mode & permissionMask | directoryType
        let revived = try session.change { change throws(FileError) -> Entry? in
            guard parent == WellKnownInode.moments else { return nil }
            return try change.tree.moments.reviveDay(name.bytes)
        }
        if let revived { return revived }
        return try make(parent, name, mode: mode, caller) { tree, inode throws(FileError) in
            inode.row.nlink = 2
            guard parent == WellKnownInode.moments, let day = dayNumber(named: name.bytes) else { return }
            inode.row.day = day
            inode.row.flags.insert(.madeByHand)
        }
    }

    /// symlink(2).
    public func makeSymbolicLink(
        _ parent: UInt64, _ name: Name, target: [UInt8], _ caller: Caller
    ) throws(FileError) -> Entry {
        guard !target.isEmpty else { throw .noEntry }
        guard target.count <= linkTargetBytesMax else { throw .nameTooLong }
        return try make(parent, name, mode: linkType | 0o777, caller) { tree, inode throws(FileError) in
            try tree.tables.links.store(inode.ino, target)
            inode.row.size = UInt64(target.count)
        }
    }

    private func make(
        _ parent: UInt64, _ name: Name, mode: UInt32, _ caller: Caller,
        _ complete: (Tree, Inode) throws(FileError) -> Void
    ) throws(FileError) -> Entry {
        try checkNew(name)
        guard Node(parent).isReal else { throw .readOnly }
        try session.room.requireRowRoom()
        return try session.change { change throws(FileError) in
            let (directory, inode) = try change.tree.make(parent, name.bytes, mode: mode, caller, complete)
            return try change.tree.entry(inode, in: directory)
        }
    }

    /// link(2). A link into an album is a membership. Moments holds every photo once, so no link into it is possible.
    public func link(
        _ ino: UInt64, _ newParent: UInt64, _ newName: Name, _ caller: Caller
    ) throws(FileError) -> Entry {
        try checkNew(newName)
        guard Node(ino).isReal, Node(newParent).isReal else { throw .notPermitted }
        try session.room.requireRowRoom()
        let (entry, needsClassification) = try session.change { change throws(FileError) in
            // Also if the inode is open: few programs link by a descriptor, and these get ESTALE only until the kernel
            // is notified.
            let inode = try session.resolve(ino, change.tree, by: caller)
            let directory = try change.tree.directory(newParent)
            guard !inode.isDirectory, !inode.isVersion,
                mayMake(.hardLink, named: newName.bytes, in: directory.area)
            else {
                throw .notPermitted
            }
            guard directory.row.nlink > 0, inode.row.nlink > 0 else { throw .noEntry }
            guard inode.row.nlink < linkCountMax else { throw .tooManyLinks }
            guard try !change.tree.has(directory, newName.bytes) else { throw .exists }
            let now = Timestamp.now()
            // The request names only the inode, but the kernel has just looked up the name that the link is made from.
            let isMember = change.tree.kernelNames.takeLookupInDay(of: ino, by: caller.pid) && inode.isPhoto
            try change.tree.addEntry(
                directory, newName.bytes, inode, isMember: isMember, isLink: inode.isPhoto && !isMember,
                now: now)
            change.tree.addLink(to: inode, now: now)
            try change.tree.sidecars.noteLinked(inode, newName.bytes, in: directory, by: caller.pid)
            if let photo = try change.tree.trash.trashedPhoto(behind: inode),
                try !change.tree.isInTrash(directory)
            {
                try change.tree.trash.restore(photo, change)
            }
            let isClassifiable = try change.tree.effects.isClassifiable(newName.bytes, in: directory)
            let needsClassification =
                isClassifiable && inode.isRegular && !inode.isPhoto && !inode.isCopy && inode.row.size > 0
                && inode.state == nil
            return (try change.tree.entry(inode, in: directory), needsClassification)
        }
        // link(2) of a working file to an ordinary name counts as a rename.
        guard needsClassification else { return entry }
        try classifier.classifyAndApply(ino)
        return try session.locked { tree throws(FileError) in
            try tree.entry(try tree.inode(ino), in: try tree.inode(newParent))
        }
    }

    /// Throws if no new file can have the name: the kernel hands on no other, but import does not come by the kernel.
    package func checkNew(_ name: Name) throws(FileError) {
        try check(name)
        guard isPlainName(name.bytes) else { throw .invalid }
    }

    /// Throws if no file can have the name.
    package func check(_ name: Name) throws(FileError) {
        guard name.bytes.count <= nameBytesMax else { throw .nameTooLong }
        guard !name.bytes.isEmpty else { throw .noEntry }
    }
}

/// PATH_MAX without its NUL.
private let linkTargetBytesMax = 4095
