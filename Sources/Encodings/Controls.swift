/// Whether a character is one of the control codes C0 and C1, or DEL, which could end a line or command a terminal.
package func isControlCode(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
}

/// The text with each control code, which names may hold, replaced by `?`.
package func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { isControlCode($0) ? "?" : $0 }))
}
