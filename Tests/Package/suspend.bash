#!/usr/bin/env bash
# shellcheck disable=SC2016 # the shell of the machine expands the texts
# Suspends a fresh Debian with the package to memory, in a virtual machine with a kernel of its own. Called by
# `scripts/machine --suspend`, as root: suspend.bash DIRECTORY [--without-polkit]
set -euo pipefail
# shellcheck source=Tests/Package/virtual.bash
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/virtual.bash"

log=$packages/suspend.log
polkit=(polkitd)
if [ "${2:-}" = --without-polkit ]; then polkit=(); fi

: >"$log"
begin_work
make_root "$log" "${polkit[@]}" "$packages"/obscura_*_amd64.deb
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
gone() { ! mounted && ! pgrep -f "obscura --daemon" >/dev/null; }
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
# The mount does not wait until its delay of a sleep is granted: on this machine polkit is only started for that.
is_delayed() { systemd-inhibit --list --no-legend --no-pager | grep -q obscura; }
if [ -e /usr/lib/polkit-1/polkitd ]; then
    begun=$(date +%s%N)
    for _ in {1..300}; do is_delayed && break || sleep 0.1; done
    expect "a sleep would be delayed, $((($(date +%s%N) - begun) / 1000000)) ms after the mount" is_delayed
fi
sleep 2
suspend "as it is"
if [ -e /usr/lib/polkit-1/polkitd ]; then
    expect "the mount and its process were gone before it slept" [ "$(</run/at-sleep)" = gone ]
else
    # Nothing delays the sleep: the unmount may end when the machine wakes.
    echo "note: when it slept the mount was $(</run/at-sleep)"
    for _ in {1..50}; do gone && break || sleep 0.2; done
fi
expect "both were gone when it woke" gone
journalctl -b --no-pager -o short-monotonic | grep -i -E 'obscura|PM: suspend|systemd-sleep|logind' | tail -20
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
# What it does last before it sleeps.
cat >"$root/usr/lib/systemd/system-sleep/look" <<'LOOK'
#!/bin/sh
[ "$1" = pre ] || exit 0
# Without a place findmnt says 0 whatever it finds.
if pgrep -f "obscura --daemon" >/dev/null || findmnt -n -t fuse.obscura | grep -q .; then echo open; else echo gone; fi \
    >/run/at-sleep
LOOK
chmod 755 "$root/root/trial" "$root/usr/lib/systemd/system-sleep/look"
run_at_boot
make_disk 4G
name_machine
# It is woken from outside, as by its lid.
(while sleep 15 && echo system_wakeup; do :; done) |
    timeout 1500 "${machine[@]}" -m 1024 -smp 1 -monitor stdio -serial "file:$work/results" >/dev/null || true
tell_results "$log"
