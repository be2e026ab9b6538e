#define _GNU_SOURCE
#include "distinguisher_shims.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(struct statx_timestamp time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

int game_status(const char *path, struct game_status *status) {
    struct statx found;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return -1;
    status->size = (long long)found.stx_size;
    status->blocks = (long long)found.stx_blocks;
    status->inode = (long long)found.stx_ino;
    status->mode = found.stx_mode;
    status->links = found.stx_nlink;
    status->owner = found.stx_uid;
    status->group = found.stx_gid;
    status->modified = nanoseconds(found.stx_mtime);
    status->changed = nanoseconds(found.stx_ctime);
    status->accessed = nanoseconds(found.stx_atime);
    status->birth = found.stx_mask & STATX_BTIME ? nanoseconds(found.stx_btime) : 0;
    status->attributes = (long long)found.stx_attributes;
    return 0;
}

int game_extents(int descriptor, long long start, long long length, struct game_extents *extents) {
    enum { count_max = 512 };
    struct fiemap *map = calloc(1, sizeof *map + count_max * sizeof map->fm_extents[0]);
    if (!map) return -1;
    map->fm_start = (unsigned long long)start;
    map->fm_length = (unsigned long long)length;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = count_max;
    int result = ioctl(descriptor, FS_IOC_FIEMAP, map);
    if (result == 0) {
        extents->count = map->fm_mapped_extents;
        struct fiemap_extent first = map->fm_extents[0];
        long long before = start > (long long)first.fe_logical ? start - (long long)first.fe_logical : 0;
        extents->physical = map->fm_mapped_extents ? (long long)first.fe_physical + before : 0;
        extents->flags = 0;
        for (unsigned i = 0; i < map->fm_mapped_extents; i++) extents->flags |= map->fm_extents[i].fe_flags;
    }
    free(map);
    return result;
}

int game_cache(int descriptor, long long start, long long length, struct game_cache *cache) {
    enum { call = 451 };
    struct {
        unsigned long long offset, length;
    } range = {(unsigned long long)start, (unsigned long long)length};
    struct {
        unsigned long long cached, dirty, writeback, evicted, recently_evicted;
    } found;
    if (syscall(call, descriptor, &range, &found, 0) != 0) return -1;
    cache->cached = (long long)found.cached;
    cache->dirty = (long long)(found.dirty + found.writeback);
    cache->evicted = (long long)found.evicted;
    cache->recently_evicted = (long long)found.recently_evicted;
    return 0;
}

long long game_entries(int descriptor, void *bytes, unsigned long size) {
    return syscall(SYS_getdents64, descriptor, bytes, size);
}

void game_thread_cost(long long *faults, long long *nanoseconds) {
    struct rusage usage;
    struct timespec time;
    getrusage(RUSAGE_THREAD, &usage);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    *faults = usage.ru_minflt;
    *nanoseconds = time.tv_sec * 1000000000LL + time.tv_nsec;
}
