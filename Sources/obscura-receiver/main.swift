internal import Glibc

exit(runReceiver())
