#!/usr/bin/env bash
# shellcheck disable=SC2016 # the shell of the machine expands the texts
# Suspends a fresh Debian with the package to memory, in a virtual machine with a kernel of its own. Called by
# `scripts/machine --suspend`, as root: suspend.bash DIRECTORY
set -euo pipefail

packages=$(readlink -f -- "$1")
work=$packages/../machine-disk
root=$work/root
log=$packages/suspend.log

say() { echo "machine: $*"; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }

: >"$log"
rm -rf -- "$work"
mkdir -p "$root"
tidy() {
    umount -q "$root/proc" || true
    rm -rf -- "$work"
}
trap tidy EXIT
debootstrap --include=systemd,systemd-sysv,udev,dbus,dbus-user-session,libpam-systemd,polkitd,procps \
    bookworm "$root" >"$packages/debootstrap.log" 2>&1 || {
    tail -5 "$packages/debootstrap.log" >&2
    exit 1
}
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -e /etc/apt/apt.conf.d ]; then cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"; fi
cp "$packages"/obscura_*_amd64.deb "$root/root/"
mount -t proc proc "$root/proc"
inside sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends install linux-image-amd64 \
    initramfs-tools zstd /root/obscura_*_amd64.deb' >>"$log" 2>&1
inside useradd --create-home --shell /bin/bash --uid 1000 u
umount "$root/proc"
cp "$packages/../../Sources/obscura/obscura.docc/Resources/thunar.jpg" "$root/home/u/one.jpg"
cat >"$root/root/trial" <<'TRIAL'
#!/bin/bash
# Run by the machine at boot. Each line that begins with "ok: " or "FAILED: " is a result.
# Without a modem nothing would ever be connected.
stty -F /dev/ttyS1 clocal raw
exec >/dev/ttyS1 2>&1
expect() {
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; fi
}
session() { systemd-run --wait --pipe -q -p PAMName=login -p User=u -p WorkingDirectory=/home/u /bin/bash -c "$1"; }
# A session that goes on, as a desktop does while the lid is closed.
systemd-run -q --unit=stays -p PAMName=login -p User=u -p WorkingDirectory=/home/u /bin/bash -c 'sleep infinity'
mounted() { findmnt -n -t fuse.obscura /home/u/Photos >/dev/null; }
# suspend NAME: until the machine is woken from outside.
suspend() {
    local before=$(</sys/power/suspend_stats/success) end=$((SECONDS + 120))
    systemctl suspend
    until [ "$(</sys/power/suspend_stats/success)" -gt "$before" ]; do
        [ "$SECONDS" -lt "$end" ] || break
        sleep 0.2
    done
    expect "$1: the machine slept" [ "$(</sys/power/suspend_stats/success)" -gt "$before" ]
}
cd /home/u
session 'echo one >pw; chmod 600 pw; mkdir Photos
    obscura create Vault --spaces 1 --kdf-memory 8M --kdf-passes 1 --password-file pw
    obscura mount Vault Photos --password-file pw; mkdir Photos/albums/A; cp one.jpg Photos/albums/A/'
expect "mounted" mounted
systemd-run -q --uid=u --working-directory=/home/u/Photos/albums/A bash -c \
    'exec 3>>open.bin; while head -c 100000 /dev/zero >&3; do sleep 0.05; done'
sleep 2
suspend "as it is"
expect "the mount was gone when it woke" eval '! mounted'
expect "its process as well" eval '! pgrep -f "obscura --daemon"'
journalctl -b --no-pager -o short-monotonic | grep -i -E 'obscura|PM: suspend|systemd-sleep' | tail -12
session 'obscura check Vault --password-file pw; obscura mount Vault Photos --password-file pw'
expect "the photo is whole" cmp one.jpg <(session 'cat Photos/albums/A/one.jpg')
expect "what was written is there" session 'test -s Photos/albums/A/open.bin'
session 'obscura unmount Photos; obscura mount Vault Photos -o suspend=keep --password-file pw'
suspend "suspend=keep"
expect "the mount is still there" mounted
expect "and its photo" cmp one.jpg <(session 'cat Photos/albums/A/one.jpg')
session 'obscura unmount Photos'
expect "nothing is damaged" session 'obscura check Vault --password-file pw'
echo "trial ended"
systemctl poweroff
TRIAL
chmod 755 "$root/root/trial"
cat >"$root/etc/systemd/system/trial.service" <<'UNIT'
[Unit]
After=multi-user.target dbus.service systemd-logind.service

[Service]
ExecStart=/root/trial

[Install]
WantedBy=multi-user.target
UNIT
ln -s ../trial.service "$root/etc/systemd/system/multi-user.target.wants/trial.service"
echo "/dev/vda / ext4 defaults 0 1" >"$root/etc/fstab"
cp "$root"/boot/vmlinuz-* "$work/kernel"
cp "$root"/boot/initrd.img-* "$work/initrd"
mkfs.ext4 -q -d "$root" "$work/disk" 4G
# In emulation: a machine that is itself virtual may have no working /dev/kvm. It is woken from outside, as by its lid.
(while sleep 15 && echo system_wakeup; do :; done) |
    timeout 1500 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 1 -nodefaults -display none -monitor stdio \
        -drive "file=$work/disk,format=raw,if=virtio" -kernel "$work/kernel" -initrd "$work/initrd" \
        -append "root=/dev/vda rw console=ttyS0 quiet" -serial "file:$work/console" -serial "file:$work/results" \
        >/dev/null || true
cat "$work/console" "$work/results" | tr -d '\r' >>"$log"
grep -a -E '^(ok|FAILED): ' "$log" | while read -r line; do say "$line"; done
if ! grep -a -q '^trial ended' "$log" || grep -a -q '^FAILED: ' "$log"; then
    tail -40 "$log" >&2
    exit 1
fi
