// System calls about a file that an attacker may make, as far as Swift cannot import it from glibc. No logic, and no
// system header here: a module that includes one would own its types.
#ifndef OBSCURA_GAME_SHIMS_H
#define OBSCURA_GAME_SHIMS_H

/// Of statx(2). Times are nanoseconds since 1970; `birth` is 0 where the host does not keep it.
struct game_status {
    long long size, blocks, inode, mode, links, owner, group, modified, changed, accessed, birth, attributes;
};

/// statx(2), links not followed. 0, or -1 and errno.
int game_status(const char *path, struct game_status *status);

/// The answer of FS_IOC_FIEMAP for a range after a sync: how many extents, their flags or'ed, and the physical byte of
/// the first that lies in the range.
struct game_extents {
    long long count, flags, physical;
};

/// 0, or -1 and errno.
int game_extents(int descriptor, long long start, long long length, struct game_extents *extents);

/// The answer of cachestat(2) for a range, in pages: those in memory, those of them that are not on the disk yet, and
/// those that were in memory and had to go.
struct game_cache {
    long long cached, dirty, evicted, recently_evicted;
};

/// 0, or -1 and errno: kernels before 6.5 do not have it.
int game_cache(int descriptor, long long start, long long length, struct game_cache *cache);

/// getdents64(2): bytes, or -1 and errno.
long long game_entries(int descriptor, void *bytes, unsigned long size);

/// The cost of this thread so far: pages it touched first (minor faults), and processor time in nanoseconds.
void game_thread_cost(long long *faults, long long *nanoseconds);

#endif
