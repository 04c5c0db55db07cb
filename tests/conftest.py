"""What every test shares: the Hypothesis profiles. Choose one with HYPOTHESIS_PROFILE=dev | ci | nightly."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example of a kernel waits for the compiler.
common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", common, max_examples=20)
# The same examples on every run, so that a red build is red for a reason in its diff.
# It holds what was found; new examples are the night's to look for.
settings.register_profile("ci", common, max_examples=20, derandomize=True, print_blob=True)
settings.register_profile("nightly", common, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))



@pytest.fixture(scope="module", autouse=True)
def few_objects_to_look_through() -> None:
    """What earlier modules have left (compilers, JAX, thousands of IR nodes) is not looked through by the collector
    again: late in a run that took seconds each time."""
    gc.freeze()


if os.environ.get("KERNELC_TEST_DEVICE", "cpu") == "cuda":
    # Fixtures and hooks: kernels of all tests run as CUDA, without a GPU.
    from gpu.everywhere import everywhere, pytest_collection_modifyitems  # noqa: F401
