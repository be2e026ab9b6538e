#!/usr/bin/env bash
# shellcheck disable=SC2016 # the shell of the other root expands them
# Installs the packages of a directory in a fresh Debian, does the main job there as an ordinary user, upgrades with a
# vault mounted, and purges. Called by `scripts/package --test`, as root: package.bash DIRECTORY VERSION
set -euo pipefail

packages=$(readlink -f -- "$1") version=$2
root=$packages/../package-root
failed=0

# Mounts and processes are of this script, and end with it.
if [ -z "${OBSCURA_PACKAGE_TEST:-}" ]; then
    exec env OBSCURA_PACKAGE_TEST=1 unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$0" "$@"
fi

say() { echo "package: $*"; }
expect() {
    local what=$1
    shift
    if "$@"; then say "ok: $what"; else
        say "FAILED: $what"
        failed=1
    fi
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
as_user() { inside setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/u sh -c "cd; $1"; }

rm -rf -- "$root"
mkdir -p "$root"
debootstrap --variant=minbase bookworm "$root" >"$packages/debootstrap.log" 2>&1 || {
    tail -5 "$packages/debootstrap.log" >&2
    exit 1
}
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir -p "$root/packages"
mount --bind "$packages" "$root/packages"
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -e /etc/apt/apt.conf.d ]; then cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"; fi
# As on every installed Debian.
ln -sf ../proc/self/mounts "$root/etc/mtab"
inside useradd --create-home --uid 1000 u
find "$root" -xdev -path "$root/packages" -prune -o -path "$root/var" -prune -o -printf '/%P\n' | sort >"$packages/before"

begun=$(date +%s%N)
inside apt-get -y -q --no-install-recommends install /packages/obscura_0.9.9_amd64.deb >"$packages/apt.log" 2>&1 || {
    tail -20 "$packages/apt.log" >&2
    exit 1
}
say "installed with what it needs in $((($(date +%s%N) - begun) / 1000000)) ms, downloads included"

as_user 'printf "one\n" >pw; chmod 600 pw'
begun=$(date +%s%N)
as_user 'obscura mount --create --spaces 1 --kdf-memory 8M --kdf-passes 1 --password-file pw Vault Photos >log 2>&1' || {
    cat "$root/home/u/log" >&2
    exit 1
}
cp "$packages/../../Sources/obscura/obscura.docc/Resources/thunar.jpg" "$root/home/u/one.jpg"
as_user 'mkdir -p Photos/albums/Trip && cp one.jpg Photos/albums/Trip/'
say "first photo after $((($(date +%s%N) - begun) / 1000000)) ms"
expect "the photo is in a day" as_user 'cmp one.jpg Photos/moments/*/one.jpg'
expect "its thumbnail is made, by the worker in /usr/lib/obscura" as_user \
    'test "$(head -c 2 Photos/albums/Trip/.thumbs/one.jpg | od -An -tx1 | tr -d " ")" = ffd8'
expect "every way to start it finds its helpers" as_user \
    'for p in obscura /usr/bin/obscura /usr/lib/obscura/obscura; do $p speed | grep -q "^Thumbnails .* a second" || exit 1; done'
expect "mount(8) finds its helper" inside sh -c 'test -x /sbin/mount.obscura && test -x /sbin/mount.fuse.obscura'

expect "no program names a folder in which it was built" sh -c \
    "! grep -rlaE '/home/|/root/|$(readlink -f "$packages/../..")' '$root/usr/lib/obscura'"

inside apt-get -y -q --no-install-recommends install "/packages/obscura_${version}_amd64.deb" >>"$packages/apt.log" 2>&1
expect "the upgrade leaves the mount in use" as_user 'cp one.jpg Photos/albums/Trip/two.jpg && cmp one.jpg Photos/albums/Trip/two.jpg'
expect "the old process makes thumbnails still" as_user \
    'test "$(head -c 2 Photos/albums/Trip/.thumbs/512/two.jpg | od -An -tx1 | tr -d " ")" = ffd8'
expect "the new program unmounts it" as_user 'obscura unmount Photos'
expect "the new program is $version" as_user "test \"\$(obscura --version)\" = 'obscura $version'"
expect "the vault opens with it" as_user \
    'obscura mount --password-file pw Vault Photos && cmp one.jpg Photos/albums/Trip/two.jpg && obscura unmount Photos'
expect "a wrong password is status 4" as_user 'echo two >bad; chmod 600 bad; obscura mount --password-file bad Vault Photos; test $? = 4'
expect "completions are there" inside sh -c \
    'test -s /usr/share/bash-completion/completions/obscura && test -s /usr/share/zsh/vendor-completions/_obscura'

expect "nothing of Ceph is installed, and a vault there says what it takes" as_user \
    '! ls /usr/lib/*/librados.so.2 2>/dev/null && obscura info ceph:photos/family 2>&1 | grep -q "install obscura-ceph"'
inside apt-get -y -q --no-install-recommends install "/packages/obscura-ceph_${version}_amd64.deb" >>"$packages/apt.log" 2>&1
expect "with obscura-ceph it looks for the cluster" as_user \
    'obscura info ceph:photos/family 2>&1 | grep -q "cannot reach pool photos"'
for package in obscura-ceph obscura; do inside apt-get -y -q purge $package; done >>"$packages/apt.log" 2>&1
inside apt-get -y -q --purge autoremove >>"$packages/apt.log" 2>&1
rm -rf "${root:?}/home/u"
find "$root" -xdev -path "$root/packages" -prune -o -path "$root/var" -prune -o -printf '/%P\n' | sort >"$packages/after"
expect "purged, nothing of it is left" test -z "$(comm -13 "$packages/before" "$packages/after" | grep -i obscura)"

umount -l "$root/packages" "$root/dev" "$root/proc"
rm -rf -- "$root" "$packages/before" "$packages/after"
exit "$failed"
