#!/usr/bin/env bash
# The tests of the language, and a scene with its gradient, with every other CPython that is on this machine: those on the
# PATH, pyenv's, and what PYTHONS names. Each has an environment of its own, without torch.
#     tests/platforms/pythons.sh [arguments of pytest]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
(($#)) || set -- "${everything[@]}"
candidates=(${PYTHONS:-})
for minor in 10 11 12 13 14; do
    found=$(type -ap "python3.$minor" || true)
    candidates+=($found "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python3)
done

# Which of them run, can make environments and have the headers that the native core needs; the first of each version.
declare -A chosen=()
for candidate in "${candidates[@]}"; do
    version=$("$candidate" -c 'import ensurepip, os, sys, sysconfig, venv
assert sys.version_info >= (3, 10) and os.path.exists(sysconfig.get_path("include") + "/Python.h")
print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    : "${chosen[$version]:=$candidate}"
done
((${#chosen[@]})) || fail "no CPython from 3.10 on; PYTHONS='/path/to/python3.12 ...' names some"

pip() {
    PIP_BUILD_CONSTRAINT=$repository/constraints.txt PIP_CONSTRAINT=$repository/constraints.txt \
        "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"
}

cd "$repository"
failed=()
for version in $(printf '%s\n' "${!chosen[@]}" | sort -V); do
    environment=$folder/python$version
    echo "==> $("${chosen[$version]}" --version), ${chosen[$version]}"
    [[ -x $environment/bin/python ]] || "${chosen[$version]}" -m venv "$environment"
    # Kernels are compiled as they are needed: machine code for all of them takes minutes.
    { pip install --upgrade pip && pip install -C cmake.define.KERNELC_AOT=OFF ./packages/kernelc ./packages/physics \
        pytest hypothesis; } || { failed+=("$version: not installed"); continue; }
    # From a folder without the sources: what was installed is what is tested.
    (cd "$environment" && "$environment/bin/python" "$repository/tests/platforms/fall.py") || failed+=("$version: fall.py")
    HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}" "$environment/bin/python" -m pytest -q -p no:cacheprovider "$@" ||
        failed+=("$version")
done
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}"
