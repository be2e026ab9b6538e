import TestSupport
import TestThreads
import Testing

/// *Commands* of the contract with paths that are not UTF-8: paths are bytes to Linux.
@Suite("Commands: arguments that are not UTF-8", .serialized, .waiting) struct ArgumentBytesTests {
    @Test func `every command takes them`() throws {
        let place = try Place()
        try place.source("a.jpg", Photo().bytes)
        try place.shell(
            """
            o() { '\(obscura)' "$@"; }; E=$'\\xe9'; mkdir "p$E"; cd "p$E"; P=$PWD
            echo one >"pass$E"; chmod 600 "pass$E"; with=(--password-file "pass$E")
            o create "V$E" --spaces=1 --kdf-memory=8M --kdf-passes=1 "${with[@]}"
            cp ../source/a.jpg "a$E.jpg"; cp ../source/a.jpg b.jpg; printf x >>b.jpg
            o import "V$E" "a$E.jpg" --album "al$E" --quiet "${with[@]}"
            mkdir "D$E"; o mount "V$E" "D$E" -o "passfile=$P/pass$E"
            trap 'fusermount3 -u "D$E" || true' ERR
            test -e "D$E/albums/al$E/a$E.jpg"; test -e "D$E/moments/2019-03-04/a$E.jpg"
            o status "D$E" >/dev/null; o status "D$E" --json | grep -q 'D\\\\\\\\xe9'
            mkdir "E$E"; ! o mount "V$E" "E$E" "${with[@]}" 2>error; grep -q 'V\\\\xe9' error
            o trash "D$E" list | grep -q empty
            rm "D$E/moments/2019-03-04/a$E.jpg"; o trash "D$E" restore "a$E.jpg" >/dev/null
            o unmount "D$E"; ! mountpoint -q "D$E"
            o info "V$E" >/dev/null; o check "V$E" "${with[@]}"
            o export "V$E" "X$E" --quiet "${with[@]}" >/dev/null; test -e "X$E/albums/al$E/a$E.jpg"
            o backup "V$E" "B$E" --quiet >/dev/null; o info "B$E" >/dev/null
            o header export "V$E" "H$E" >/dev/null; test -s "H$E"; o header restore "V$E" "H$E" >/dev/null
            o create "W$E" --spaces=2 --size=48M --kdf-memory=8M --kdf-passes=1 "${with[@]}"
            o grow "W$E" 64M >/dev/null
            head -c 100 /dev/urandom >"key$E"
            echo one >two; echo two >>two; chmod 600 two
            o passwd "V$E" --password-file two --new-key-file "key$E" >/dev/null
            sed -n 2p two >pass2; chmod 600 pass2
            o check "V$E" --password-file pass2 --key-file "key$E"
            mkdir "New$E"; o mount "V$E" "New$E" --password-file pass2 --key-file "key$E"; o unmount "New$E"
            ! find .. | LC_ALL=C grep $'\\xf4'
            """)
    }
}
