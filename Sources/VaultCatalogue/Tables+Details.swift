struct DetailStatements {
    let target: Statement
    let storeTarget: Statement
    let deleteTarget: Statement
    let attribute: Statement
    let attributeNames: Statement
    let attributes: Statement
    let storeAttribute: Statement
    let deleteAttribute: Statement
    let deleteAttributes: Statement

    init(_ connection: Connection) {
        target = connection.prepare("SELECT target FROM symlink WHERE ino=?")
        storeTarget = connection.prepare("INSERT INTO symlink VALUES(?,?)")
        deleteTarget = connection.prepare("DELETE FROM symlink WHERE ino=?")
        attribute = connection.prepare("SELECT value FROM xattr WHERE ino=? AND name=?")
        attributeNames = connection.prepare("SELECT name FROM xattr WHERE ino=? ORDER BY name")
        attributes = connection.prepare("SELECT name, value FROM xattr WHERE ino=? ORDER BY name")
        storeAttribute = connection.prepare("REPLACE INTO xattr VALUES(?,?,?)")
        deleteAttribute = connection.prepare("DELETE FROM xattr WHERE ino=? AND name=?")
        deleteAttributes = connection.prepare("DELETE FROM xattr WHERE ino=?")
    }
}

extension Tables {
    public func linkTarget(_ ino: UInt64) throws(CatalogueError) -> [UInt8]? {
        details.target.bind(1, ino)
        return try details.target.one { $0.bytes(0) }
    }

    public func storeLinkTarget(_ ino: UInt64, _ target: [UInt8]) throws(CatalogueError) {
        details.storeTarget.bind(1, ino)
        details.storeTarget.bind(2, target)
        try details.storeTarget.run()
    }

    public func deleteLinkTarget(_ ino: UInt64) throws(CatalogueError) {
        details.deleteTarget.bind(1, ino)
        try details.deleteTarget.run()
    }

    public func extendedAttribute(_ ino: UInt64, _ name: [UInt8]) throws(CatalogueError) -> [UInt8]? {
        details.attribute.bind(1, ino)
        details.attribute.bind(2, name)
        return try details.attribute.one { $0.bytes(0) }
    }

    public func extendedAttributeNames(_ ino: UInt64) throws(CatalogueError) -> [[UInt8]] {
        details.attributeNames.bind(1, ino)
        return try details.attributeNames.all { $0.bytes(0) }
    }

    public func extendedAttributes(
        _ ino: UInt64
    ) throws(CatalogueError) -> [(name: [UInt8], value: [UInt8])] {
        details.attributes.bind(1, ino)
        return try details.attributes.all { ($0.bytes(0), $0.bytes(1)) }
    }

    public func storeExtendedAttribute(
        _ ino: UInt64, _ name: [UInt8], _ value: [UInt8]
    ) throws(CatalogueError) {
        details.storeAttribute.bind(1, ino)
        details.storeAttribute.bind(2, name)
        details.storeAttribute.bind(3, value)
        try details.storeAttribute.run()
    }

    public func deleteExtendedAttribute(_ ino: UInt64, _ name: [UInt8]) throws(CatalogueError) {
        details.deleteAttribute.bind(1, ino)
        details.deleteAttribute.bind(2, name)
        try details.deleteAttribute.run()
    }

    public func deleteExtendedAttributes(_ ino: UInt64) throws(CatalogueError) {
        details.deleteAttributes.bind(1, ino)
        try details.deleteAttributes.run()
    }
}
