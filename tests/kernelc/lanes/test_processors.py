"""A slice of the tests of the language, compiled for older processors, in wider groups than this one would choose, and
by clang++ where there is one.

`make processors` and `make clang` run all of them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelc.toolchain.simd import levels, own_levels

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# Sums and scatters in all widths, and laws of elements of several leaves, of branches, loops, mathematics and integers.
SLICE = [HERE / "test_scatters.py", HERE / "test_sums.py", HERE.parent / "laws" / "test_laws.py"]
LAWS = ("springs", "kind", "early", "fields")
CHOSEN = f"test_scatters or test_sums or (lanes_equal and ({' or '.join(LAWS)}))"
OWN = [level.name for level in own_levels()]
SETTINGS = [f"KERNELC_CPU={level.name}" for level in levels(os.uname().machine)[:2] if level.name in OWN]

CLANG = pytest.mark.skipif(shutil.which("clang++") is None, reason="there is no clang++")


@pytest.mark.slow
@pytest.mark.parametrize("setting", [*SETTINGS, "KERNELC_LANES=16", pytest.param("CXX=clang++", marks=CLANG)])
def test_the_language_means_the_same_on_other_processors(setting):
    name, _, value = setting.partition("=")
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    env = plain | {"HYPOTHESIS_PROFILE": "ci", name: value}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHOSEN, *map(str, SLICE)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and " skipped" not in done.stdout
