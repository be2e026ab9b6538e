// GTK 4 and libadwaita, with wrappers of variadic functions and casts of functions, which Swift cannot import.
#ifndef OBSCURA_ADWAITA_SHIM_H
#define OBSCURA_ADWAITA_SHIM_H

// Later releases deprecate what Debian 12 has no other functions for.
#define GLIB_DISABLE_DEPRECATION_WARNINGS
#define GDK_DISABLE_DEPRECATION_WARNINGS
#define ADW_DISABLE_DEPRECATION_WARNINGS
#include <adwaita.h>
#include <glib-unix.h>

// Of gio/gunixmounts.h, which pkg-config does not find by libadwaita.
typedef struct _GUnixMountMonitor GUnixMountMonitor;
GUnixMountMonitor *g_unix_mount_monitor_get(void);

/// The name that a screen reader says, instead of the names of other widgets.
static inline void obscura_name(void *widget, const char *name) {
    gtk_accessible_reset_relation(GTK_ACCESSIBLE(widget), GTK_ACCESSIBLE_RELATION_LABELLED_BY);
    gtk_accessible_update_property(GTK_ACCESSIBLE(widget), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

/// The description that a screen reader says after the name, and whether the content of a field is wrong.
static inline void obscura_describe(void *widget, const char *text, int is_wrong) {
    gtk_accessible_update_property(GTK_ACCESSIBLE(widget), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, text, -1);
    gtk_accessible_update_state(
        GTK_ACCESSIBLE(widget), GTK_ACCESSIBLE_STATE_INVALID,
        is_wrong ? GTK_ACCESSIBLE_INVALID_TRUE : GTK_ACCESSIBLE_INVALID_FALSE, -1);
}

#endif
