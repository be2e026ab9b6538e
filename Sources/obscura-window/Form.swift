import CAdwaita
import Glibc
import LinuxIO
import VaultFormat

/// A dialog that runs one command: fields, a button that runs it, progress, and a message if it fails.
///
/// Its widgets hold it by their signals.
class Form {
    let window = Object(adw_window_new())
    private let content = verticalBox(spacing: 18).margins(18)
    private let complaint = paragraph("").style("error")
    private let progress = Object(gtk_progress_bar_new()).set("show-text", true).set("visible", false)
    private let accept: Object
    private let cancel: Object
    private var command: Command?
    private var isClosed = false
    private var isBusy = false
    private var wrong: Object?
    /// Of passwords. They are emptied at the end.
    private var secrets: [Object] = []

    /// - Parameter height: of a form that may not fit a screen, and is scrolled then.
    init(_ parent: Object, title: String, accept label: String, height: Int? = nil) {
        accept = button(label) {}.style("suggested-action")
        cancel = button(Word.cancel.text) {}
        window.set("title", title).set("modal", true).set("transient-for", parent)
            .set("destroy-with-parent", true).set("default-width", 480).set("default-widget", accept)
            .set("accessible-role", GTK_ACCESSIBLE_ROLE_DIALOG)
        let header = Object(adw_header_bar_new()).set("show-start-title-buttons", false)
            .set("show-end-title-buttons", false)
        adw_header_bar_pack_start(header.opaque, cancel.widget)
        adw_header_bar_pack_end(header.opaque, accept.widget)
        // Screen readers say what appears in an alert at once.
        complaint.set("accessible-role", GTK_ACCESSIBLE_ROLE_ALERT).set("visible", false).set(
            "selectable", true)
        let scrolled = Object(gtk_scrolled_window_new()).set("vexpand", true)
            .set("hscrollbar-policy", GTK_POLICY_NEVER)
        if let height {
            window.set("default-height", height)
        } else {
            scrolled.set("vscrollbar-policy", GTK_POLICY_NEVER)
        }
        let foot = verticalBox(spacing: 6).append(complaint, progress)
        foot.set("margin-start", 18).set("margin-end", 18).set("margin-bottom", 18)
        scrolled.set("child", content)
        adw_window_set_content(window.of(), verticalBox().append(header, scrolled, foot).widget)
        accept.on("clicked") { [self] in if !isBusy { submit() } }
        cancel.on("clicked") { [self] in gtk_window_close(window.window) }
        window.onQuestion("close-request") { [self] in mustStay() }
        let escape = Object(gtk_shortcut_controller_new())
        gtk_shortcut_controller_add_shortcut(
            escape.opaque,
            gtk_shortcut_new(
                gtk_keyval_trigger_new(UInt32(GDK_KEY_Escape), GdkModifierType(0)),
                gtk_named_action_new("window.close")))
        gtk_widget_add_controller(window.widget, escape.opaque)
    }

    /// Checks the fields and calls `run`.
    func submit() {}

    func show() { gtk_window_present(window.window) }

    func close() {
        isBusy = false
        gtk_window_close(window.window)
    }

