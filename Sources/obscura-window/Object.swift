import CAdwaita

/// A GObject of any class. GTK frees it; nothing here counts references.
struct Object: Equatable {
    let pointer: UnsafeMutableRawPointer

    /// GTK's constructors never return null.
    init<T>(_ pointer: UnsafeMutablePointer<T>!) { self.pointer = UnsafeMutableRawPointer(pointer) }
    init(_ pointer: OpaquePointer!) { self.pointer = UnsafeMutableRawPointer(pointer) }

    var opaque: OpaquePointer { OpaquePointer(pointer) }
    var widget: UnsafeMutablePointer<GtkWidget> { of() }
    var window: UnsafeMutablePointer<GtkWindow> { of() }

    /// As a pointer to its class, or to a class that it inherits.
    func of<T>() -> UnsafeMutablePointer<T> { pointer.assumingMemoryBound(to: T.self) }

    // MARK: Properties

    @discardableResult func set(_ property: String, _ value: String?) -> Object {
        obscura_set_text(pointer, property, value)
        return self
    }

    @discardableResult func set(_ property: String, _ value: Bool) -> Object { set(property, value ? 1 : 0) }

    @discardableResult func set(_ property: String, _ value: Int) -> Object {
        obscura_set_number(pointer, property, Int32(value))
        return self
    }

    /// A value of an enumeration of C.
    @discardableResult func set(_ property: String, _ value: some RawRepresentable<UInt32>) -> Object {
        set(property, Int(value.rawValue))
    }

    @discardableResult func set(_ property: String, _ value: Object?) -> Object {
        obscura_set_object(pointer, property, value?.pointer)
        return self
    }

    func flag(_ property: String) -> Bool { obscura_get_number(pointer, property) != 0 }

    @discardableResult func style(_ classes: String...) -> Object {
        for name in classes { gtk_widget_add_css_class(widget, name) }
        return self
    }

    @discardableResult func margins(_ pixels: Int) -> Object {
        for side in ["margin-top", "margin-bottom", "margin-start", "margin-end"] { set(side, pixels) }
        return self
    }

    @discardableResult func named(_ name: String) -> Object {
        obscura_name(pointer, name)
        return self
    }

    /// Sensitive or not.
    func enable(_ isEnabled: Bool) { gtk_widget_set_sensitive(widget, isEnabled ? 1 : 0) }

    // MARK: Fields

    /// The row that a field is in.
    var row: Object { Object(gtk_widget_get_ancestor(widget, adw_action_row_get_type())) }

    /// Never of a field for passwords: they stay in the field's own memory.
    var text: String { String(cString: gtk_editable_get_text(opaque)) }

    func replaceText(_ text: String) { gtk_editable_set_text(opaque, text) }

    // MARK: Signals

    /// Calls `body` at each signal, until the object is freed.
    @discardableResult func on(_ signal: String, _ body: @escaping () -> Void) -> Object {
        obscura_connect(
            pointer, signal, { Box<() -> Void>.of($0).content() }, Box(body).retained, releaseBox)
        return self
    }

    /// For signals with a result.
    func onQuestion(_ signal: String, _ body: @escaping () -> Bool) {
        obscura_connect_question(
            pointer, signal, { Box<() -> Bool>.of($0).content() ? 1 : 0 }, Box(body).retained, releaseBox)
    }
}

/// A value that C code holds by a pointer.
final class Box<Content> {
    let content: Content

    init(_ content: Content) { self.content = content }

    var retained: UnsafeMutableRawPointer { Unmanaged.passRetained(self as AnyObject).toOpaque() }

    /// - Precondition: made by `retained` of the same class.
    static func of(_ data: UnsafeMutableRawPointer?) -> Box {
        guard let data else { preconditionFailure("a callback without its data") }
        return unsafeDowncast(Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue(), to: Box.self)
    }

    /// The same, released when the caller is done: for callbacks that come once.
    static func last(_ data: UnsafeMutableRawPointer?) -> Content {
        let content = of(data).content
        releaseBox(data)
        return content
    }
}

func releaseBox(_ data: UnsafeMutableRawPointer?) {
    if let data { Unmanaged<AnyObject>.fromOpaque(data).release() }
}

// MARK: Widgets

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
func paragraph(_ text: String) -> Object {
    Object(gtk_label_new(text)).set("wrap", true).set("xalign", 0).set("natural-wrap-mode", 1)
}

/// An underscore in the label precedes the letter that Alt presses the button with.
func button(_ label: String, _ press: @escaping () -> Void) -> Object {
    Object(gtk_button_new_with_mnemonic(label)).set("valign", GTK_ALIGN_CENTER)
        .named(label.filter { $0 != "_" }).on("clicked", press)
}

func preferencesGroup(_ title: String = "", _ description: String = "") -> Object {
    Object(adw_preferences_group_new()).set("title", title).set("description", description)
}

/// A row with a name and a line below it. The texts are no markup: names of folders may have `&` in them.
func actionRow(_ title: String, _ subtitle: String = "") -> Object {
    Object(adw_action_row_new()).set("use-markup", false).set("title", title).set("subtitle", subtitle)
}

/// Lends a value in the text format of GVariant.
func withVariant(_ text: String, _ body: (OpaquePointer?) -> Void) {
    let value = obscura_variant(text)
    body(value)
    if let value { g_variant_unref(value) }
}

// MARK: Main loop

/// Calls `body` once, soon, from the main loop; may be called from any thread.
func soon(after milliseconds: UInt32 = 0, _ body: @escaping () -> Void) {
    g_timeout_add_full(
        G_PRIORITY_DEFAULT, milliseconds,
        { data in
            Box<() -> Void>.of(data).content()
            return 0
        }, Box(body).retained, releaseBox)
}

/// Calls `body` every so often until it returns false.
func repeatedly(every milliseconds: UInt32, _ body: @escaping () -> Bool) {
    g_timeout_add_full(
        G_PRIORITY_DEFAULT, milliseconds, { Box<() -> Bool>.of($0).content() ? 1 : 0 }, Box(body).retained,
        releaseBox)
}
