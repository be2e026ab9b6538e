internal import Glibc

exit(runGuard(CommandLine.arguments))
