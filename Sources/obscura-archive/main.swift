internal import Glibc

exit(runArchiveReader())
