import Foundation
import LinuxIO
import TestSupport

extension Place {
    /// Where anyone could find a word, on the disk or among the processes, the mount itself left out: the places that
    /// have it in their name or content. Files count that are newer than this place's vault.
    func traces(of word: String) throws -> [String] {
        // From standard input, so that the word is in no argument. Large files are other tests' vaults.
        let script = """
            new() { find /tmp /var/tmp /dev/shm /run /var/log "$HOME" -xdev -newer V/obscura.vault "$@" 2>/dev/null; }
            { new | grep -F -f <(echo \(word))
              new -type f -size -1024k -print0 | xargs -0r grep -lsaF -f <(echo \(word)); } | sort -u
            """
        let files = try run(["/bin/bash"], script).lines
        let processes = try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { Int($0) != nil }
        return files + processes.flatMap { traces(of: word, inProcess: $0) }
            + mountTable().map(\.directory).filter { $0.contains(word) }
    }

    /// Searches all that any user may read; of the daemon also the memory that root may.
    private func traces(of word: String, inProcess process: String) -> [String] {
        let isOurs = daemon.map { "\($0)" == process } ?? false
        let directory = "/proc/\(process)"
        let names =
            ["cmdline", "comm", "status"] + (isOurs ? ["environ", "maps", "stack", "mountinfo"] : [])
        var found = names.filter { name in
            (kernelText("\(directory)/\(name)") ?? "").contains(word)
        }
        if isOurs {
            let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/fd")) ?? []
            found += (descriptors.map { "fd/" + $0 } + ["cwd", "exe"]).filter { name in
                let target = try? FileManager.default.destinationOfSymbolicLink(
                    atPath: "\(directory)/\(name)")
                return target?.contains(word) ?? false
            }
        }
        return found.map { "\(directory)/\($0)" }
    }
}
