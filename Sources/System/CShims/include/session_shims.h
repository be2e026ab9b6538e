// Calls for namespaces and capabilities, needed by a private session, that Swift cannot import. No system header here:
// a module that includes one would own its types.
#ifndef OBSCURA_SESSION_SHIMS_H
#define OBSCURA_SESSION_SHIMS_H

/// CLONE_NEWUSER, CLONE_NEWNS and CLONE_NEWPID of unshare(2).
extern const int obscura_new_users, obscura_new_mounts, obscura_new_processes;

/// unshare(2). 0, or -1 and errno.
int obscura_unshare(int flags);
/// Adds CAP_SYS_ADMIN, which this process must have, to the ambient set (capabilities(7)): programs that it executes
/// keep it. 0, or -1 and errno.
int obscura_hand_on_admin(void);
/// Clears the ambient set: programs that this process executes inherit no capability. 0, or -1 and errno.
int obscura_hand_on_nothing(void);
/// prctl(PR_SET_DUMPABLE, 1): the user of this process owns its files in /proc. 0, or -1 and errno.
int obscura_allow_dumps(void);
/// prctl(PR_SET_PDEATHSIG, signal): sent to this process when its parent ends. 0, or -1 and errno.
int obscura_signal_when_orphaned(int signal);

#endif
