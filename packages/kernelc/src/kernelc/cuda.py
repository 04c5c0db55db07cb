"""The GPU, for those who want to say more than `device="cuda"`. Imported when `kc.cuda` is asked for.

kc.cuda.is_available()              whether there is one
kc.cuda.describe()                  which one, which driver, which nvcc
with kc.cuda.stream(handle): ...    work goes to a stream of torch or anybody's
kc.cuda.synchronize()               wait for it
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int
from typing import Any

from .errors import NoCuda, WrongUse
from .runtime.cuda.device import device, is_available
from .runtime.cuda.launching import check
from .toolchain import nvcc

__all__ = ["describe", "is_available", "stream", "synchronize"]


def synchronize() -> None:
    """Wait for the work of the current stream; raises what a kernel has reported meanwhile."""
    check(device())


@contextmanager
def stream(handle: Any) -> Iterator[None]:
    """Let launches and copies of this thread go to a stream: its handle, or a `torch.cuda.Stream`.

    The default is the legacy default stream, which is torch's default as well.
    """
    number = getattr(handle, "cuda_stream", handle)
    if not isinstance(number, int) or isinstance(number, bool):
        raise WrongUse(f"{handle!r} is no stream", advice="pass a torch.cuda.Stream, or the handle of a CUstream")
    gpu = device()
    before, gpu.stream = gpu.stream, number
    try:
        yield
    finally:
        gpu.stream = before


def describe() -> str:
    """Which GPU, driver and nvcc there are, or what is missing."""
    lines = []
    try:
        gpu = device()
        version = c_int()
        gpu.driver.cuDriverGetVersion(byref(version))
        lines.append(f"GPU: {gpu.name}, sm_{gpu.architecture}")
        lines.append(f"driver: {gpu.driver.path}, CUDA {version.value // 1000}.{version.value % 1000 // 10}")
    except NoCuda as error:
        lines.append(f"GPU: none ({error.message})")
    try:
        found = nvcc()
        lines.append(f"nvcc: {found.path}, CUDA {found.version}")
    except NoCuda as error:
        lines.append(f"nvcc: none ({error.message})")
    return "\n".join(lines)
