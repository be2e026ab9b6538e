/// Whether a directory of that name may be made at the root.
package func isTrashName(_ name: [UInt8]) -> Bool {
    guard name.starts(with: trashPrefix) else { return false }
    let digits = name.dropFirst(trashPrefix.count)
    guard let uid = UInt32(String(decoding: digits, as: UTF8.self)) else { return false }
    return Array(String(uid).utf8) == Array(digits)
}

package let trashPrefix = Array(".Trash-".utf8)