    // MARK: Fields

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
        let field = inRow(Object(gtk_entry_new()), title)
        field.replaceText(text)
        return field
    }

    /// A field for a size; the note below says what that means.
    ///
    /// - Parameters:
    ///   - spaces: how many of this size the vault has.
    ///   - disk: a path on its disk.
    func sizeField(_ text: String, note: Object, spaces: Int, disk: @escaping () -> String) -> Object {
        let field = textField(Word.size, "")
        note.style("dim-label").margins(6)
        field.on("changed") {
            guard let bytes = parseSize(field.text) else {
                note.set("label", Word.sizeWrong.text)
                return
            }
            let (total, free) = (sizeText(bytes * UInt64(spaces)), freeBytes(disk()).map(sizeText) ?? "?")
            let room = FixedSpace(newOfBytes: bytes).roomWhenNew.bytes
            let photos = Word.sizePhotos.with(
                sizeText(bytes), photosText(room, separator: Language.current.digitSeparator))
            note.set("label", photos + " " + Word.sizeTotal.with(total, free))
        }
        field.replaceText(text)
        return field
    }

    private func inRow(_ field: Object, _ title: Word) -> Object {
        field.set("activates-default", true).set("width-request", 240)
            .set("valign", GTK_ALIGN_CENTER).on("changed") { [self] in forgetComplaint() }
        let row = actionRow(title.text).set("focusable", false)
        adw_action_row_add_suffix(row.of(), field.widget)
        row.set("activatable-widget", field)
        field.named(title.text)
        return field
    }

    /// A row with a folder and a button that chooses another one.
    func folderRow(_ title: Word, _ path: String, _ chosen: @escaping (String) -> Void) -> Object {
        let row = actionRow(title.text, shownPath(path)).set("focusable", false)
        let choose = button(Word.chooseFolder.text) { [self] in
            FolderForm(window, title.text) { [self] path, _ in
                row.set("subtitle", shownPath(path))
                forgetComplaint()
                chosen(path)
            }.show()
        }
        adw_action_row_add_suffix(row.of(), choose.widget)
        row.set("activatable-widget", choose)
        choose.named(title.text)
        return row
    }

    /// Whether a new password was typed twice, and alike. Otherwise shows a message.
    func isTypedTwice(_ password: Object, _ again: Object) -> Bool {
        guard isFilled(password) else {
            complain(Word.typePassword.text, at: password)
            return false
        }
        let (first, second) = (gtk_editable_get_text(password.opaque), gtk_editable_get_text(again.opaque))
        if let first, let second, strcmp(first, second) == 0 { return true }
        complain(Word.passwordsDiffer.text, at: again)
        return false
    }

    func isFilled(_ field: Object) -> Bool { gtk_editable_get_text(field.opaque).pointee != 0 }

    // MARK: Complaints

    /// Shows a message about a mistake; the field with the mistake is selected for another try.
    func complain(_ text: String, at field: Object? = nil) {
        forgetComplaint()
        complaint.set("label", text).set("visible", true)
        guard let field else {
            // A screen reader says what has the focus.
            gtk_widget_grab_focus(complaint.widget)
            return
        }
        wrong = field
        field.style("error")
        obscura_describe(field.pointer, text, 1)
        gtk_widget_grab_focus(field.widget)
        gtk_editable_select_region(field.opaque, 0, -1)
    }

    private func forgetComplaint() {
        complaint.set("visible", false)
        guard let field = wrong else { return }
        wrong = nil
        gtk_widget_remove_css_class(field.widget, "error")
        obscura_describe(field.pointer, "", 0)
    }

    // MARK: Running

    /// Runs a command. The fields cannot be used meanwhile.
    ///
    /// - Parameters:
    ///   - doing: the text of the progress bar.
    ///   - measure: the part that is done, and a text for it; nil while neither is known.
    ///   - done: of a command that succeeded. The form is closed then.
    ///   - failed: of another one; true if it has said so itself.
    func run(
        _ arguments: [String], secrets: [Object] = [], doing: String,
        measure: (() -> (Double, String)?)? = nil, failed: @escaping (CommandEnd) -> Bool = { _ in false },
        done: @escaping (CommandEnd) -> Void
    ) {
        forgetComplaint()
        setBusy(true, doing)
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
            setBusy(false, "")
            if end.status == 0 {
                close()
                return done(end)
            }
            if end.status == CommandEnd.interrupted { return close() }
            if !failed(end) { complain(end.message) }
        }
    }

    private func setBusy(_ isBusy: Bool, _ text: String) {
        self.isBusy = isBusy
        content.enable(!isBusy)
        accept.enable(!isBusy)
        progress.set("visible", isBusy).set("text", text)
        gtk_progress_bar_set_fraction(progress.opaque, 0)
    }

    /// Closing while a command runs interrupts it; its end closes the form.
    private func mustStay() -> Bool {
        if isBusy, let command {
            command.interrupt()
            return true
        }
        isClosed = true
        for field in secrets { field.replaceText("") }
        return false
    }
}

// MARK: Other dialogs

/// A message, with a button that closes it and, where something can be done, another one.
func alert(
    _ parent: Object, _ title: String, _ body: String, choice: String? = nil,
    _ chosen: @escaping () -> Void = {}
) {
    let dialog = Object(adw_message_dialog_new(parent.window, title, body))
    // GTK 4.8 has screen readers say the underscore of an access key here.
    func add(_ response: String, _ label: String) {
        adw_message_dialog_add_response(dialog.of(), response, label.filter { $0 != "_" })
    }
    add("close", (choice == nil ? Word.close : Word.cancel).text)
    adw_message_dialog_set_close_response(dialog.of(), "close")
    adw_message_dialog_set_default_response(dialog.of(), "close")
    if let choice {
        add("choice", choice)
        adw_message_dialog_set_response_appearance(dialog.of(), "choice", ADW_RESPONSE_DESTRUCTIVE)
        dialog.on("response::choice", chosen)
    }
    gtk_window_present(dialog.window)
}

/// Asks for a folder. Not by the dialog of GTK, which adds what is chosen to the desktop's list of recent files.
final class FolderForm: Form {
    private let chooser = Object(gtk_file_chooser_widget_new(GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER))
    private let remember = Object(gtk_check_button_new_with_mnemonic(Word.remember.text))
    private let chosen: (String, Bool) -> Void

    /// - Parameters:
    ///   - asksToRemember: whether there is a box to tick.
    ///   - chosen: gets the folder, and whether the box was ticked.
    init(
        _ parent: Object, _ title: String, asksToRemember: Bool = false,
        _ chosen: @escaping (String, Bool) -> Void
    ) {
        self.chosen = chosen
        super.init(parent, title: title, accept: Word.choose.text, height: 560)
        let home = g_file_new_for_path(g_get_home_dir())
        gtk_file_chooser_set_current_folder(chooser.opaque, home, nil)
        g_object_unref(UnsafeMutableRawPointer(home))
        append(chooser.set("vexpand", true))
        append(remember.set("visible", asksToRemember).named(Word.remember.text.filter { $0 != "_" }))
        window.set("default-width", 760).on("map") { [self] in
            soon { gtk_widget_child_focus(self.chooser.widget, GTK_DIR_TAB_FORWARD) }
        }
    }

    override func submit() {
        guard let file = gtk_file_chooser_get_file(chooser.opaque) else { return }
        defer { g_object_unref(UnsafeMutableRawPointer(file)) }
        guard let path = g_file_get_path(file) else { return }
        defer { g_free(path) }
        let isTicked = remember.flag("active")
        close()
        if let text = String(validatingCString: path) { chosen(text, isTicked) }
    }
}
