import CAdwaita
import Glibc
import LinuxIO
import VaultFormat

/// A dialog that runs one command: fields, a button that runs it, progress, and a message if it fails.
///
/// Its widgets hold it by their signals.
final class Form {
    /// Checks the fields and calls `run`.
    var submit: () -> Void = {}
    let window = Object(adw_window_new())
    private let content = verticalBox(spacing: 18).margins(18)
    private let complaint = paragraph().style("error")
    private let progress = Object(gtk_progress_bar_new()).set("show-text", true).set("visible", false)
    private let accept: Object
    private var command: Command?
    private var isClosed = false
    private var isBusy: Bool { gtk_widget_get_visible(progress.widget) != 0 }
    private var wrong: Object?
    /// Of passwords. They are emptied at the end.
    private var secrets: [Object] = []

    /// - Parameter height: of a form that may not fit a screen, and is scrolled then.
    init(_ parent: Object, _ title: String, accept label: Word, width: Int = 480, height: Int? = nil) {
        accept = button(label).style("suggested-action")
        let cancel = button(.cancel)
        window.set("title", title).set("modal", true).set("transient-for", parent)
            .set("destroy-with-parent", true).set("default-width", width).set("default-height", height ?? -1)
            .set("default-widget", accept).set("accessible-role", GTK_ACCESSIBLE_ROLE_DIALOG)
        let header = headerBar(start: cancel, end: accept).set("show-start-title-buttons", false)
            .set("show-end-title-buttons", false)
        // Screen readers say what appears in an alert at once.
        complaint.set("accessible-role", GTK_ACCESSIBLE_ROLE_ALERT).set("visible", false)
            .set("selectable", true)
        let scrolled = Object(gtk_scrolled_window_new()).set("vexpand", true).set("child", content)
            .set("hscrollbar-policy", GTK_POLICY_NEVER)
            .set("vscrollbar-policy", height == nil ? GTK_POLICY_NEVER : GTK_POLICY_AUTOMATIC)
        let foot = verticalBox(spacing: 6).append(complaint, progress)
        foot.set("margin-start", 18).set("margin-end", 18).set("margin-bottom", 18)
        window.set("content", verticalBox().append(header, scrolled, foot))
        // Nothing can be changed while the command runs.
        for part in [content, accept] {
            g_object_bind_property(
                progress.pointer, "visible", part.pointer, "sensitive", G_BINDING_INVERT_BOOLEAN)
        }
        accept.on("clicked") { [self] in if !isBusy { submit() } }
        cancel.on("clicked") { [self] in gtk_window_close(window.window) }
        window.onClose { [self] in mustStay() }
        let escape = Object(gtk_shortcut_controller_new())
        let key = gtk_shortcut_trigger_parse_string("Escape")
        gtk_shortcut_controller_add_shortcut(
            escape.opaque, gtk_shortcut_new(key, gtk_named_action_new("window.close")))
        gtk_widget_add_controller(window.widget, escape.opaque)
    }

    func show(focus: Object? = nil) {
        if let focus { gtk_widget_grab_focus(focus.widget) }
        gtk_window_present(window.window)
    }

    func close() {
        progress.set("visible", false)
        gtk_window_close(window.window)
    }

    @discardableResult func append(_ part: Object) -> Object {
        content.append(part)
        return part
    }

    /// A field for a password, in a row. Not AdwPasswordEntryRow: on Debian 12 screen readers cannot follow its focus.
    func passwordField(_ title: Word) -> Object {
        let field = Object(gtk_password_entry_new()).set("show-peek-icon", true)
        secrets.append(field)
        return inRow(field, title)
    }

    func textField(_ title: Word, _ text: String) -> Object {
        inRow(Object(gtk_entry_new()), title).replaceText(text)
    }

    /// A field for a size, and a note that says what that means.
    ///
    /// - Parameter disk: a path on the vault's disk.
    func sizeField(_ text: String, spaces: Int, disk: @escaping () -> String) -> (Object, note: Object) {
        let note = paragraph().style("dim-label").margins(6)
        let field = inRow(Object(gtk_entry_new()), .size)
        field.on("changed") {
            guard let bytes = parseSize(field.text) else {
                note.set("label", Word.sizeWrong.text)
                return
            }
            let count = FixedSpace(newOfBytes: bytes).photosWhenNew(bytesPerPhoto: 4_000_000)
            let photos = photosText(count, separator: Language.current.digitSeparator)
            let (total, free) = (sizeText(bytes * UInt64(spaces)), freeBytes(disk()).map(sizeText) ?? "?")
            note.set(
                "label",
                Word.sizePhotos.with(sizeText(bytes), photos) + " " + Word.sizeTotal.with(total, free))
        }
        return (field.replaceText(text), note)
    }

    private func inRow(_ field: Object, _ title: Word) -> Object {
        field.set("activates-default", true).set("width-request", 240)
            .set("valign", GTK_ALIGN_CENTER).on("changed") { [self] in forgetComplaint() }
        _ = controlRow(field, title)
        return field
    }

    /// A row with a folder and a button that chooses another one.
    func folderRow(_ title: Word, _ path: String, _ chosen: @escaping (String) -> Void) -> Object {
        let choose = button(.chooseFolder)
        let row = controlRow(choose, title, shownPath(path))
        choose.on("clicked") { [self] in
            chooseFolder(window, title) { [self] path, _ in
                row.set("subtitle", shownPath(path))
                forgetComplaint()
                chosen(path)
            }
        }
        return row
    }

