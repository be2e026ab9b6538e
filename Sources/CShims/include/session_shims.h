// Namespaces and capabilities: what a private session asks of Linux and Swift cannot import. No system header here: a
// module that includes one would own its types.
#ifndef OBSCURA_SESSION_SHIMS_H
#define OBSCURA_SESSION_SHIMS_H

/// CLONE_NEWUSER, CLONE_NEWNS and CLONE_NEWPID of unshare(2).
extern const int obscura_new_users, obscura_new_mounts, obscura_new_processes;

/// unshare(2). 0, or -1 and errno.
int obscura_unshare(int flags);
/// Lets programs that this process executes keep CAP_SYS_ADMIN, which it must have (capabilities(7), ambient). 0, or -1
/// and errno.
int obscura_hand_on_admin(void);
/// Programs that this process executes keep no capability by inheritance. 0, or -1 and errno.
int obscura_hand_on_nothing(void);
/// prctl(PR_SET_DUMPABLE, 1): its files in /proc are its user's. 0, or -1 and errno.
int obscura_allow_dumps(void);
/// prctl(PR_SET_PDEATHSIG, signal): sent to this process when its parent ends. 0, or -1 and errno.
int obscura_signal_when_orphaned(int signal);

#endif
