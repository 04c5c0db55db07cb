# What the scripts of this folder share: tools that must be there, Debian's mirror, a copy of the sources with a native core.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${PLATFORMS:-$repository/out/platforms}
suite=trixie
python=${PYTHON:-$repository/.venv/bin/python}
# Of Debian itself; only pybind11 is too old there.
packages=python3,python3-numpy,python3-platformdirs,python3-pytest,python3-hypothesis
everything=(tests/kernelc/{language,lanes,laws,fuzz})

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# need PROGRAM PACKAGE
need() { command -v "$1" >/dev/null || fail "there is no $1. On Debian, as root: apt-get install $2"; }

# The mirror that apt uses here: other hosts may not be reachable.
mirror() {
    local found
    found=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        grep -v security | sort -u | head -n 1)
    [[ -n $found ]] || fail "apt knows no Debian mirror here (apt-get update). Or: MIRROR=http://.../debian $0"
    echo "$found"
}

# bootstrap ROOT ARGUMENTS...: a Debian in a folder, kept for the next time.
bootstrap() {
    local root=$1
    shift
    if [[ ! -e $root/.complete ]]; then
        need debootstrap debootstrap
        [[ $(id -u) == 0 ]] || fail "debootstrap needs root"
        rm -rf "$root"
        mkdir -p "$root"
        debootstrap --variant=minbase "$@" "$suite" "$root" "${MIRROR:-$(mirror)}" >"$root.log" 2>&1 ||
            { tail -n 20 "$root.log" >&2; fail "debootstrap failed; all it said: $root.log"; }
        "${after_bootstrap:-true}" "$root"
        touch "$root/.complete"
    fi
}

# get_pybind11 TARGET: its headers, in the version that the package is built with.
get_pybind11() {
    [[ -d $1/pybind11/include ]] || "$python" -m pip --quiet --disable-pip-version-check install --no-deps \
        --target "$1" -c "$repository/constraints.txt" pybind11 || fail "pip cannot get pybind11"
}

# copy_sources TARGET: what git knows, with changes that are not committed.
copy_sources() {
    rm -rf "$1"
    mkdir -p "$1"
    git -C "$repository" ls-files -z --cached --others --exclude-standard |
        (cd "$repository" && while IFS= read -r -d '' name; do [[ -e $name ]] && printf '%s\0' "$name"; done) |
        tar -C "$repository" --null --files-from=- -c | tar -C "$1" -x
}
