"""The GPU of these tests: the stand-in, or with KERNELC_TEST_GPU=1 the real one of the machine."""

import os

import pytest
from cuda import standin

REAL = os.environ.get("KERNELC_TEST_GPU", "0") not in ("", "0")


@pytest.fixture(scope="session")
def driver():
    """The driver library of the tests; None stands for the machine's own."""
    if REAL:
        yield None
        return
    with standin.installed() as found:
        yield found


@pytest.fixture
def gpu(driver):
    """Arrays are made on the GPU, and launches run there."""
    if driver is not None:
        driver.set()
    with standin.default_device():
        yield driver
