// Calls that Swift cannot import from glibc: variadics, and what is behind _GNU_SOURCE. No logic, and no system
// header here: a module that includes one would own its types.
#ifndef OBSCURA_LINUX_SHIMS_H
#define OBSCURA_LINUX_SHIMS_H

int obscura_openat(int directory, const char *path, int flags, unsigned int mode);

int obscura_fallocate(int descriptor, int mode, long long offset, long long length);

/// The f_type of fstatfs(2), -1 on error.
long long obscura_filesystem_type(int descriptor);

#endif
