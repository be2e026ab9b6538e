import CAdwaita

func verticalBox(spacing: Int32 = 0) -> Object { Object(gtk_box_new(GTK_ORIENTATION_VERTICAL, spacing)) }

extension Object {
    /// Appends to a box.
    @discardableResult func append(_ children: Object...) -> Object {
        for child in children { gtk_box_append(of(), child.widget) }
        return self
    }

    /// Adds rows to a group of preferences.
    @discardableResult func add(_ rows: Object...) -> Object {
        for row in rows { adw_preferences_group_add(of(), row.widget) }
        return self
    }
}

/// Text that wraps, in the reading direction.
func paragraph(_ text: String = "") -> Object {
    let label = Object(gtk_label_new(text)).set("wrap", true).set("natural-wrap-mode", GTK_NATURAL_WRAP_NONE)
    gtk_label_set_xalign(label.opaque, 0)
    return label
}

/// An underscore in the label precedes the letter that Alt presses the button with.
func button(_ label: Word, _ press: (() -> Void)? = nil) -> Object {
    let button = Object(gtk_button_new_with_mnemonic(label.text)).set("valign", GTK_ALIGN_CENTER)
        .named(label.plainText)
    return press.map { button.on("clicked", $0) } ?? button
}

func headerBar(start: Object, end: Object) -> Object {
    let header = Object(adw_header_bar_new())
    adw_header_bar_pack_start(header.opaque, start.widget)
    adw_header_bar_pack_end(header.opaque, end.widget)
    return header
}

func menuButton(_ icon: String, _ name: String) -> Object {
    Object(gtk_menu_button_new()).set("icon-name", icon).set("tooltip-text", name).named(name)
}

/// A menu for a menu button: labels and the names of their actions.
func menuModel(_ entries: KeyValuePairs<Word, String>) -> Object {
    let menu = Object(g_menu_new())
    for (label, action) in entries { g_menu_append(menu.opaque, label.text, action) }
    return menu
}

func action(_ name: String) -> Object { Object(g_simple_action_new(name, nil)) }

func preferencesGroup(_ title: Word? = nil, _ description: Word? = nil) -> Object {
    Object(adw_preferences_group_new()).set("title", title?.text ?? "")
        .set("description", description?.text ?? "")
}

/// A row with a name and a line below it. The texts are no markup: names of folders may have `&` in them.
func actionRow(_ title: String, _ subtitle: String = "") -> Object {
    Object(adw_action_row_new()).set("use-markup", false).set("title", title).set("subtitle", subtitle)
}

/// A row with a control at its end, or at its start, that has its name, and that a click on the row activates.
func controlRow(_ control: Object, _ title: Word, _ subtitle: String = "", atStart: Bool = false) -> Object {
    let row = actionRow(title.text, subtitle).set("focusable", false).set("activatable-widget", control)
    (atStart ? adw_action_row_add_prefix : adw_action_row_add_suffix)(row.of(), control.widget)
    // The row has given it another name.
    control.named(title.text)
    return row
}
