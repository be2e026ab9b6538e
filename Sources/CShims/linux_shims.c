#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "linux_shims.h"

const int obscura_no_access_time = O_NOATIME;
const int obscura_keep_size = FALLOC_FL_KEEP_SIZE;
const int obscura_path_only = O_PATH;

int obscura_openat(int directory, const char *path, int flags, unsigned int mode) {
    return openat(directory, path, flags, mode);
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

long long obscura_get_attribute(int descriptor, const char *name, void *value, unsigned long size) {
    return fgetxattr(descriptor, name, value, size);
}

int obscura_set_attribute(int descriptor, const char *name, const void *value, unsigned long size) {
    return fsetxattr(descriptor, name, value, size, 0);
}

int obscura_sync_filesystem(int descriptor) { return syncfs(descriptor); }
