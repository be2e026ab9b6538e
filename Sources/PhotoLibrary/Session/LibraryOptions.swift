import FileRequests
public import PhotoRules
public import VaultFormat
import VaultStore

/// Whether there is a `.thumbs` directory next to photos.
public enum ThumbnailOption: String, Sendable {
    /// It can be entered, but is not listed.
    case on
    case listed
    case off
}

/// Options for opening a library.
public struct LibraryOptions: Sendable {
    public var readOnly = false
    /// Whether another mount may write to the space meanwhile; see `UnlockedSpace.follows`.
    var follows = false
    /// The numbers that the kernel has of this mount's thumbnails.
    var virtualNodes: VirtualNodes?
    /// Whether a space that cannot be written is opened read-only; else opening it fails.
    public var allowsReadOnly = false
    /// Limits of retries of failed commits.
    public var commitRetries = RetryBounds()
    /// The mounting user: owner of everything without an owner of its own.
    public var owner: (uid: UInt32, gid: UInt32)
    /// Whether owners are kept and can be set.
    public var mountedByRoot: Bool
    /// Shown instead of the owners, if given.
    public var uid: UInt32?
    public var gid: UInt32?
    /// Permission bits that are never shown.
    public var umask: UInt32?
    public var thumbnails = ThumbnailOption.on
    /// Whether the root has a directory of views.
    public var views = false
    /// Whether the mounting user's trash is there from the start and cannot be removed: programs cannot make it at a
    /// root that is not writable.
    public var keepsTrash = false
    /// The worker executable; nil: no thumbnails can be made.
    public var workerPath: String?
    /// Maximum number of worker processes.
    public var workerCount = 2
    /// Data directories of the XDG Base Directory Specification, most important first, where thumbnailers for formats
    /// that the workers do not decode are registered.
    public var dataDirectories: [String] = []
    /// Files with a list of towns, of which the first that is there counts: see `InstalledTowns`. Without one there is
    /// no view by place.
    public var townFiles: [String] = []
    /// Makes thumbnails instead of the worker, in tests.
    var pictureMaker: (any PictureMaking)?
    /// Milliseconds without writes after which thumbnails of new photos are made without a request.
    var settleMilliseconds = BackgroundThumbnailer.settleMilliseconds
    /// Whether nothing was promised about changes before the library is closed or made durable, so that commits can be
    /// few and write less; see `CommitPace`.
    public var commitsSeldom = false
    /// Commits only by fsync(2), close and `Committer.commitByHand`, for tests that choose the moments.
    var commitsByHand = false
    /// How many days removed entries stay in the trash; 0: a photo removed from moments is destroyed at once.
    public var trashDays = 30
    /// How long versions of edited photos are kept.
    public var versions = VersionPolicy.standard
    /// For the age of trash entries and for retries.
    public var clocks = Clocks()
    /// The limits with which `Library.open` opens the space.
    public var limits = Limits.ofProcess

    public init(owner: (uid: UInt32, gid: UInt32), mountedByRoot: Bool) {
        self.owner = owner
        self.mountedByRoot = mountedByRoot
    }
}

extension LibraryOptions {
    /// The user whose files these are, as the mount shows them.
    var shownOwner: Caller {
        mountedByRoot
            ? Caller(uid: uid ?? owner.uid, gid: gid ?? owner.gid) : Caller(uid: owner.uid, gid: owner.gid)
    }

    var thumbnailSettings: ThumbnailSettings {
        ThumbnailSettings(
            readOnly: readOnly, workerPath: workerPath, workerCount: workerCount,
            dataDirectories: dataDirectories, maker: pictureMaker, settleMilliseconds: settleMilliseconds,
            heldBytesMax: limits.heldPictureBytes, failedMax: limits.failedPictures, nodes: virtualNodes)
    }
}
