"""The GPU of these tests: the stand-in, or with KERNELC_TEST_GPU=1 the real one of the machine."""

import contextlib
import os

import pytest
from gpu import standin

import kernelc as kc
from kernelc.toolchain import has_nvcc

WHOLE = os.environ.get("KERNELC_TEST_CUDA", "") == "all"
"""Whether nothing is left out for the sake of time (tests/README.md)."""
REAL = os.environ.get("KERNELC_TEST_GPU", "0") not in ("", "0")


def pytest_collection_modifyitems(items):
    if REAL and any("tests/kernelc/gpu/" in item.path.as_posix() for item in items):
        if not (kc.cuda.is_available() and has_nvcc()):
            pytest.exit(f"KERNELC_TEST_GPU=1 asks for a real GPU, and for nvcc.\n{kc.cuda.describe()}", returncode=2)


@pytest.fixture
def driver():
    """The stand-in; None stands for the machine's own driver."""
    with contextlib.nullcontext() if REAL else standin.installed() as found:
        if found is not None:
            found.set()
            found.calls()  # those of other tests are no business of this one
        yield found


@pytest.fixture
def gpu(driver):
    """Arrays are made on the GPU, and launches run there."""
    with standin.default_device():
        yield driver
