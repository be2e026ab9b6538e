// For Swift this module also owns the system types that the header drags in (stat, statvfs, timespec, …): files of
// FuseBridge that touch their members import it.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
