import Glibc

/// The tree that a space must show after each operation, by the rules of the contract alone: no kernel, no storage,
/// no time. Its operations answer the error numbers that system calls must fail with, 0 where they succeed.
final class ModelTree {
    let top: ModelNode
    let moments: ModelNode
    let albums: ModelNode
    /// The name of the worker's trash.
    let trashName: String
    /// Counts mounts.
    private(set) var session = 0
    private var nodeCount = 0
    private var nameCount = 0
    /// Called with every state between the first and the last of an operation, which a crash may leave.
    var passing: () -> Void = {}
    /// Whether the two steps of `ModelOperation.replace` follow each other at once.
    var isReplacedAtOnce = true

    init(uid: UInt32) {
        trashName = ".Trash-\(uid)"
        top = ModelNode(.directory, number: 0, session: 0, mode: 0o555)
        moments = ModelNode(.directory, number: 1, session: 0, mode: 0o700)
        albums = ModelNode(.directory, number: 2, session: 0, mode: 0o755)
        nodeCount = 3
        add(top, "moments", moments)
        add(top, "albums", albums)
        _ = makeTrash()
    }

    /// A new mount: days that only filing made are dropped where they are empty.
    func remount() {
        session += 1
        for (name, day) in moments.listed {
            if day.isUnlistedDay { drop(name, of: day) }
        }
    }

    // MARK: Nodes and names

    func make(_ kind: ModelNode.Kind, mode: UInt32) -> ModelNode {
        nodeCount += 1
        return ModelNode(kind, number: nodeCount, session: session, mode: mode)
    }

    func add(
        _ directory: ModelNode, _ name: String, _ node: ModelNode, isMember: Bool = false,
        isLink: Bool = false
    ) {
        precondition(directory.entries[name] == nil, "\(name) is there already")
        nameCount += 1
        directory.entries[name] = node
        node.names.append(
            ModelNode.Name(
                directory: directory, name: name, id: nameCount, isMember: isMember,
                isLink: isLink && !isMember && directory.day == nil))
    }

    /// Takes a name away, and nothing else.
    func drop(_ name: ModelNode.Name, of node: ModelNode) {
        name.directory.entries[name.name] = nil
        node.names.removeAll { $0.id == name.id }
        if node.isDirectory { node.isGone = true }
    }

    /// Removes a name, and the file with its last one.
    func remove(_ name: ModelNode.Name, of node: ModelNode) {
        drop(name, of: node)
        endIfNameless(node)
    }

    /// Another file takes the name.
    func replace(_ name: ModelNode.Name, of node: ModelNode, with other: ModelNode) {
        if isFormerPhoto(node, in: name.directory) {
            if !other.isFile { return removeFormerPhoto(node, name) }
            moveVersions(node, to: other)
        }
        remove(name, of: node)
    }

    func endIfNameless(_ node: ModelNode) {
        guard node.names.isEmpty, !node.isDirectory else { return }
        // A copy that a photo in the trash would bring back waits for that.
        if let names = node.original?.trashed?.names, names.contains(where: { $0.node === node }) { return }
        leaveTrash(node)
        node.original?.copies.removeAll { $0 === node }
        node.isGone = true
    }

    func entry(_ directory: ModelNode, _ name: String) -> (name: ModelNode.Name, node: ModelNode)? {
        guard let node = directory.entries[name],
            let row = node.names.first(where: { $0.isOf(directory, name) })
        else { return nil }
        return (row, node)
    }

    /// The node of a path from the top; nil where there is none.
    func node(_ path: String) -> ModelNode? {
        path.split(separator: "/").reduce(top as ModelNode?) { $0?.entries[String($1)] }
    }

    /// The directory that a path's last name lies in, and that name; else the error of looking it up.
    func place(_ path: String) -> (directory: ModelNode, name: String, error: Int32) {
        var directory = top
        let parts = path.split(separator: "/").map(String.init)
        for part in parts.dropLast() {
            guard let next = directory.entries[part] else { return (top, "", ENOENT) }
            guard next.isDirectory else { return (top, "", ENOTDIR) }
            directory = next
        }
        return (directory, parts.last ?? "", 0)
    }

    func isInside(_ directory: ModelNode, _ ancestor: ModelNode) -> Bool {
        var current: ModelNode? = directory
        while let node = current {
            if node === ancestor { return true }
            current = node.parent
        }
        return false
    }

    /// Whether a directory is a trash, or lies in one.
    func isInTrash(_ directory: ModelNode) -> Bool {
        var current = directory
        while let parent = current.parent, parent !== top { current = parent }
        return current.names.first?.name.hasPrefix(".Trash-") ?? false
    }

    // MARK: Places and kinds of files

    /// The error of making something of that kind there; 0 where it may be made.
    func refusal(_ directory: ModelNode, _ name: String, _ kind: ModelNode.Kind) -> Int32 {
        if directory.entries[name] != nil { return EEXIST }
        if directory === top {
            return kind == .directory && name.hasPrefix(".Trash-") && UInt32(name.dropFirst(7)) != nil
                ? 0 : EPERM
        }
        if directory === moments { return kind == .directory && isModelDay(name) ? 0 : EPERM }
        if directory.day != nil { return kind == .file ? 0 : EPERM }
        return 0
    }

