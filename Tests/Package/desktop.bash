#!/usr/bin/env bash
# Has a fresh Debian with a desktop and the packages, in a virtual machine, used by its keyboard alone. Called by
# `scripts/machine --desktop`, as root: desktop.bash DIRECTORY
set -euo pipefail
# shellcheck source=Tests/Package/virtual.bash
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/virtual.bash"

log=$packages/desktop.log
pictures=$packages/desktop-pictures
sources=$(readlink -f -- "$packages/../..")

# What is in Debian's task of an Xfce desktop, but for office programs and the like; no terminal. What asks the machine
# from outside are its guest agent and xprop. On most desktops fuse3 is there with gvfs-fuse: installing it makes the
# initramfs anew, which takes more than six minutes in emulation.
desktop=(xserver-xorg-core xserver-xorg-input-libinput lightdm lightdm-gtk-greeter xfce4-session xfwm4 xfce4-panel
    xfdesktop4 xfce4-settings xfce4-appfinder xfce4-notifyd xfconf thunar thunar-volman tumbler ristretto gvfs
    gvfs-backends udisks2 polkitd pkexec mate-polkit dbus-x11 xdg-user-dirs xdg-utils at-spi2-core
    fonts-dejavu-core librsvg2-common tango-icon-theme qemu-guest-agent x11-utils fuse3)

# photo FILE NUMBER: hills under a sky, of colours that the number tells.
photo() {
    local hue=$(($2 * 47 % 360))
    convert -size 1600x1200 -seed "$2" "gradient:hsl($hue,60%,75%)-hsl($(((hue + 40) % 360)),40%,92%)" \
        -fill "hsl($hue,35%,45%)" \
        -draw "path 'M 0,800 Q 400,$((450 + $2 * 40 % 300)) 800,760 T 1600,700 V 1200 H 0 Z'" \
        -fill "hsl($(((hue + 90) % 360)),40%,32%)" -draw "path 'M 0,1000 Q 500,700 900,960 T 1600,900 V 1200 H 0 Z'" \
        -attenuate 0.15 +noise Gaussian -quality 88 "$1"
}

# What the image is made of, but for the packages themselves: what they depend on is in it.
image=$packages/../machine-image
key=$({
    cat "${BASH_SOURCE[0]}" "$sources/Tests/Package/virtual.bash"
    for package in "$packages"/obscura_*_amd64.deb "$packages"/obscura-desktop_*_amd64.deb; do
        dpkg-deb --field "$package" Pre-Depends Depends Recommends
    done
} | sha256sum | cut -d ' ' -f 1)

# make_image: a disk that was never started, in $image.
make_image() {
    local number
    make_root "$log" "${desktop[@]}"
    # In apt's cache, because the machine has no network.
    cp "$packages"/obscura_*_amd64.deb "$packages"/obscura-desktop_*_amd64.deb "$root/root/"
    inside sh -c 'apt-get -y -q --download-only install /root/*.deb && rm /root/*.deb' >>"$log" 2>&1
    # Xfce has no agent of its own that asks for passwords: MATE's is started there too.
    sed -i '/^OnlyShowIn=/d' "$root/etc/xdg/autostart/polkit-mate-authentication-agent-1.desktop"
    inside usermod --append --groups sudo u
    echo u:tree | inside chpasswd

    mkdir -p "$root/home/u/Downloads" "$root/home/u/Pictures/Holiday" "$root/home/u/Pictures/Present"
    for number in 1 2 3 4 5 6 7 8; do
        photo "$root/home/u/Pictures/Holiday/IMG_2026061${number}_101500.jpg" "$number"
    done
    for number in 1 2 3; do
        photo "$root/home/u/Pictures/Present/IMG_2026092${number}_173000.jpg" "$((number + 20))"
    done
    inside chown -R u:u /home/u
    mkdir -p "$root/etc/lightdm/lightdm.conf.d" "$root/etc/X11/xorg.conf.d"
    printf '[Seat:*]\nautologin-user=u\nautologin-session=xfce\n' >"$root/etc/lightdm/lightdm.conf.d/autologin.conf"
    # Neither a processor that draws for a graphics card, nor a screen that goes dark: this machine is slow.
    cat >"$root/etc/X11/xorg.conf.d/slow.conf" <<'XORG'
Section "Device"
    Identifier "Card"
    Driver "modesetting"
    Option "AccelMethod" "none"
EndSection
Section "ServerFlags"
    Option "BlankTime" "0"
    Option "StandbyTime" "0"
    Option "SuspendTime" "0"
    Option "OffTime" "0"
EndSection
XORG
    # A cursor that blinks is a screen that is never still.
    sed -i 's/\(name="CursorBlink" type="bool" value=\)"true"/\1"false"/' \
        "$root/etc/xdg/xfce4/xfconf/xfce-perchannel-xml/xsettings.xml"
    printf 'GSK_RENDERER=cairo\nLIBGL_ALWAYS_SOFTWARE=1\n' >>"$root/etc/environment"

    # The agent writes what it is asked into the journal, where traces are looked for.
    mkdir -p "$root/etc/systemd/system/qemu-guest-agent.service.d"
    printf '[Service]\nLogLevelMax=notice\n' >"$root/etc/systemd/system/qemu-guest-agent.service.d/quiet.conf"

    make_disk 8G
    rm -rf -- "$image"
    mkdir "$image"
    mv "$work/disk" "$work/kernel" "$work/initrd" "$image/"
    echo "$key" >"$image/key"
}

: >"$log"
begin_work
# It is kept, as it takes minutes to make; after a week it is made anew, of the Debian of then.
if [ "$(cat "$image/key" 2>/dev/null)" = "$key" ] && [ -n "$(find "$image/key" -mtime -7)" ]; then
    say "the image of $(date -r "$image/key" '+%d %B, %H:%M') is used again"
else
    make_image
fi
cp --sparse=always "$image/disk" "$image/kernel" "$image/initrd" "$work/"

# The packages, as a browser would leave them: they are installed in the machine, by its user, who may do that with a
# password.
mkdir -p "$root"
mount -o loop "$work/disk" "$root"
cp "$packages"/obscura_*_amd64.deb "$packages"/obscura-desktop_*_amd64.deb "$root/home/u/Downloads/"
inside chown -R u:u /home/u/Downloads
umount "$root"
rmdir "$root"

name_machine
rm -rf -- "$pictures"
mkdir -p "$pictures"
python3 -B "$sources/Tests/Window/machine.py" "$work" "$pictures" "${machine[@]}" 2>&1 | tee -a "$log"
