#!/usr/bin/env bash
# The tests of the language with GCC 14 and Python 3.13, in a Debian trixie of its own (debootstrap; needs root).
#     tests/platforms/trixie.sh [arguments of pytest]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
root=$folder/trixie
bootstrap "$root" --include="$packages,python3-dev,g++,cmake,ninja-build"
copy_sources "$root/src"
get_pybind11 "$root/opt/pybind11"

# In namespaces of its own: mounts and processes end with it, however it ends.
inside() {
    unshare --mount --pid --fork --kill-child sh -c '
        root=$1; shift
        mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" && exec chroot "$root" "$@"' sh "$root" \
        env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 PYTHONPATH=/src/packages/kernelc/src \
        HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}" "$@"
}

# As the package's own build does it, without pip: beside the sources, like an editable installation.
inside sh -c 'cd /src/packages/kernelc &&
    cmake -G Ninja -S . -B /src/build -DKERNELC_AOT=OFF -DCMAKE_INSTALL_PREFIX=src \
        -Dpybind11_DIR=/opt/pybind11/pybind11/share/cmake/pybind11 >/src/build.log 2>&1 &&
    cmake --build /src/build >>/src/build.log 2>&1 && cmake --install /src/build >>/src/build.log 2>&1' ||
    { tail -n 30 "$root/src/build.log" >&2; fail "the native core cannot be built"; }
inside sh -c 'g++ --version | head -n 1; python3 --version'
(($#)) || set -- "${everything[@]}"
inside sh -c 'cd /src && exec python3 -m pytest -q -p no:cacheprovider "$@"' sh "$@"
