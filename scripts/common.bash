# Shared by the scripts beside it: sourced, never run.
# shellcheck shell=bash disable=SC2034 # used by those that source this

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# Debian packages that building and running take.
build_packages=(libfuse3-dev fuse3 libsodium-dev libsqlite3-dev libssl-dev libturbojpeg0-dev
    libjpeg62-turbo-dev
    libpng-dev libwebp-dev libgif-dev libtiff-dev libheif-dev libjxl-dev libfreetype-dev libseccomp-dev
    libsystemd-dev libglib2.0-dev libzip-dev libmicrohttpd-dev libgnutls28-dev libqrencode-dev libbrotli-dev
    bubblewrap pkg-config)

# Small programs that edit and replace photos, for Tests/Programs.
photographer_packages=(exiv2 exiftran libjpeg-turbo-progs unzip vim-tiny)

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of the named packages that are missing. Output goes to stderr, and only when something is done.
install_packages() {
    local package missing=()
    for package in "$@"; do
        case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true) in
        ii*) ;;
        *) missing+=("$package") ;;
        esac
    done
    if [ ${#missing[@]} -eq 0 ]; then return; fi
    echo "obscura: installing ${missing[*]} (apt-get)" >&2
    local log
    log=$(mktemp)
    if ! apt_install "$log" "${missing[@]}"; then
        cat "$log" >&2
        rm -f "$log"
        echo "obscura: packages: they could not be installed: install ${missing[*]} by hand" >&2
        exit 1
    fi
    rm -f "$log"
}

# The lists of a fresh machine are empty: fetched only when installing fails without.
apt_install() {
    local log=$1
    shift
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@")
    as_root "${install[@]}" </dev/null >"$log" 2>&1 && return
    as_root apt-get update -q </dev/null >>"$log" 2>&1 || true
    as_root "${install[@]}" </dev/null >>"$log" 2>&1
}

# Tests run in an optimised build of their own, six times as fast; what only debug builds do is in it. Backtraces have
# the names of functions without the debugger's information, which takes a tenth of the compiler's time. Of the index
# the list of tests is made, for which system modules are not needed.
for_tests=(-c release -Xswiftc -enable-testing -Xswiftc -DDEBUG -Xswiftc -gnone
    -Xswiftc -index-ignore-system-modules
    --scratch-path "$root/.build/tests")

build_tests() { OBSCURA_TESTS=1 swift build "${for_tests[@]}" --build-tests >&2; }

# run_tests FILTER LOG
run_tests() { OBSCURA_TESTS=1 swift test "${for_tests[@]}" --skip-build --filter "$1" >"$2" 2>&1 </dev/null; }

# Mounts of this program, one directory a line.
obscura_mounts() {
    findmnt -rn -t fuse.obscura -o TARGET 2>/dev/null | sort || true
}

# Living processes of this program, one id a line. One that has ended but was not waited for holds nothing.
obscura_processes() {
    # A name is cut after 15 characters.
    ps -eo pid=,stat=,comm= | awk '
        $2 !~ /^Z/ && $3 ~ /^obscura(-worker|-sleep|-guard|-desktop|-receive)?$/ { print $1 }' | sort
}

# The programs of a package, in the order of their names; the first is the one that users start.
package_programs=(obscura obscura-archive obscura-desktop obscura-guard obscura-receiver obscura-sleep obscura-worker)

# Where build_package leaves the programs.
package_build=$root/.build/packaged

# Builds the named programs for other machines: with the Swift runtime in them, without a path of this one, and the same
# to the byte wherever the sources lie.
build_package() {
    local place=/usr/src/obscura from=$root swift directory flags program
    # Mapping paths is not enough: hashes of options, and lengths of paths, stay those of the real place. So the
    # compiler is shown the sources at one place. Where the kernel refuses that, paths are mapped, and the bytes differ.
    swift=$(dirname -- "$(readlink -f -- "$(command -v swift)")")/swift
    local inside=(bwrap --die-with-parent --dev /dev --proc /proc --tmpfs /tmp --setenv HOME /tmp --unsetenv TMPDIR)
    # Not all of /: a mount below it would be held as long as the build takes.
    for directory in /usr /etc /bin /sbin /lib /lib64 "${swift%/*/*}"; do
        inside+=(--ro-bind-try "$directory" "$directory")
    done
    inside+=(--tmpfs "${place%/*}" --bind "$root" "$place" --chdir "$place")
    if "${inside[@]}" "$swift" --version >/dev/null 2>&1; then from=$place; else inside=(); fi
    # Debuggers would look for the compiler's modules of C headers, which no package has.
    flags=(-c release --package-path "$from" --scratch-path "${package_build/#$root/$from}" --static-swift-stdlib
        --disable-local-rpath -Xlinker --build-id=sha1
        -Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs
        -Xswiftc -file-prefix-map -Xswiftc "$from=$place" -Xswiftc -debug-prefix-map -Xswiftc "$from=$place"
        -Xcc "-ffile-prefix-map=$from=$place")
    for program in "$@"; do "${inside[@]}" "$swift" build "${flags[@]}" --product "$program" >&2; done
}

# Debian packages that the desktop window takes beside those above.
window_packages=(libgtk-4-dev libadwaita-1-dev adwaita-icon-theme)
