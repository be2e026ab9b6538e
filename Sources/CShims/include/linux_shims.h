// Calls that Swift cannot import from glibc: variadics, and what is behind _GNU_SOURCE. No logic, and no system
// header here: a module that includes one would own its types.
#ifndef OBSCURA_LINUX_SHIMS_H
#define OBSCURA_LINUX_SHIMS_H

/// O_NOATIME of open(2).
extern const int obscura_no_access_time;
/// FALLOC_FL_KEEP_SIZE of fallocate(2).
extern const int obscura_keep_size;
extern const int obscura_punch_hole;
/// O_PATH of open(2).
extern const int obscura_path_only;
/// O_DIRECT of open(2).
extern const int obscura_direct;

int obscura_openat(int directory, const char *path, int flags, unsigned int mode);

/// renameat2(2) within a directory: RENAME_EXCHANGE where `isExchange`, else RENAME_NOREPLACE. 0, or -1 and errno.
int obscura_rename(int directory, const char *from, const char *to, int isExchange);

int obscura_fallocate(int descriptor, int mode, long long offset, long long length);

/// The f_type of fstatfs(2), -1 on error.
long long obscura_filesystem_type(int descriptor);

/// flistxattr(2), fgetxattr(2) and fsetxattr(2): bytes, or -1 and errno; 0, or -1 and errno.
long long obscura_list_attributes(int descriptor, char *names, unsigned long size);
long long obscura_get_attribute(int descriptor, const char *name, void *value, unsigned long size);
int obscura_set_attribute(int descriptor, const char *name, const void *value, unsigned long size);

/// syncfs(2).
int obscura_sync_filesystem(int descriptor);

/// F_OFD_SETLK of fcntl(2) on one byte: a read lock, or none where `isHeld` is 0. 0, or -1 and errno.
int obscura_share_byte(int descriptor, long long byte, int isHeld);
/// F_OFD_GETLK: the first byte from `first` on, of `count`, that another open file has locked; 0 for none, or -1 and
/// errno.
long long obscura_shared_byte(int descriptor, long long first, long long count);

/// setfsgid(2) and setfsuid(2): whose rights to files the calling thread has from now on. 0, or -1.
int obscura_act_as(unsigned int user, unsigned int group);

#endif
