/* Calls of the thumbnail worker and its client that Swift cannot import from glibc: macros, variadic functions, and
   declarations that exist only with _GNU_SOURCE (the Glibc module is built without it). No logic, and no system
   header here: a module that includes one would own its types. */
#ifndef OBSCURA_WORKER_SHIMS_H
#define OBSCURA_WORKER_SHIMS_H

/* memfd_create(2) and file seals, fcntl(2). */
extern const unsigned int shim_MFD_CLOEXEC, shim_MFD_ALLOW_SEALING, shim_MFD_NOEXEC_SEAL;
extern const int shim_F_ADD_SEALS, shim_F_SEAL_SEAL, shim_F_SEAL_SHRINK, shim_F_SEAL_GROW, shim_F_SEAL_WRITE,
    shim_F_SEAL_FUTURE_WRITE;
int shim_memfd_create(const char *name, unsigned int flags);

/* mlock2(2). */
extern const unsigned int shim_MLOCK_ONFAULT;
int shim_mlock2(const void *address, long length, unsigned int flags);

/* futex(2) on a 32-bit word that several processes have mapped: wakes all waiters; waits while the word is `value`, but
   may also return spuriously. */
void shim_futex_wake(const void *word);
void shim_futex_wait(const void *word, unsigned int value);

/* sched(7). */
extern const int shim_SCHED_IDLE;

/* fork(2), which Swift marks unavailable; pidfd_open(2); prctl(2), which is variadic. */
extern const int shim_PR_SET_DUMPABLE, shim_PR_SET_NO_NEW_PRIVS, shim_PR_SET_PDEATHSIG;
int shim_fork(void);
int shim_pidfd_open(int process);
int shim_prctl(int option, unsigned long argument);

/* capabilities(7): clears the effective, permitted and inheritable sets of this thread; tells whether a capability is
   in the bounding set (-1 if the kernel does not know it); drops one from the bounding set. */
int shim_clear_capabilities(void);
int shim_bounding_has(int capability);
int shim_bounding_drop(int capability);

/* poll(2), cmsg(3). */
extern const short shim_POLLRDHUP;
long shim_CMSG_SPACE(long length);
long shim_CMSG_LEN(long length);
/* A cmsghdr, or null. */
void *shim_CMSG_FIRSTHDR(const void *message);
unsigned char *shim_CMSG_DATA(void *control);

#endif
