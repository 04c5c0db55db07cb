"""The one command for people with a GPU, `make gpu`: what it says without one, and that it works with the stand-in."""

import os
import subprocess
import sys
from pathlib import Path

from gpu import standin

ROOT = Path(__file__).parents[3]


def run(*arguments, **environment):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"KERNELC_TEST_GPU": "1"} | environment, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def test_without_a_gpu_it_says_what_is_missing(tmp_path):
    done = run("tests/kernelc/gpu/test_memory.py", KERNELC_CUDA_DRIVER=str(tmp_path / "no_driver.so"))
    assert done.returncode == 2
    said = done.stdout + done.stderr
    assert "KERNELC_TEST_GPU=1 asks for a real GPU" in said
    assert "GPU: none (no CUDA device is available: the driver cannot be loaded" in said


def test_without_nvcc_it_says_so():
    standing_in = str(standin.driver_library())
    done = run("tests/kernelc/gpu/test_memory.py", KERNELC_CUDA_DRIVER=standing_in, CUDACXX="/no/nvcc")
    assert done.returncode == 2
    assert "nvcc: none (nvcc was not found" in done.stdout + done.stderr


def test_with_the_stand_in_it_passes():
    """Nothing is patched here: nvcc is found and probed, its fat binaries are cached and loaded by the driver."""
    done = run(
        "tests/kernelc/gpu/test_launches.py", "tests/kernelc/gpu/test_memory.py",
        "-k", "three_dimensions or counted_first or failed_assertion or overwrites or of_others_is_shared",
        KERNELC_CUDA_DRIVER=str(standin.driver_library()), CUDACXX=str(ROOT / "tests/kernelc/gpu/nvcc"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
