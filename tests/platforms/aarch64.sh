#!/usr/bin/env bash
# The tests of the language on aarch64, which qemu emulates: the native core and all kernels are cross-compiled.
#     tests/platforms/aarch64.sh [arguments of pytest]
# Nothing has to be registered with the system (binfmt): Python is started by qemu, and the compiler that it starts is
# one of the host. Needs root (debootstrap).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need qemu-aarch64-static qemu-user-static
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need cmake cmake
need ninja ninja-build
root=$folder/aarch64
lib=usr/lib/aarch64-linux-gnu

# Nothing of it can be run while it is set up, so packages are only unpacked.
unpack() {
    for package in "$1"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$1" -x --keep-directory-symlink
    done
}
after_bootstrap=unpack bootstrap "$root" --foreign --arch=arm64 --include="$packages,python3-dev"

copy_sources "$folder/aarch64-src"
get_pybind11 "$folder/pybind11"
cd "$folder/aarch64-src"
version=$(cd "$root/usr/include" && echo python3.*)
aarch64-linux-gnu-g++ -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -pthread -Ipackages/kernelc/src/kernelc/include \
    -I"$folder/pybind11/pybind11/include" -I"$root/usr/include/$version" -idirafter "$root/usr/include" \
    packages/kernelc/native/*.cpp -o packages/kernelc/src/kernelc/_native.so ||
    fail "the native core cannot be cross-compiled"

# The alternatives of libblas are links that only a system which was set up has.
inside() {
    env -i PATH="$PATH" HOME="$folder" LANG=C.UTF-8 CXX=aarch64-linux-gnu-g++ KERNELC_CACHE_DIR="$folder/aarch64-cache" \
        HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-dev}" PYTHONPATH=packages/kernelc/src KERNELC_TEST_MEMORY=small \
        qemu-aarch64-static -L "$root" -E LD_LIBRARY_PATH="/$lib:/$lib/blas:/$lib/lapack" \
        -E PYTHONHOME="$root/usr" "$root/usr/bin/$version" "$@"
}
aarch64-linux-gnu-g++ --version | head -n 1
inside -c 'import platform; print("Python", platform.python_version(), "on", platform.machine())'
# The law of lanes, which NEON decides, and some programs of the fuzzer: an emulated processor is ten times slower.
(($#)) || set -- tests/kernelc/laws/test_laws.py tests/kernelc/fuzz/test_fuzz.py -k 'lanes_equal or compiled_programs'
inside -m pytest -q -p no:cacheprovider "$@"
