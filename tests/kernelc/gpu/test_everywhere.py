"""Some tests of gradients with KERNELC_TEST_DEVICE=cuda (everywhere.py). All of them, and those of physics and render:

KERNELC_TEST_DEVICE=cuda python -m pytest -n 2 tests/kernelc tests/physics tests/render
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def pytest_as_cuda(*arguments, thin=1):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments], cwd=ROOT,
        env=os.environ | {"KERNELC_TEST_DEVICE": "cuda", "KERNELC_TEST_THIN": str(thin), "KERNELC_TEST_GPU": "0"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.mark.nightly
def test_gradients_of_all_kinds_are_right_as_cuda():
    folders = ["probes/test_loops.py", "probes/test_tape.py", "probes/test_arrays.py", "probes/test_atomics.py",
               "probes/test_functions.py", "probes/test_singular.py", "spatial", "errors/test_backward.py"]  # fmt: skip
    done = pytest_as_cuda(*(f"tests/kernelc/{name}" for name in folders), thin=15)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 15


def test_the_switch_is_real():
    """Else the test above would prove nothing."""
    done = pytest_as_cuda("tests/kernelc/gpu/switched.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
