#define _GNU_SOURCE
#include "session_shims.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

const int obscura_new_users = CLONE_NEWUSER, obscura_new_mounts = CLONE_NEWNS, obscura_new_processes = CLONE_NEWPID;

int obscura_unshare(int flags) { return unshare(flags); }

int obscura_hand_on_admin(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, sets) != 0) return -1;
    sets[CAP_TO_INDEX(CAP_SYS_ADMIN)].inheritable |= CAP_TO_MASK(CAP_SYS_ADMIN);
    if (syscall(SYS_capset, &header, sets) != 0) return -1;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

int obscura_hand_on_nothing(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); }

int obscura_allow_dumps(void) { return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }

int obscura_signal_when_orphaned(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0); }
