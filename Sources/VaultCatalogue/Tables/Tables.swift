/// The tables of a catalogue, each with typed queries. Handed out by `Catalogue.locked`: use them under its lock only.
public final class Tables {
    public let inodes: InodeTable
    public let counters: CounterTable
    /// Inodes without a name that are still in use.
    public let orphans: InodeSetTable
    /// Files and directories that the next session classifies.
    public let pendingClassification: InodeSetTable
    public let dentries: DentryTable
    public let links: LinkTable
    public let attributes: AttributeTable
    public let extents: ExtentTable
    public let snapshots: SnapshotTable
    public let photos: PhotoTable
    public let copies: CopyTable
    public let trash: TrashTable
    public let versions: VersionTable
    public let views: ViewTable
    public let thumbnails: ThumbnailTable
    public let pendingThumbnails: PendingThumbnailTable
    public let likenesses: LikenessTable
    public let positions: PositionTable
    public let identities: IdentityTable
    /// For checks and repairs.
    public let checks: CheckQueries
    public let runs: RunQueries
    public let contents: ContentQueries
    public let readable: ReadableRows
    let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        inodes = InodeTable(connection)
        counters = CounterTable(connection)
        orphans = InodeSetTable(connection, "orphan")
        pendingClassification = InodeSetTable(connection, "classification_pending")
        dentries = DentryTable(connection)
        links = LinkTable(connection)
        attributes = AttributeTable(connection)
        extents = ExtentTable(connection)
        snapshots = SnapshotTable(connection, extents)
        photos = PhotoTable(connection)
        copies = CopyTable(connection)
        trash = TrashTable(connection)
        versions = VersionTable(connection)
        views = ViewTable(connection)
        thumbnails = ThumbnailTable(connection)
        pendingThumbnails = PendingThumbnailTable(connection)
        likenesses = LikenessTable(connection)
        positions = PositionTable(connection)
        identities = IdentityTable(connection)
        runs = RunQueries(connection, snapshots)
        checks = CheckQueries(connection, runs)
        contents = ContentQueries(connection, extents)
        readable = ReadableRows(connection)
    }

    /// Count of row changes since the connection was opened, which shows whether a call changed anything.
    public var changeCount: Int64 { connection.changeCount }

    /// See `Catalogue.isIntact`.
    public var isIntact: Bool { connection.isInTransaction }
}
