#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/vfs.h>

#include "linux_shims.h"

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
