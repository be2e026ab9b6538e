#include <microhttpd.h>

/* MHD_start_daemon and MHD_set_connection_option are variadic, which Swift does not import. */
static inline struct MHD_Daemon *shim_start_daemon(unsigned int flags, MHD_AccessHandlerCallback handler, void *context,
                                                   struct MHD_OptionItem *options) {
    return MHD_start_daemon(flags, 0, NULL, NULL, handler, context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

/* MHD_get_connection_info is variadic. -1 if the connection has no descriptor. */
static inline int shim_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? (int)info->connect_fd : -1;
}

/* MHD_get_daemon_info is variadic. -1 if the daemon has no epoll descriptor. */
static inline int shim_epoll_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}