    /// Whether a new password was typed twice, and alike. Otherwise shows a message.
    func isTypedTwice(_ password: Object, _ again: Object) -> Bool {
        guard isFilled(password) else { return false }
        let isSame = strcmp(gtk_editable_get_text(password.opaque), gtk_editable_get_text(again.opaque)) == 0
        if !isSame { complain(Word.passwordsDiffer.text, at: again) }
        return isSame
    }

    /// Whether a password was typed. Otherwise shows a message.
    func isFilled(_ password: Object) -> Bool {
        if password.isEmpty { complain(Word.typePassword.text, at: password) }
        return !password.isEmpty
    }

    /// Shows a message about a mistake; the field with the mistake is selected for another try.
    func complain(_ text: String, at field: Object? = nil) {
        forgetComplaint()
        complaint.set("label", text).set("visible", true)
        wrong = field
        // A screen reader says what has the focus.
        gtk_widget_grab_focus((field ?? complaint).widget)
        guard let field else { return }
        obscura_describe(field.style("error").pointer, text, 1)
        gtk_editable_select_region(field.opaque, 0, -1)
    }

    private func forgetComplaint() {
        complaint.set("visible", false)
        guard let field = wrong else { return }
        wrong = nil
        gtk_widget_remove_css_class(field.widget, "error")
        obscura_describe(field.pointer, "", 0)
    }

    /// Runs a command. The fields cannot be used meanwhile.
    ///
    /// - Parameters:
    ///   - doing: the text of the progress bar.
    ///   - measure: the part that is done, and a text for it; nil while neither is known.
    ///   - wrongPassword: what to say at which field when a password opens nothing.
    ///   - done: of a command that succeeded. The form is closed then.
    func run(
        _ arguments: [String], secrets: [Object] = [], doing: Word, measure: (() -> (Double, String)?)? = nil,
        wrongPassword: (Word, at: Object?)? = nil, done: @escaping (CommandEnd) -> Void
    ) {
        forgetComplaint()
        progress.set("visible", true).set("text", doing.text)
        gtk_progress_bar_set_fraction(progress.opaque, 0)
        repeatedly(every: 200) { [self] in
            guard !isClosed, isBusy else { return false }
            if let (part, text) = measure?() {
                gtk_progress_bar_set_fraction(progress.opaque, min(part, 1))
                progress.set("text", text)
            } else {
                gtk_progress_bar_pulse(progress.opaque)
            }
            return true
        }
        command = Command(arguments, secrets: secrets) { [self] end in
            command = nil
            guard !isClosed else { return }
            progress.set("visible", false)
            switch (end.status, wrongPassword) {
            case (0, _):
                close()
                done(end)
            case (CommandEnd.interrupted, _): close()
            case (CommandEnd.wrongPassword, let (text, field)?): complain(text.text, at: field)
            default: complain(end.message)
            }
        }
    }

    /// Closing while a command runs interrupts it; its end closes the form.
    private func mustStay() -> Bool {
        if isBusy, let command {
            command.interrupt()
            return true
        }
        isClosed = true
        for field in secrets { field.replaceText("") }
        // It holds the form.
        submit = {}
        return false
    }
}

/// A message, with a button that closes it and, where something can be done, another one.
func alert(
    _ parent: Object, _ title: String, _ body: String, choice: Word? = nil,
    _ chosen: @escaping () -> Void = {}
) {
    let dialog = Object(adw_message_dialog_new(parent.window, title, body))
    // GTK 4.8 has screen readers say the underscore of an access key here.
    adw_message_dialog_add_response(dialog.of(), "close", (choice == nil ? Word.close : .cancel).plainText)
    dialog.set("close-response", "close").set("default-response", "close")
    if let choice {
        adw_message_dialog_add_response(dialog.of(), "choice", choice.plainText)
        adw_message_dialog_set_response_appearance(dialog.of(), "choice", ADW_RESPONSE_DESTRUCTIVE)
        dialog.on("response::choice", chosen)
    }
    gtk_window_present(dialog.window)
}

/// Asks for a folder. Not by the dialog of GTK, which adds what is chosen to the desktop's list of recent files.
///
/// - Parameter chosen: gets the folder, and whether the box was ticked.
func chooseFolder(
    _ parent: Object, _ title: Word, asksToRemember: Bool = false, _ chosen: @escaping (String, Bool) -> Void
) {
    let form = Form(parent, title.text, accept: .choose, width: 760, height: 560)
    let chooser = Object(gtk_file_chooser_widget_new(GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER))
    let remember = Object(gtk_check_button_new_with_mnemonic(Word.remember.text)).named(
        Word.remember.plainText)
    let home = g_file_new_for_path(g_get_home_dir())
    gtk_file_chooser_set_current_folder(chooser.opaque, home, nil)
    g_object_unref(UnsafeMutableRawPointer(home))
    form.append(chooser.set("vexpand", true))
    form.append(remember.set("visible", asksToRemember))
    form.window.on("map") { soon { gtk_widget_child_focus(chooser.widget, GTK_DIR_TAB_FORWARD) } }
    form.submit = {
        guard let file = gtk_file_chooser_get_file(chooser.opaque) else { return }
        defer { g_object_unref(UnsafeMutableRawPointer(file)) }
        guard let path = g_file_get_path(file) else { return }
        let isTicked = remember.isTicked
        form.close()
        if let path = taking(path) { chosen(path, isTicked) }
    }
    form.show()
}
