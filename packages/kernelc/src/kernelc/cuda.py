"""The GPU, for those who want to say more than `device="cuda"`. Imported when `kc.cuda` is asked for.

kc.cuda.is_available()              whether there is one
kc.cuda.describe()                  which one, which driver, which nvcc
kc.cuda.Stream()                    a stream of one's own
with kc.cuda.stream(s): ...         work goes to a stream, this one or one of torch or anybody's
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

__all__ = ["Stream", "describe", "is_available", "stream", "synchronize"]


class Stream:
    """A stream of the GPU: what is put on two of them may run at the same time.

    `with kc.cuda.stream(s):` puts work on it. `cuda_stream` is its handle, which torch.cuda.ExternalStream takes.
    """

    def __init__(self) -> None:
        self._device = device()
        self.cuda_stream = self._device.new_stream()

    def synchronize(self) -> None:
        """Wait for its work; raises what a kernel has reported meanwhile."""
        with stream(self):
            synchronize()

    def __del__(self) -> None:
        # Not destroyed: the next one may go on with it. What is still queued there comes first.
        if hasattr(self, "cuda_stream"):
            self._device._idle_streams.append(self.cuda_stream)


def synchronize() -> None:
    """Wait for the work of the current stream; raises what a kernel has reported meanwhile."""
    check(device())


@contextmanager
def stream(handle: Any) -> Iterator[None]:
    """Let launches and copies of this thread go to a stream: a `kc.cuda.Stream`, a `torch.cuda.Stream`, or its handle.

    The default is the legacy default stream, which is torch's default as well.
    """
    number = getattr(handle, "cuda_stream", handle)
    if not isinstance(number, int) or isinstance(number, bool):
        raise WrongUse(f"{handle!r} is no stream", advice="pass a kc.cuda.Stream, a torch.cuda.Stream or a handle")
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
