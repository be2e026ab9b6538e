internal import Glibc

exit(runWorker(arguments: CommandLine.arguments))
