/// The candidate with the fewest typing errors between it and `word`.
///
/// Candidates that begin with `word` come before all others: `unm` means `unmount`. Of several equally near, one with
/// the same first letter wins, as people seldom mistype it; else the first.
func nearestWord(to word: String, among candidates: [String]) -> String? {
    let typed = Array(word.lowercased().utf8)
    func cost(_ candidate: String) -> Int {
        let known = Array(candidate.utf8)
        if typed.count > 1, known.starts(with: typed) { return 0 }
        return 2 * editDistance(typed, known) + (typed.first == known.first ? 0 : 1)
    }
    return candidates.map { (word: $0, cost: cost($0)) }.min { $0.cost < $1.cost }?.word
}

/// The nearest candidate that `word` may be a slip of: a beginning of it, more than it, or with one error in three
/// letters at most. Nil if there is none.
func wordNear(to word: String, among candidates: [String]) -> String? {
    let typed = Array(word.lowercased().utf8)
    return nearestWord(
        to: word,
        among: candidates.filter { candidate in
            let known = Array(candidate.utf8)
            return typed.count > 1 && known.starts(with: typed)
                || known.count > 3 && typed.starts(with: known)
                || editDistance(typed, known) <= typed.count / 3
        })
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours, each 1.
func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforePrevious = [Int](repeating: 0, count: b.count + 1)
    var previous = Array(0...b.count)
    for i in 0..<a.count {
        var current = [i + 1] + [Int](repeating: 0, count: b.count)
        for j in 0..<b.count {
            let substitution = previous[j] + (a[i] == b[j] ? 0 : 1)
            current[j + 1] = min(substitution, previous[j + 1] + 1, current[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                current[j + 1] = min(current[j + 1], beforePrevious[j - 1] + 1)
            }
        }
        beforePrevious = previous
        previous = current
    }
    return previous[b.count]
}