    private func make(_ path: String, _ kind: ModelNode.Kind, mode: UInt32) -> Int32 {
        let (directory, name, error) = place(path)
        if error != 0 { return error }
        let refused = refusal(directory, name, kind)
        if refused != 0 { return refused }
        let node = make(kind, mode: mode)
        if directory === moments { (node.day, node.isMadeByHand) = (name, true) }
        add(directory, name, node)
        return 0
    }

    // MARK: Operations

    func apply(_ operation: ModelOperation) -> Int32 {
        switch operation {
        case .write(let path, let bytes): write(path, bytes)
        case .append(let path, let bytes):
            change(path, isOpened: true) {
                self.separate($0)
                $0.bytes += bytes
                $0.modified = nil
                self.close($0)
            }
        case .truncate(let path, let size):
            change(path) {
                // No program closes it: a file that is no photo yet is classified when it is written next.
                let isPhoto = $0.isPhoto || $0.original != nil
                self.separate($0)
                let more = [UInt8](repeating: 0, count: max(0, size - $0.bytes.count))
                $0.bytes = Array(($0.bytes + more).prefix(size))
                $0.modified = nil
                if isPhoto { self.close($0) }
            }
        case .makeDirectory(let path): make(path, .directory, mode: 0o755)
        case .removeDirectory(let path): removeDirectory(path)
        case .remove(let path): remove(path)
        case .replace(let path, let temporary): replace(path, by: temporary)
        case .symbolicLink(let path, let target): make(path, .link(target), mode: 0o777)
        case .fifo(let path): make(path, .fifo, mode: 0o644)
        case .link(let from, let to): link(from, to)
        case .rename(let from, let to, let way): rename(from, to, way)
        case .setMode(let path, let mode): onNode(path) { $0.mode = mode }
        case .touch(let path, let seconds): onNode(path) { $0.modified = seconds }
        case .setAttribute(let path, let name, let value):
            onNode(
                path, unless: { _ in name.hasPrefix("user.obscura.") ? EPERM : 0 },
                { $0.attributes[name] = value })
        case .removeAttribute(let path, let name):
            onNode(path, unless: { $0.attributes[name] == nil ? ENODATA : 0 }, { $0.attributes[name] = nil })
        }
    }

    private func onNode(
        _ path: String, unless refusal: (ModelNode) -> Int32 = { _ in 0 }, _ body: (ModelNode) -> Void
    ) -> Int32 {
        let (directory, name, error) = place(path)
        if error != 0 { return error }
        guard let node = directory.entries[name] else { return ENOENT }
        let refused = refusal(node)
        if refused == 0 { body(node) }
        return refused
    }

    private func openingError(_ node: ModelNode) -> Int32 {
        switch node.kind {
        case .file: 0
        case .directory: EISDIR
        case .link: ELOOP
        case .fifo: ENXIO
        }
    }

    /// - Parameter isOpened: whether the file is opened, which links and other things are not.
    private func change(_ path: String, isOpened: Bool = false, _ body: (ModelNode) -> Void) -> Int32 {
        onNode(path, unless: { isOpened || !$0.isFile ? self.openingError($0) : 0 }, body)
    }

    private func write(_ path: String, _ bytes: [UInt8]) -> Int32 {
        let (directory, name, error) = place(path)
        if error != 0 { return error }
        let node: ModelNode
        if let found = directory.entries[name] {
            if !found.isFile { return openingError(found) }
            node = found
            separate(node)
        } else {
            let refused = refusal(directory, name, .file)
            if refused != 0 { return refused }
            node = make(.file, mode: 0o644)
            add(directory, name, node)
        }
        node.bytes = []
        node.modified = nil
        passing()
        node.bytes = bytes
        passing()
        close(node)
        return 0
    }

    private func removeDirectory(_ path: String) -> Int32 {
        let (directory, name, error) = place(path)
        if error != 0 { return error }
        guard let (row, node) = entry(directory, name) else { return ENOENT }
        guard node.isDirectory else { return ENOTDIR }
        if directory === top && (!isInTrash(node) || name == trashName) { return EPERM }
        guard node.entries.isEmpty else { return ENOTEMPTY }
        drop(row, of: node)
        return 0
    }

    func remove(_ path: String) -> Int32 {
        let (directory, name, error) = place(path)
        if error != 0 { return error }
        guard let (row, node) = entry(directory, name) else { return ENOENT }
        guard !node.isDirectory else { return EISDIR }
        if directory.day != nil && node.isPhoto {
            removePhoto(node, named: name, in: directory)
        } else if isFormerPhoto(node, in: directory) {
            removeFormerPhoto(node, row)
        } else {
            remove(row, of: node)
        }
        return 0
    }

    private func link(_ from: String, _ to: String) -> Int32 {
        let (source, oldName, error) = place(from)
        if error != 0 { return error }
        guard let node = source.entries[oldName] else { return ENOENT }
        let (directory, name, otherError) = place(to)
        if otherError != 0 { return otherError }
        if directory.entries[name] != nil { return EEXIST }
        if node.isDirectory || directory === top || directory === moments || directory.day != nil {
            return EPERM
        }
        add(
            directory, name, node, isMember: node.isPhoto && source.day != nil,
            isLink: node.isPhoto && source.day == nil)
        if let photo = trashedPhoto(behind: node), !isInTrash(directory) { restore(photo) }
        if isFileable(name, in: directory) { classifyIfNeeded(node) }
        return 0
    }
}
