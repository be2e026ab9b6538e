#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "linux_shims.h"

const int obscura_no_access_time = O_NOATIME;
const int obscura_keep_size = FALLOC_FL_KEEP_SIZE;
const int obscura_punch_hole = FALLOC_FL_PUNCH_HOLE;
const int obscura_path_only = O_PATH;
const int obscura_direct = O_DIRECT;
const long obscura_time_now = UTIME_NOW;
const long obscura_time_omit = UTIME_OMIT;

void obscura_return_memory(void) { malloc_trim(0); }
void obscura_keep_freed(int bytesMax) {
    mallopt(M_MMAP_THRESHOLD, bytesMax);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

int obscura_openat(int directory, const char *path, int flags, unsigned int mode) {
    return openat(directory, path, flags, mode);
}

int obscura_rename(int directory, const char *from, const char *to, int isExchange) {
    return renameat2(directory, from, directory, to, isExchange ? RENAME_EXCHANGE : RENAME_NOREPLACE);
}

int obscura_open_beneath(int directory, const char *name, int flags) {
    // struct open_how and RESOLVE_ flags of linux/openat2.h; the number is the same on all architectures.
    const long openat2 = 437;
    const uint64_t no_xdev = 0x01, no_magiclinks = 0x02, no_symlinks = 0x04, beneath = 0x08;
    struct { uint64_t flags, mode, resolve; } how = {
        (uint64_t)(unsigned int)flags, 0, no_xdev | no_magiclinks | no_symlinks | beneath};
    return (int)syscall(openat2, directory, name, &how, sizeof how);
}

long long obscura_mount_id(int descriptor) {
    struct statx status;
    // STATX_MNT_ID of linux/stat.h.
    const unsigned int wanted = 0x1000;
    if (statx(descriptor, "", AT_EMPTY_PATH, wanted, &status) != 0 || !(status.stx_mask & wanted)) return -1;
    return (long long)status.stx_mnt_id;
}

int obscura_move(int from_directory, const char *from, int to_directory, const char *to, int isExchange) {
    return renameat2(from_directory, from, to_directory, to, isExchange ? RENAME_EXCHANGE : RENAME_NOREPLACE);
}

int obscura_write_soon(int descriptor, long long offset, long long length) {
    return sync_file_range(descriptor, offset, length, SYNC_FILE_RANGE_WRITE);
}

long long obscura_write_past_cache(int descriptor, const void *bytes, unsigned long count, long long offset) {
    // RWF_DONTCACHE of linux/fs.h, newer than Debian 12's.
    const int dontCache = 0x80;
    const struct iovec part = {(void *)bytes, count};
    return pwritev2(descriptor, &part, 1, offset, dontCache);
}

int obscura_fallocate(int descriptor, int mode, long long offset, long long length) {
    return fallocate(descriptor, mode, offset, length);
}

long long obscura_filesystem_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (long long)status.f_type : -1;
}

long long obscura_list_attributes(int descriptor, char *names, unsigned long size) {
    return flistxattr(descriptor, names, size);
}

long long obscura_get_attribute_at(const char *path, const char *name, void *value, unsigned long size) {
    return lgetxattr(path, name, value, size);
}

long long obscura_get_attribute(int descriptor, const char *name, void *value, unsigned long size) {
    return fgetxattr(descriptor, name, value, size);
}

int obscura_set_attribute(int descriptor, const char *name, const void *value, unsigned long size) {
    return fsetxattr(descriptor, name, value, size, 0);
}

int obscura_device(const char *path, unsigned int *major, unsigned int *minor) {
    struct statx found;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &found) != 0) return -1;
    *major = found.stx_dev_major;
    *minor = found.stx_dev_minor;
    return 0;
}

int obscura_sync_filesystem(int descriptor) { return syncfs(descriptor); }

static struct flock byte_lock(short type, long long first, long long count) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    return lock;
}

int obscura_share_byte(int descriptor, long long byte, int isHeld) {
    struct flock lock = byte_lock(isHeld ? F_RDLCK : F_UNLCK, byte, 1);
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

long long obscura_shared_byte(int descriptor, long long first, long long count) {
    struct flock lock = byte_lock(F_WRLCK, first, count);
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -1;
    if (lock.l_type == F_UNLCK) return 0;
    return lock.l_start > first ? lock.l_start : first;
}

int obscura_act_as(unsigned int user, unsigned int group) {
    setfsgid(group);
    setfsuid(user);
    // Neither reports errors. Called with the invalid ID -1, both return the current ID.
    return (unsigned int)setfsgid((gid_t)-1) == group && (unsigned int)setfsuid((uid_t)-1) == user ? 0 : -1;
}

int obscura_waive_file_rights(int isWaived) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, sets) != 0) return -1;
    // Those that setfsuid(2) takes.
    const uint32_t rights = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER |
                            1u << CAP_FSETID | 1u << CAP_LINUX_IMMUTABLE | 1u << CAP_MKNOD;
    if (isWaived) sets[0].effective &= ~rights;
    else sets[0].effective |= sets[0].permitted & rights;
    return (int)syscall(SYS_capset, &header, sets);
}

// Not in Debian 12's headers; the number is the same on all architectures.
#define CACHESTAT_NUMBER 451

long long obscura_cached_pages(int descriptor) {
    // A length of 0 is up to the file's end.
    struct { uint64_t offset, length; } range = {0, 0};
    struct { uint64_t cached, dirty, writing, evicted, evicted_recently; } pages = {0};
    return syscall(CACHESTAT_NUMBER, descriptor, &range, &pages, 0) == 0 ? (long long)pages.cached : -1;
}
