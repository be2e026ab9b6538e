#!/usr/bin/env bash
# shellcheck disable=SC2016,SC2317 # shells of the machine expand the texts; `expect` and `within` call the functions
# Boots systemd in a fresh Debian with the package, in namespaces. Called by `scripts/machine`, as root:
# machine.bash DIRECTORY
set -euo pipefail

packages=$(readlink -f -- "$1")
root=$packages/../machine-root
log=$packages/machine.log
cgroup=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)/obscura-machine
failed=0
machine=

# Mounts and processes are of this script, and end with it.
if [ -z "${OBSCURA_MACHINE_TEST:-}" ]; then
    exec env OBSCURA_MACHINE_TEST=1 unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        "$0" "$@"
fi

say() { echo "machine: $*"; }
expect() {
    local what=$1
    shift
    if "$@" >>"$log" 2>&1; then say "ok: $what"; else
        say "FAILED: $what"
        failed=1
    fi
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }

# systemd as process 1. Its cgroups are below one of this host's, of which any hierarchy does.
boot() {
    mkdir -p "$cgroup"
    (
        echo "$BASHPID" >"$cgroup/cgroup.procs"
        exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child --propagation private bash -c '
            root=$1
            mount --bind "$root" "$root"
            mount -t proc proc "$root/proc"
            mount --rbind /sys "$root/sys"
            mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
            mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
            mount -t tmpfs tmpfs "$root/run"
            mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
            mount -t tmpfs -o mode=755 tmpfs "$root/dev"
            for device in null zero full random urandom tty fuse autofs; do
                if [ -e "/dev/$device" ]; then
                    touch "$root/dev/$device"
                    mount --bind "/dev/$device" "$root/dev/$device"
                fi
            done
            mkdir "$root/dev/pts" "$root/dev/shm"
            mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
            ln -s pts/ptmx "$root/dev/ptmx"
            ln -s /proc/self/fd "$root/dev/fd"
            hostname machine
            exec chroot "$root" /usr/bin/env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin \
                /lib/systemd/systemd --log-target=console' boot "$root"
    ) </dev/null >>"$log" 2>&1 &
    machine=$!
    expect "it boots" within 60 is_up
}

# at COMMAND…: runs it in the machine, for at most a minute.
at() {
    local leader
    leader=$(pgrep -P "$machine") || return 1
    timeout 60 nsenter -t "$leader" -p -m -u -i -C chroot "$root" /usr/bin/env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 container=lxc "$@"
}
# session TEXT: a login of the user, which lasts as long as the commands.
session() {
    at systemd-run --wait --pipe -q -p PAMName=login -p User=u -p WorkingDirectory=/home/u /bin/bash -c "$1"
}
is_up() { [[ $(at systemctl is-system-running --wait) = running ]]; }
# within SECONDS COMMAND…: whether it succeeds in that time.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}
is_off() { ! kill -0 "$machine" 2>/dev/null; }
# Systemd gives up on a mount or a service after 90 seconds.
power_off() {
    local begun
    begun=$(date +%s%N)
    at systemctl poweroff >>"$log" 2>&1 || true
    expect "it is off within 30 s, with files open" within 30 is_off
    say "off after $((($(date +%s%N) - begun) / 1000000)) ms"
    kill -9 "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
}
is_unmounted() { ! at findmnt -n "$1" >/dev/null; }
has_no_daemon() { ! pgrep -f "obscura --daemon .*$1" >/dev/null; }

: >"$log"
rm -rf -- "$root"
mkdir -p "$root"
debootstrap --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,procps bookworm "$root" \
    >"$packages/debootstrap.log" 2>&1 || {
    tail -5 "$packages/debootstrap.log" >&2
    exit 1
}
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -e /etc/apt/apt.conf.d ]; then cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"; fi
cp "$packages"/obscura_*_amd64.deb "$root/root/"
inside sh -c 'apt-get -y -q --no-install-recommends install /root/obscura_*_amd64.deb' >>"$log" 2>&1
mount -t proc proc "$root/proc"
inside useradd --create-home --shell /bin/bash --uid 1000 u
inside sh -c 'for home in /root /home/u; do printf "one\n" >$home/pw; chmod 600 $home/pw; done
    chown u:u /home/u/pw
    mkdir -p /srv/atboot /srv/onuse /srv/photos
    for name in AtBoot OnUse vault; do
        obscura create /srv/$name --spaces 1 --kdf-memory 8M --kdf-passes 1 --password-file /root/pw
    done
    echo "/srv/AtBoot /srv/atboot obscura passfile=/root/pw 0 0" >>/etc/fstab
    echo "/srv/OnUse /srv/onuse obscura passfile=/root/pw,noauto,x-systemd.automount 0 0" >>/etc/fstab' \
    >>"$log" 2>&1
