#!/usr/bin/env bash
# shellcheck disable=SC2016 # the shell of the machine expands the texts
# Vaults on the file systems of sticks and memory cards, in a virtual machine: exFAT and FAT32 by the drivers of Debian's
# kernel, NTFS by ntfs-3g, because that kernel has no driver for it. Called by `scripts/machine --disks`, as root:
# disks.bash DIRECTORY [exfat|vfat|ntfs-3g]…
set -euo pipefail
# shellcheck source=Tests/Package/virtual.bash
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/virtual.bash"

log=$packages/disks.log
kinds=${*:2}
: >"$log"
begin_work
make_root "$log" exfatprogs dosfstools ntfs-3g dmsetup python3 "$packages"/obscura_*_amd64.deb
cp "$packages/../../Sources/obscura/obscura.docc/Resources/thunar.jpg" "$root/home/u/one.jpg"
echo "${kinds:-exfat vfat ntfs-3g}" >"$root/root/kinds"
cat >"$root/root/trial" <<'TRIAL'
#!/bin/bash
# Run by the machine at boot. Each line that begins with "ok: " or "FAILED: " is a result.
# Without a modem nothing would ever be connected.
stty -F /dev/ttyS1 clocal raw
exec >/dev/ttyS1 2>&1
expect() {
    local what="$kind, $1"
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; fi
}
user() { runuser -u u -- env HOME=/home/u XDG_RUNTIME_DIR=/run/u bash -c "cd /home/u; $1"; }
install -d -o u -m 700 /run/u
kdf='--kdf-memory 8M --kdf-passes 1'
user 'umask 077; echo one >one; echo two >two; cat two one >new; cat one two >both; mkdir from Photos
    for i in {1..8}; do (cat one.jpg; head -c 100000 /dev/urandom) >from/p$i.jpg; done
    head -c 30000000 /dev/urandom >from/big.bin'

