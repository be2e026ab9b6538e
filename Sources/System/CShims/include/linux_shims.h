// Calls that Swift cannot import from glibc: variadic functions, and declarations behind _GNU_SOURCE. No logic, and no
// system header here: a module that includes one would own its types.
#ifndef OBSCURA_LINUX_SHIMS_H
#define OBSCURA_LINUX_SHIMS_H

/// O_NOATIME of open(2).
extern const int obscura_no_access_time;
/// FALLOC_FL_KEEP_SIZE of fallocate(2).
extern const int obscura_keep_size;
/// FALLOC_FL_PUNCH_HOLE of fallocate(2).
extern const int obscura_punch_hole;
/// O_PATH of open(2).
extern const int obscura_path_only;
/// O_DIRECT of open(2).
extern const int obscura_direct;
/// UTIME_NOW and UTIME_OMIT of utimensat(2).
extern const long obscura_time_now;
extern const long obscura_time_omit;

/// malloc_trim(3) of all that is free.
void obscura_return_memory(void);
/// mallopt(3): freed memory stays for all threads that begin later, except pieces larger than `bytesMax`.
void obscura_keep_freed(int bytesMax);

int obscura_openat(int directory, const char *path, int flags, unsigned int mode);

/// renameat2(2) within a directory: RENAME_EXCHANGE if `isExchange`, else RENAME_NOREPLACE. 0, or -1 and errno.
int obscura_rename(int directory, const char *from, const char *to, int isExchange);

/// openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS and RESOLVE_NO_XDEV. A descriptor, or -1
/// and errno: ENOSYS before Linux 5.6, EPERM under some filters of system calls.
int obscura_open_beneath(int directory, const char *name, int flags);

/// stx_mnt_id of statx(2): distinguishes the mounts of this namespace. -1 where the kernel, before Linux 5.8, does not
/// tell.
long long obscura_mount_id(int descriptor);

/// renameat2(2): RENAME_EXCHANGE if `isExchange`, else RENAME_NOREPLACE. 0, or -1 and errno.
int obscura_move(int from_directory, const char *from, int to_directory, const char *to, int isExchange);

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE; up to the file's end if length is 0. 0, or -1 and errno.
int obscura_write_soon(int descriptor, long long offset, long long length);

/// pwritev2(2) with RWF_DONTCACHE. Bytes, or -1 and errno: EOPNOTSUPP where kernel or file system do not support it.
long long obscura_write_past_cache(int descriptor, const void *bytes, unsigned long count, long long offset);

int obscura_fallocate(int descriptor, int mode, long long offset, long long length);

/// The f_type of fstatfs(2), or -1 and errno.
long long obscura_filesystem_type(int descriptor);

/// flistxattr(2) and fgetxattr(2) return bytes, fsetxattr(2) returns 0; all return -1 and errno on error.
long long obscura_list_attributes(int descriptor, char *names, unsigned long size);
long long obscura_get_attribute(int descriptor, const char *name, void *value, unsigned long size);
/// lgetxattr(2).
long long obscura_get_attribute_at(const char *path, const char *name, void *value, unsigned long size);
int obscura_set_attribute(int descriptor, const char *name, const void *value, unsigned long size);

/// cachestat(2): the number of pages of a file in the page cache. -1 and errno where the kernel, before Linux 6.5, does
/// not tell.
long long obscura_cached_pages(int descriptor);

/// The device number of what a path leads to, from what the kernel has in memory: statx(2) with AT_STATX_DONT_SYNC,
/// which sends a FUSE daemon no request. 0, or -1 and errno.
int obscura_device(const char *path, unsigned int *major, unsigned int *minor);

/// syncfs(2).
int obscura_sync_filesystem(int descriptor);

/// F_OFD_SETLK of fcntl(2) on one byte: takes a read lock, or releases it if `isHeld` is 0. 0, or -1 and errno.
int obscura_share_byte(int descriptor, long long byte, int isHeld);
/// F_OFD_GETLK of fcntl(2): the offset of a byte in the `count` bytes from `first` on that another open file
/// description has locked; 0 if there is none, or -1 and errno.
long long obscura_shared_byte(int descriptor, long long first, long long count);

/// setfsgid(2) and setfsuid(2): sets the user and group of the calling thread for file access. 0, or -1.
int obscura_act_as(unsigned int user, unsigned int group);

/// Takes from the calling thread the capabilities that let root access others' files, as `obscura_act_as` does for
/// another user, or gives them back if `isWaived` is 0. 0, or -1 and errno.
int obscura_waive_file_rights(int isWaived);

#endif
