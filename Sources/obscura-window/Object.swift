import CAdwaita
import Glibc

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

    @discardableResult func set(_ name: String, _ value: String) -> Object {
        value.withCString { setValue(name, $0) }
    }
    @discardableResult func set(_ name: String, _ value: Bool) -> Object { set(name, value ? 1 : 0) }
    @discardableResult func set(_ name: String, _ value: Int) -> Object { setValue(name, Int32(value)) }
    @discardableResult func set(_ name: String, _ value: Object) -> Object { setValue(name, value.opaque) }
    /// A value of an enumeration of C.
    @discardableResult func set(_ name: String, _ value: some RawRepresentable<UInt32>) -> Object {
        setValue(name, value.rawValue)
    }

    private func setValue(_ name: String, _ value: any CVarArg) -> Object {
        // The null ends the list.
        withVaList([value, 0]) { g_object_set_valist(of(), name, $0) }
        return self
    }

    /// Of a check button.
    var isTicked: Bool { gtk_check_button_get_active(of()) != 0 }

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

    /// The row that a field is in.
    var row: Object { Object(gtk_widget_get_ancestor(widget, adw_action_row_get_type())) }

    /// Never of a field for passwords: they stay in the field's own memory.
    var text: String { String(cString: gtk_editable_get_text(opaque)) }

    var isEmpty: Bool { gtk_editable_get_text(opaque).pointee == 0 }

    @discardableResult func replaceText(_ text: String) -> Object {
        gtk_editable_set_text(opaque, text)
        return self
    }

    /// Calls `body` at each signal without a result, until the object is freed.
    @discardableResult func on(_ signal: String, _ body: @escaping () -> Void) -> Object {
        let call: @convention(c) (UnsafeMutableRawPointer?) -> Void = { Box<() -> Void>.of($0).content() }
        connect(signal, unsafeBitCast(call, to: GCallback.self), Box(body).retained)
        return self
    }

    /// Asks `body` whether the window must stay.
    func onClose(_ body: @escaping () -> Bool) {
        connect("close-request", unsafeBitCast(answerFromBox, to: GCallback.self), Box(body).retained)
    }

    /// - Parameter callback: gets `data`, then the values of the signal.
    func connect(_ signal: String, _ callback: @escaping GCallback, _ data: UnsafeMutableRawPointer) {
        g_signal_connect_data(
            pointer, signal, callback, data, { data, _ in releaseBox(data) }, G_CONNECT_SWAPPED)
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
        defer { releaseBox(data) }
        return of(data).content
    }
}

func releaseBox(_ data: UnsafeMutableRawPointer?) {
    if let data { Unmanaged<AnyObject>.fromOpaque(data).release() }
}

/// The answer of a `() -> Bool` in a box, as C's.
let answerFromBox: @convention(c) (UnsafeMutableRawPointer?) -> gboolean = {
    Box<() -> Bool>.of($0).content() ? 1 : 0
}

/// A text that a function of C allocated: freed. Nil if there is none, or it is not UTF-8.
func taking(_ text: UnsafeMutablePointer<CChar>?) -> String? {
    defer { g_free(text) }
    return text.flatMap { String(validatingCString: $0) }
}

/// Lends texts as an array of C that ends with null.
func withTexts<R>(_ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R) -> R {
    var pointers = texts.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBytes {
        body($0.bindMemory(to: UnsafePointer<CChar>?.self).baseAddress)
    }
}

/// Lends a value in the text format of GVariant.
func withVariant(_ text: String, _ body: (OpaquePointer?) -> Void) {
    let value = g_variant_parse(nil, text, nil, nil, nil)
    body(value)
    if let value { g_variant_unref(value) }
}

/// Calls `body` once, soon, from the main loop; may be called from any thread.
func soon(after milliseconds: UInt32 = 0, _ body: @escaping () -> Void) {
    repeatedly(every: milliseconds) {
        body()
        return false
    }
}

/// Calls `body` every so often until it returns false.
func repeatedly(every milliseconds: UInt32, _ body: @escaping () -> Bool) {
    g_timeout_add_full(G_PRIORITY_DEFAULT, milliseconds, answerFromBox, Box(body).retained, releaseBox)
}
