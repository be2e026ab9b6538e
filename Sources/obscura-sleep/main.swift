internal import Glibc

exit(runSleepWatch())
