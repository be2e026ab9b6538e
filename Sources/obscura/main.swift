import Glibc

exit(runObscura())
