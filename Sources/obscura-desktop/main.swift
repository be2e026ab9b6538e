internal import Glibc

exit(runDesktopLists(CommandLine.arguments))
