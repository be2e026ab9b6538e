// Process calls that Swift cannot import: variadic functions, macros, and declarations behind _GNU_SOURCE. No logic,
// and no system header here: a module that includes one would own its types.
#ifndef OBSCURA_SHIMS_PROCESS_H
#define OBSCURA_SHIMS_PROCESS_H

/// prctl(PR_SET_DUMPABLE, 0): no core, no ptrace by the same user. 0, or -1 and errno.
int obscura_forbid_dumps(void);
/// Gives signals of faults back to the kernel, which ends the process: Swift's crash reporter, which reads and prints
/// memory, is nothing but their handler (stdlib/public/runtime/CrashHandlerLinux.cpp).
void obscura_drop_crash_reporter(void);
/// prctl(PR_SET_NAME, name): the name that ps(1) shows. After executing /proc/self/exe it is "exe".
int obscura_set_process_name(const char *name);
/// prctl(PR_SET_PDEATHSIG, SIGKILL): kills this process when the thread that started it ends. 0, or -1 and errno.
int obscura_end_with_parent(void);
/// pidfd_open(2) without flags. A descriptor that becomes readable when the process ends, or -1 and errno.
int obscura_pidfd_open(int process);
/// pidfd_send_signal(2) to the process of a descriptor of pidfd_open(2). 0, or -1 and errno.
int obscura_pidfd_send_signal(int process, int number);
/// setns(2) into the mount namespace that `fd` refers to. 0, or -1 and errno.
int obscura_enter_mount_namespace(int fd);
/// close_range(2) from `lowest` upwards. 0, or -1 and errno.
int obscura_close_from(int lowest);
/// pipe2(2) with O_CLOEXEC: the read end, then the write end. 0, or -1 and errno.
int obscura_make_pipe(int ends[2]);
/// A detached mount of fusectl, in which files can be opened; needs root. A descriptor, or -1 and errno.
int obscura_mount_fusectl(void);
/// sched_getaffinity(2) and sched_setaffinity(2) of the calling thread; `set` has a bit for each processor. At least 0,
/// or -1 and errno.
int obscura_get_processors(void *set, unsigned long bytes);
int obscura_set_processors(const void *set, unsigned long bytes);
/// environ(7).
char **obscura_environment(void);
/// posix_spawn_file_actions_addclosefrom_np(3) on a posix_spawn_file_actions_t. 0, or an error number.
int obscura_spawn_close_from(void *actions, int lowest);
/// posix_spawn_file_actions_addchdir_np(3) on a posix_spawn_file_actions_t. 0, or an error number.
int obscura_spawn_change_directory(void *actions, const char *path);
/// The flag POSIX_SPAWN_SETSID of posix_spawnattr_setflags(3).
short obscura_spawn_new_session(void);

#endif
