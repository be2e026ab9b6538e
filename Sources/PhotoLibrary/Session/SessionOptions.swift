package import PhotoRules

/// Options for opening a space.
package struct SessionOptions: Sendable {
    package var tree: TreeOptions
    package var readOnly = false
    /// How many days removed entries stay in the trash; 0: a photo removed from moments is destroyed at once.
    package var trashDays = 30
    /// How long versions of edited photos are kept.
    package var versions = VersionPolicy.standard
    /// Limits of retries of failed commits.
    package var commitRetries = RetryBounds()
    package var clocks = Clocks()

    package init(tree: TreeOptions) { self.tree = tree }
}