# The units that mount.obscura(8) shows, as they are there.
unit_of_manual() {
    awk -v block="$1" '/^\.Bd/ { count++; shown = 1; next } /^\.Ed/ { shown = 0 } shown && count == block' \
        "$packages/../../Sources/obscura/mount.obscura.8" >"$root/etc/systemd/system/$2"
}
unit_of_manual 1 srv-photos.mount
unit_of_manual 2 srv-photos.automount
inside sh -c 'cp -p /root/pw /etc/obscura.key && systemctl enable srv-photos.automount' >>"$log" 2>&1
umount "$root/proc"
cp "$packages/../../Sources/obscura/obscura.docc/Resources/thunar.jpg" "$root/home/u/one.jpg"

unit='unit=$(systemd-escape --template obscura@.service --path ~/Vault)'
# Programs that stay behind with files open, of which one writes.
writer='exec 3>>open.bin; while head -c 100000 /dev/zero >&3; do sleep 0.05; done'

boot
expect "fstab's vault is mounted at boot" at findmnt -n -t fuse.obscura /srv/atboot
expect "it takes a photo" at sh -c 'mkdir /srv/atboot/albums/A && cp /home/u/one.jpg /srv/atboot/albums/A/'
if [ -e /dev/autofs ]; then
    expect "fstab's automount mounts on first use" at sh -c 'ls /srv/onuse/albums && findmnt -t fuse.obscura /srv/onuse'
    expect "so do the units of the manual page" at \
        sh -c 'ls /srv/photos/albums && findmnt -t fuse.obscura /srv/photos'
else
    say "left out: this kernel has no autofs"
fi
expect "systemd finds nothing wrong in the units" at \
    sh -c 'test -z "$(systemd-analyze verify /etc/systemd/system/srv-photos.* 2>&1 | tee -a /dev/stderr)"'
expect "a user's service mounts at login" session 'obscura create Vault --spaces 1 --kdf-memory 8M --kdf-passes 1 \
    --password-file pw; '"$unit"'; mkdir -p .config/systemd/user/$unit.d
    printf "[Service]\nEnvironment=OPTIONS=passfile=%%h/pw\n" >.config/systemd/user/$unit.d/local.conf
    systemctl --user daemon-reload && systemctl --user enable "$unit" && systemctl --user start "$unit" &&
    findmnt -n -t fuse.obscura Photos && mkdir Photos/albums/B && cp one.jpg Photos/albums/B/ &&
    systemd-run --user --working-directory="$HOME/Photos/albums/B" bash -c "'"$writer"'"; sleep 1'
expect "the logout unmounts, with files open" within 30 is_unmounted /home/u/Photos
expect "no process of it is left" within 5 has_no_daemon home/u/Vault
session 'sleep 3; systemd-run --user --working-directory="$HOME/Photos/albums/B" bash -c "'"$writer"'"; sleep 60' \
    >>"$log" 2>&1 &
expect "the next login mounts by itself" within 20 at findmnt -n -t fuse.obscura /home/u/Photos
at systemd-run --working-directory=/srv/atboot/albums/A bash -c "$writer" >>"$log" 2>&1
sleep 5
power_off

expect "nothing is left running" has_no_daemon Vault
boot
expect "fstab's vault is mounted again" at findmnt -n -t fuse.obscura /srv/atboot
expect "its photo is whole" at cmp /home/u/one.jpg /srv/atboot/albums/A/one.jpg
expect "what was written is there" at test -s /srv/atboot/albums/A/open.bin
expect "the user's photo is whole" session 'until [ -e Photos/albums ]; do sleep 0.2; done
    cmp one.jpg Photos/albums/B/one.jpg && test -s Photos/albums/B/open.bin'
power_off
mount -t proc proc "$root/proc"
for vault in /srv/AtBoot /srv/OnUse /srv/vault /home/u/Vault; do
    expect "nothing is damaged in $vault" inside obscura check "$vault" --password-file /root/pw
done
umount "$root/proc"
if [ "$failed" -ne 0 ]; then tail -60 "$log" >&2; fi
rm -rf -- "$root"
find "$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null || true
exit "$failed"
