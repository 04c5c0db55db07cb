#!/usr/bin/env bash
# The tests of the language with kernels compiled by clang++; CLANG names another one.
#     tests/platforms/clang.sh [arguments of pytest]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
clang=${CLANG:-clang++}
need "$clang" clang
"$clang" --version | head -n 1
(($#)) || set -- "${everything[@]}"
cd "$repository"
CXX=$clang HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}" exec "$python" -m pytest -q "$@"
