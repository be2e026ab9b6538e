import CAdwaita
import Glibc

// A dump of the memory would have passwords in it.
var none = rlimit(rlim_cur: 0, rlim_max: 0)
setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
exit(Application().run())
