#define _GNU_SOURCE
#include "process_shims.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

int obscura_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
void obscura_drop_crash_reporter(void) {
    static const int reported[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (unsigned index = 0; index < sizeof reported / sizeof *reported; index++) {
        struct sigaction now;
        // The reporter leaves ignored ones alone, as nohup(1) starts programs.
        if (sigaction(reported[index], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            signal(reported[index], SIG_DFL);
    }
}
int obscura_set_process_name(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }
int obscura_end_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL); }
int obscura_pidfd_open(int process) { return pidfd_open(process, 0); }
int obscura_pidfd_send_signal(int process, int number) { return pidfd_send_signal(process, number, NULL, 0); }
int obscura_enter_mount_namespace(int fd) { return setns(fd, CLONE_NEWNS); }
int obscura_close_from(int lowest) { return close_range((unsigned)lowest, ~0U, 0); }
int obscura_make_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
int obscura_mount_fusectl(void) {
    int context = fsopen("fusectl", FSOPEN_CLOEXEC);
    if (context < 0) return -1;
    int mount = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    if (mount == 0) mount = fsmount(context, FSMOUNT_CLOEXEC, 0);
    close(context);
    return mount;
}
int obscura_get_processors(void *set, unsigned long bytes) { return sched_getaffinity(0, bytes, set); }
int obscura_set_processors(const void *set, unsigned long bytes) { return sched_setaffinity(0, bytes, set); }
char **obscura_environment(void) { return environ; }
int obscura_spawn_close_from(void *actions, int lowest) {
    return posix_spawn_file_actions_addclosefrom_np(actions, lowest);
}
int obscura_spawn_change_directory(void *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
}
short obscura_spawn_new_session(void) { return POSIX_SPAWN_SETSID; }
