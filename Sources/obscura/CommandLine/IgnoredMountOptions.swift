/// Whether a word of `-o` is accepted and has no effect.
func isIgnoredMountOption(_ word: String) -> Bool {
    let name = String(word.prefix { $0 != "=" })
    return wordsOfMount.contains(word) || prefixesOfMount.contains { word.hasPrefix($0) }
        || (name == word ? wordsOfOthers : valuesOfOthers).contains(name)
}

/// Words that mount(8), fstab and systemd pass along.
private let wordsOfMount: Set<String> = [
    "_netdev", "async", "atime", "auto", "default_permissions", "defaults", "diratime", "dirsync", "group",
    "iversion", "lazytime", "loud", "mand", "noatime", "noauto", "nodiratime", "nofail", "noiversion",
    "nolazytime", "nomand", "norelatime", "nostrictatime", "nouser", "owner", "relatime", "silent",
    "strictatime", "sync", "user", "users",
]
private let prefixesOfMount = ["x-", "X-", "comment=", "user=", "helper=", "uhelper="]

/// Words of libfuse, gocryptfs(1) and sshfs(1) that change how fast a mount is, or how much it says, and nothing of its
/// files. Front ends and lines of fstab that were written for these have them.
private let wordsOfOthers: Set<String> = [
    "async_read", "atomic_o_trunc", "auto_cache", "auto_unmount", "big_writes", "clone_fd", "delay_connect",
    "direct_io", "fusedebug", "hard_remove", "intr", "kernel_cache", "large_read", "no_readahead",
    "no_splice_move",
    "no_splice_read", "no_splice_write", "noauto_cache", "noforget", "noprealloc", "nosyslog", "q", "quiet",
    "readdir_ino", "reconnect", "serialize_reads", "sharedstorage", "splice_move", "splice_read",
    "splice_write", "sshfs_debug", "sshfs_sync", "sync_read", "sync_readdir", "use_ino", "wpanic",
]

/// The same, of words with a value.
private let valuesOfOthers: Set<String> = [
    "Compression", "ServerAliveCountMax", "ServerAliveInterval", "ac_attr_timeout", "attr_timeout", "cache",
    "cache_clean_interval", "cache_dir_timeout", "cache_link_timeout", "cache_max_size",
    "cache_min_clean_interval", "cache_stat_timeout", "cache_timeout", "compression", "congestion_threshold",
    "dcache_clean_interval", "dcache_dir_timeout", "dcache_link_timeout", "dcache_max_size",
    "dcache_min_clean_interval", "dcache_stat_timeout", "dcache_timeout", "dir_cache", "entry_timeout",
    "intr_signal", "loglevel", "max_background", "max_conns", "max_idle_threads", "max_read", "max_readahead",
    "max_threads", "max_write", "negative_timeout", "openssl", "remember", "workaround",
]
