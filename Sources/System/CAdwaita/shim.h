// GTK 4 and libadwaita, with wrappers of variadic functions and casts of functions, which Swift cannot import.
#ifndef OBSCURA_ADWAITA_SHIM_H
#define OBSCURA_ADWAITA_SHIM_H

// Later releases deprecate what Debian 12 has no other functions for.
#define GLIB_DISABLE_DEPRECATION_WARNINGS
#define GDK_DISABLE_DEPRECATION_WARNINGS
#define ADW_DISABLE_DEPRECATION_WARNINGS
#include <adwaita.h>
#include <glib-unix.h>

// g_object_set(3) and g_object_get(3) of one property.
static inline void obscura_set_text(void *object, const char *name, const char *value) {
    g_object_set(object, name, value, NULL);
}

static inline void obscura_set_number(void *object, const char *name, int value) {
    g_object_set(object, name, value, NULL);
}

static inline void obscura_set_object(void *object, const char *name, void *value) {
    g_object_set(object, name, value, NULL);
}

static inline int obscura_get_number(void *object, const char *name) {
    int value = 0;
    g_object_get(object, name, &value, NULL);
    return value;
}

/// Calls `call` with `data` alone, for any signal without a result: the other values of a signal come after it.
static inline void obscura_connect(
    void *object, const char *signal, void (*call)(void *), void *data, void (*release)(void *)) {
    g_signal_connect_data(object, signal, G_CALLBACK(call), data, (GClosureNotify)release, G_CONNECT_SWAPPED);
}

/// For signals with a result.
static inline void obscura_connect_question(
    void *object, const char *signal, int (*call)(void *), void *data, void (*release)(void *)) {
    g_signal_connect_data(object, signal, G_CALLBACK(call), data, (GClosureNotify)release, G_CONNECT_SWAPPED);
}

/// For the signal `open` of an application.
static inline void obscura_connect_files(
    void *object, void (*call)(void *, void **, int), void *data, void (*release)(void *)) {
    g_signal_connect_data(object, "open", G_CALLBACK(call), data, (GClosureNotify)release, G_CONNECT_SWAPPED);
}

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

/// A value in the text format of GVariant, not floating; null if the text is wrong.
static inline GVariant *obscura_variant(const char *text) {
    return g_variant_parse(NULL, text, NULL, NULL, NULL);
}

#endif
