#!/usr/bin/env bash
# The tests of the language for each kind of processor that this one can stand for, then in groups of 16 lanes, which
# are the widest of AVX-512 and run on any processor.
#     tests/platforms/processors.sh [arguments of pytest]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
levels=$("$python" -c 'from kernelc.toolchain.simd import own_levels; print(*(level.name for level in own_levels()))')
(($#)) || set -- "${everything[@]}"
cd "$repository"
failed=()
for setting in $(printf 'KERNELC_CPU=%s ' $levels) KERNELC_LANES=16; do
    echo "==> $setting"
    env HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}" "$setting" "$python" -m pytest -q "$@" || failed+=("$setting")
done
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}"
