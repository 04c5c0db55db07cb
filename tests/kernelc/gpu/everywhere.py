"""KERNELC_TEST_DEVICE=cuda: every test of the suite runs its kernels as CUDA instead of on the CPU.

What is launched on the CPU becomes CUDA text, compiled by g++ (shim.h) and run by the stand-in driver, which in this
mode may touch memory of the host, as GPUs with unified memory do. So every test of a gradient that there is, of random
programs and of physics and render as well, holds the generated CUDA to what it says about the CPU.

KERNELC_TEST_THIN=20 runs one test in twenty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from gpu import standin

from kernelc.codegen import counted_for
from kernelc.runtime import compile, derivatives, kernels, launches, reverse
from kernelc.runtime.cuda import device as devices
from kernelc.runtime.cuda import launching
from kernelc.torch import ops

LEFT_OUT = {
    "kernelc/codegen/": "looks at the C++ of the CPU",
    "kernelc/gpu/test_": "runs on the stand-in anyway",
    "kernelc/lanes/": "looks at lanes and strips of the CPU",
    "kernelc/native/": "tests the native core",
    "kernelc/toolchain/": "builds for the CPU",
    "kernelc/errors/test_machine.py": "tests the compiler of the machine",
    "benchmarks/": "compares with hand-written C++",
    "test_docs.py": "builds nothing",
    "kernelc/interop/test_dlpack.py::test_memory_of_other_devices_is_refused": "here is such a device",
    "kernelc/errors/test_debug.py::test_what_goes_wrong_is_found[all_store-cpu": "of many that meet, any is named",
    "kernelc/errors/test_debug.py::test_an_error_does_not_hide_what_was_stored_before": "later threads have run, too",
    "kernelc/interop/test_torch_state.py::test_hooks_that_copy_saved": "tests the way of operations to the CPU",
    "kernelc/errors/test_backward.py::test_a_loop_tape_over_the_limit": "a GPU knows it before the launch, and says so",
}


def prebuild_as_cuda(jobs: Sequence[tuple[Any, str, frozenset[int], frozenset[int]]], total: int = 1) -> None:
    """As `runtime.compile.prebuild`: the same kernels as CUDA in one module, with what counts for their adjoints."""
    wanted: list[Any] = []
    for variant, which, seeds, contiguous in jobs:
        wanted.append((variant, (which, seeds, contiguous, False)))
        if which == "adjoint" and counted_for(variant.primal, variant.adjoint(seeds).kernel):
            wanted.append((variant, ("counted", seeds, contiguous, False)))
    with standin.installed() as driver:
        driver.unify(True)
        launching.prebuild(wanted)


# Test modules take these names from their modules when they are imported, which is later than this.
compile.prebuild = prebuild_as_cuda
_check_device, _run = kernels.check_device, launching.Launching.run


def check_device(device: str | None, plan: Any, args: Sequence[Any]) -> str:
    where = _check_device(device, plan, args)
    return "cuda" if where == "cpu" else where


def run(self: launching.Launching) -> None:
    _run(self)
    # The host looks at its memory whenever it likes.
    gpu = devices.device()
    if self.binary.fails:
        launching.check(gpu)
    else:
        gpu.synchronize()


@pytest.fixture(scope="session", autouse=True)
def everywhere() -> Iterator[None]:
    with standin.installed() as driver, pytest.MonkeyPatch.context() as patch:
        driver.unify(True)
        driver.set(order=0)  # tests of what atomics return expect the order of the CPU
        for module in (kernels, launches, derivatives):
            patch.setattr(module, "check_device", check_device)
        patch.setattr(launching.Launching, "run", run)
        # Operations of torch have a way of their own to the CPU.
        patch.setattr(ops, "launch_direct", lambda *args: None)
        # Weights and sums of gradients go through kernels, too.
        patch.setattr(reverse, "is_on_gpu", lambda data: True)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for part, reason in LEFT_OUT.items():
            if f"tests/{part}" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=f"not with KERNELC_TEST_DEVICE=cuda: {reason}"))
    items[:] = items[:: int(os.environ.get("KERNELC_TEST_THIN", "1"))]
