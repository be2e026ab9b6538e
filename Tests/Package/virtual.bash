# A Debian for a virtual machine with a kernel of its own: sourced by the tests here, which run as root.
# shellcheck shell=bash disable=SC2034 # used by those that source this

packages=$(readlink -f -- "$1")
work=$packages/../machine-disk
# The machine's, while it is not a disk yet.
root=$work/root

say() { echo "machine: $*"; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }

end_work() {
    if [ -d "$root" ]; then umount -q "$root/proc" "$root" || true; fi
    rm -rf -- "$work"
}

# begin_work: what is made here goes with the shell.
begin_work() {
    rm -rf -- "$work"
    mkdir -p "$root"
    trap end_work EXIT
}

# make_root LOG PACKAGE…: a fresh Debian with a kernel, these packages (files where the name ends in .deb), and a user
# u. Output is added to the log.
make_root() {
    local log=$1 package installed=()
    shift
    debootstrap --include=systemd,systemd-sysv,udev,dbus,dbus-user-session,libpam-systemd,procps \
        bookworm "$root" >"$packages/debootstrap.log" 2>&1 || {
        tail -5 "$packages/debootstrap.log" >&2
        exit 1
    }
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    if [ -e /etc/apt/apt.conf.d ]; then cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"; fi
    for package in "$@"; do
        case $package in
        *.deb)
            cp "$package" "$root/root/"
            installed+=("/root/${package##*/}")
            ;;
        *) installed+=("$package") ;;
        esac
    done
    # Only what this machine's disk takes: all drivers of disks are packed here and unpacked there, in emulation.
    mkdir -p "$root/etc/initramfs-tools/conf.d" "$root/usr/share/initramfs-tools/modules.d"
    printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/small"
    printf '%s\n' virtio_pci virtio_blk ext4 crc32c_generic >"$root/usr/share/initramfs-tools/modules.d/disk"
    mount -t proc proc "$root/proc"
    inside env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends install linux-image-amd64 \
        initramfs-tools zstd "${installed[@]}" >>"$log" 2>&1 || {
        tail -20 "$log" >&2
        exit 1
    }
    inside apt-get clean
    inside useradd --create-home --shell /bin/bash --uid 1000 u
    umount "$root/proc"
    echo "/dev/vda / ext4 defaults 0 1" >"$root/etc/fstab"
}

# make_disk SIZE: makes `disk`, `kernel` and `initrd` of the root.
make_disk() {
    cp "$root"/boot/vmlinuz-* "$work/kernel"
    cp "$root"/boot/initrd.img-* "$work/initrd"
    mkfs.ext4 -q -d "$root" "$work/disk" "$1"
    rm -rf -- "$root"
}

# name_machine: the words that start a machine with them. In emulation: a machine that is itself virtual may have no
# working /dev/kvm.
name_machine() {
    machine=(qemu-system-x86_64 -accel tcg -cpu max -nodefaults -display none
        -drive "file=$work/disk,format=raw,if=virtio" -kernel "$work/kernel" -initrd "$work/initrd"
        -append "root=/dev/vda rw console=ttyS0 quiet" -serial "file:$work/console")
}

# run_at_boot: the machine runs its /root/trial, which tells results on the second serial line.
run_at_boot() {
    cat >"$root/etc/systemd/system/trial.service" <<'UNIT'
[Unit]
After=multi-user.target dbus.service systemd-logind.service

[Service]
ExecStart=/root/trial

[Install]
WantedBy=multi-user.target
UNIT
    ln -s ../trial.service "$root/etc/systemd/system/multi-user.target.wants/trial.service"
}

# tell_results LOG: what the trial told, which is added to the log. Ends the shell if some of it is wrong.
tell_results() {
    cat "$work/console" "$work/results" | tr -d '\r' >>"$1"
    grep -a -E '^(ok|FAILED|note): ' "$1" | while read -r line; do say "$line"; done
    if ! grep -a -q '^trial ended' "$1" || grep -a -q '^FAILED: ' "$1"; then
        tail -40 "$1" >&2
        exit 1
    fi
}