# As a desktop mounts a stick for its user.
declare -A make=([exfat]='mkfs.exfat' [vfat]='mkfs.vfat -F 32' [ntfs-3g]='mkfs.ntfs -F -f -q')
declare -A options=([exfat]=iocharset=utf8 [vfat]=utf8=1,flush,shortname=mixed [ntfs-3g]=big_writes)
stick() { mount -t "$kind" -o "uid=1000,gid=1000,${options[$kind]}$1" "$2" "$disk"; }
# new_stick SIZE
new_stick() {
    umount -q "$disk"
    rm -f /stick
    truncate -s "$1" /stick
    ${make[$kind]} /stick >/dev/null 2>&1
    stick ,loop /stick
}
create() { user "obscura create $disk/V $kdf --password-file one $1 2>&1 | tail -1; test \${PIPESTATUS[0]} = 0"; }
opened() { user "obscura mount $disk/V Photos --password-file ${1:-one}"; }
closed() { user 'obscura unmount Photos'; }
whole() { user "obscura check $disk/V --password-file ${1:-one} >/dev/null 2>&1"; }
same() { user 'for f in from/p*; do cmp "$f" "Photos/albums/A/${f#from/}" || exit 1; done'; }
synced() { user 'sha256sum -c --quiet synced'; }
killed() {
    pkill -9 -f 'obscura --daemon'
    sleep 1
    user 'fusermount3 -uzq Photos'
}
# fill BYTES: files of so many bytes until there is no room, of which those that are whole are in `sums`.
fill() {
    user "mkdir -p Photos/albums/F; for i in {1..200}; do
            head -c $1 /dev/urandom >Photos/albums/F/\$i 2>/dev/null || { rm Photos/albums/F/\$i; break; }
        done
        sha256sum Photos/albums/F/* >sums; test \$i -gt 5 -a \$i -lt 200"
}
kept() { user 'sha256sum -c --quiet sums'; }

for kind in $(</root/kinds); do
    disk=/media/$kind
    mkdir -p "$disk"
    if ! new_stick 500M; then
        echo "note: $kind cannot be mounted"
        continue
    fi
    expect "created" create '--spaces 1'
    expect "mounted" opened
    user 'mkdir Photos/albums/A; cp from/* Photos/albums/A/'
    user 'truncate -s 300M Photos/albums/A/hole; printf x >>Photos/albums/A/hole; sync Photos/albums/A/hole'
    expect "a second mount is refused" user "obscura mount $disk/V Photos --password-file one; test \$? = 5"
    expect "unmounted" closed
    expect "mounted again" opened
    expect "its photos are the same" same
    expect "they have a day" user 'ls Photos/moments/*/p8.jpg >/dev/null'
    user 'cat >sync.py; python3 sync.py' <<'SYNCED'
import hashlib, os
with open("synced", "w") as sums:
    album = os.open("Photos/albums/A", os.O_RDONLY)
    for number in range(20):
        name, data = f"Photos/albums/A/{number}.bin", os.urandom(700_000)
        file = os.open(name, os.O_CREAT | os.O_WRONLY)
        os.write(file, data)
        os.fsync(file)
        os.fsync(album)
        sums.write(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
SYNCED
    # A power cut: what the stick has by now.
    cp --sparse=always /stick /cut
    killed
    expect "mounted after a kill" opened
    expect "what was synced is there" synced
    closed
    expect "nothing is damaged" whole
    umount "$disk"
    mv /cut /stick
    expect "a stick after a power cut is mounted" stick ,loop /stick
    expect "and the vault" opened
    expect "what was synced before the cut is there" synced
    closed
    expect "nothing is damaged by it" whole

    new_stick 300M
    create '--spaces 1' >/dev/null
    opened
    expect "filled" fill 10000000
    expect "something is removed" user 'rm Photos/albums/F/{1,2,3}; sed -i "/F\/[123]$/d" sums'
    expect "and has made room" user 'head -c 9000000 /dev/urandom >Photos/albums/F/1; sync Photos/albums/F/1'
    closed
    opened
    expect "all others are whole" kept
    closed
    expect "nothing is damaged, full" whole

    new_stick 700M
    expect "two spaces created" create '--spaces 2 --size 100M'
    expect "the second one put to use" user "obscura space add $disk/V --password-stdin <new"
    opened
    expect "one filled" fill 6000000
    killed
    expect "the other mounted after a kill" opened two
    user 'mkdir Photos/albums/A; cp from/p* Photos/albums/A/'
    closed
    expect "the first one mounted" opened
    expect "its files are whole" kept
    closed
    expect "grown" user "obscura grow $disk/V 150M 2>/dev/null"
    expect "both are sound" user "for w in one two; do obscura check $disk/V --password-file \$w >/dev/null 2>&1 || exit; done"
    rm -rf /home/u/Copy
    expect "copied to a disk" user "obscura backup $disk/V Copy 2>/dev/null"
    rm -rf "$disk/V"
    expect "and back" user "obscura backup Copy $disk/V 2>/dev/null"
    opened two
    expect "with its photos" same
    closed
    rm -rf "$disk/V"
    expect "more than the stick has room for is refused" user "obscura create $disk/V $kdf --password-file one \
        --spaces 2 --size 2G 2>&1; test \$? != 0 -a ! -e $disk/V"

    # Of all file systems here only FAT has a limit below that.
    new_stick 12G
    if [ "$kind" = vfat ]; then
        expect "files of more than 4 GiB are refused" user "obscura create $disk/V $kdf --password-file one \
            --spaces 2 --size 2200M 2>&1; test \$? != 0 -a ! -e $disk/V"
        create '--spaces 2 --size 300M' >/dev/null
        expect "to grow beyond them too" user "obscura grow $disk/V 2200M 2>&1; test \$? != 0"
        expect "which has damaged nothing" whole
        rm -rf "$disk/V"
    fi

    create '--spaces 1' >/dev/null
    umount "$disk"
    loop=$(losetup -f --show /stick)
    sectors=$(blockdev --getsz "$loop")
    dmsetup create stick --table "0 $sectors linear $loop 0"
    stick '' /dev/mapper/stick
    opened
    user 'mkdir Photos/albums/A; cp from/p* Photos/albums/A/; sync Photos/albums/A/* Photos/albums/A'
    # As if it were pulled out.
    dmsetup suspend --noflush --nolockfs stick
    dmsetup load stick --table "0 $sectors error"
    dmsetup resume stick
    expect "nothing more is taken once it was pulled" user '! cp from/big.bin Photos/albums/A/ 2>/dev/null ||
        ! sync Photos/albums/A/big.bin 2>/dev/null'
    user 'timeout 60 obscura unmount Photos 2>&1'
    if pgrep -f 'obscura --daemon' >/dev/null; then killed; fi
    umount -l "$disk"
    dmsetup remove --retry stick
    losetup -d "$loop"
    expect "put in again" stick ,loop /stick
    expect "it is mounted" opened
    expect "what was synced before is there" same
    closed
    expect "nothing is damaged, pulled" whole
    umount "$disk"
done
echo "trial ended"
systemctl poweroff
TRIAL
chmod 755 "$root/root/trial"
run_at_boot
# Its sticks have at most 12 GiB, mostly holes.
make_disk 20G
name_machine
timeout 3600 "${machine[@]}" -m 1500 -smp 1 -monitor none -serial "file:$work/results" >/dev/null || true
tell_results "$log"
