#define _GNU_SOURCE
#include "worker_shims.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

const unsigned int shim_MFD_CLOEXEC = MFD_CLOEXEC, shim_MFD_ALLOW_SEALING = MFD_ALLOW_SEALING,
                   shim_MFD_NOEXEC_SEAL = MFD_NOEXEC_SEAL;
const int shim_F_ADD_SEALS = F_ADD_SEALS, shim_F_SEAL_SEAL = F_SEAL_SEAL, shim_F_SEAL_SHRINK = F_SEAL_SHRINK,
          shim_F_SEAL_GROW = F_SEAL_GROW, shim_F_SEAL_WRITE = F_SEAL_WRITE,
          shim_F_SEAL_FUTURE_WRITE = F_SEAL_FUTURE_WRITE;
int shim_memfd_create(const char *name, unsigned int flags) { return memfd_create(name, flags); }

const unsigned int shim_MLOCK_ONFAULT = MLOCK_ONFAULT;
int shim_mlock2(const void *address, long length, unsigned int flags) { return mlock2(address, (size_t)length, flags); }

void shim_futex_wake(const void *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }
void shim_futex_wait(const void *word, unsigned int value) {
  syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

const int shim_SCHED_IDLE = SCHED_IDLE;

const int shim_PR_SET_DUMPABLE = PR_SET_DUMPABLE, shim_PR_SET_NO_NEW_PRIVS = PR_SET_NO_NEW_PRIVS,
          shim_PR_SET_PDEATHSIG = PR_SET_PDEATHSIG;
int shim_fork(void) { return fork(); }
int shim_pidfd_open(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }
int shim_prctl(int option, unsigned long argument) { return prctl(option, argument, 0UL, 0UL, 0UL); }

int shim_clear_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
  return (int)syscall(SYS_capset, &header, none);
}
int shim_bounding_has(int capability) { return prctl(PR_CAPBSET_READ, (unsigned long)capability, 0UL, 0UL, 0UL); }
int shim_bounding_drop(int capability) { return prctl(PR_CAPBSET_DROP, (unsigned long)capability, 0UL, 0UL, 0UL); }

const short shim_POLLRDHUP = POLLRDHUP;
long shim_CMSG_SPACE(long length) { return (long)CMSG_SPACE((size_t)length); }
long shim_CMSG_LEN(long length) { return (long)CMSG_LEN((size_t)length); }
void *shim_CMSG_FIRSTHDR(const void *message) { return CMSG_FIRSTHDR((const struct msghdr *)message); }
unsigned char *shim_CMSG_DATA(void *control) { return CMSG_DATA((struct cmsghdr *)control); }
