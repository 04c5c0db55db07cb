"""The GPU as the runtime uses it: its context, its memory, its modules, its stream. One per process.

The context is the primary one, which torch and others use as well, so memory can be shared. Work goes to the default
stream unless `kernelc.cuda.stream` says otherwise; what one stream does happens in order.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import deque
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CudaError, NoCuda, WrongDevice
from . import driver as drivers

Host = np.ndarray[Any, Any]
_MULTIPROCESSORS, _THREADS_PER_MULTIPROCESSOR = 16, 39
_MAJOR, _MINOR = 75, 76
_ORDINAL = 9
"""CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL."""
_GRAIN = 512


class Memory:
    """A piece of the GPU's memory; it goes back to the pool with its last reference."""

    __slots__ = ("address", "device", "nbytes")

    def __init__(self, device: Device, address: int, nbytes: int):
        self.device, self.address, self.nbytes = device, address, nbytes

    def __del__(self) -> None:
        # No driver call: Python may be in the middle of anything, or at its end.
        self.device._freed.append((self.address, self.nbytes))


class Device:
    """A GPU."""

    def __init__(self, driver: drivers.Driver):
        self.driver = driver
        try:
            driver.cuInit(0)
            count = self._ask("cuDeviceGetCount")
        except CudaError as error:
            raise NoCuda(f"no CUDA device is available: {error.message}",
                         advice='launch on the CPU: device="cpu"') from None  # fmt: skip
        if count == 0:
            raise NoCuda("no CUDA device is available: the driver knows none", advice='launch on the CPU: device="cpu"')
        ordinal = self._ask("cuDeviceGet", 0)
        self.ordinal = ordinal
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, 256, ordinal)
        self.name = name.value.decode("utf-8", "replace")
        facts = [self._ask("cuDeviceGetAttribute", which, ordinal) for which in
                 (_MAJOR, _MINOR, _MULTIPROCESSORS, _THREADS_PER_MULTIPROCESSOR)]  # fmt: skip
        self.architecture = 10 * facts[0] + facts[1]
        self.most_threads = facts[2] * facts[3]
        """How many threads the GPU holds at a time."""
        self._context = c_void_p()
        driver.cuDevicePrimaryCtxRetain(byref(self._context), ordinal)
        self._as_guest = drivers.Guest(driver, self._context)
        self._local = threading.local()
        self._freed: deque[tuple[int, int]] = deque()
        self._pool: dict[int, list[int]] = {}
        self._busy: dict[int, int] = {}
        """Streams that may have work left, with the number of the last piece of it."""
        self._pieces = itertools.count()
        self._lock, self._busy_lock = threading.Lock(), threading.Lock()
        self._idle_streams: list[int] = []
        self._modules: dict[str, c_void_p] = {}
        self._scratch: dict[tuple[str, int], Memory] = {}

    def _ask(self, question: str, *args: Any) -> int:
        answer = c_int()
        getattr(self.driver, question)(byref(answer), *args)
        return answer.value

    def __repr__(self) -> str:
        return f"<CUDA device {self.ordinal}: {self.name}, sm_{self.architecture}>"

    @property
    def stream(self) -> int:
        """The handle of the stream that this thread works on; 0 is the default one."""
        return getattr(self._local, "stream", 0)

    @stream.setter
    def stream(self, handle: int) -> None:
        self._local.stream = handle

    def new_stream(self) -> int:
        """A stream that nobody else works on. It waits for the default one, and that for it, as CUDA's do."""
        try:
            return self._idle_streams.pop()
        except IndexError:
            handle = c_void_p()
            self.calls().cuStreamCreate(byref(handle), 0)
            return handle.value or 0

    def calls(self) -> drivers.Driver | drivers.Guest:
        """The driver, with the context current in this thread."""
        now = c_void_p()
        self.driver.cuCtxGetCurrent(byref(now))
        if now.value is None:
            self.driver.cuCtxSetCurrent(self._context)
        elif now.value != self._context.value:
            # torch.cuda.set_device(1), or another library: what it does next must go where it went before.
            return self._as_guest
        return self.driver

    def queue(self) -> drivers.Driver | drivers.Guest:
        """The driver, for a call that leaves work on this thread's stream."""
        with self._busy_lock:
            self._busy[self.stream] = next(self._pieces)
        return self.calls()

    def synchronize(self) -> None:
        """Wait for the work of this thread's stream."""
        known = {self.stream: self._busy.get(self.stream)}
        self.calls().cuStreamSynchronize(self.stream)
        self._are_done(known)

    def _are_done(self, known: Mapping[int, int | None]) -> None:
        """Forget the work of streams up to what was `known` before they were waited for; others may have added some."""
        with self._busy_lock:
            for stream, piece in known.items():
                if self._busy.get(stream) == piece:
                    self._busy.pop(stream, None)

    # -- memory
    def allocate(self, nbytes: int) -> Memory:
        """Memory with whatever it holds."""
        size = max(_GRAIN, -(-nbytes // _GRAIN) * _GRAIN)
        with self._lock:
            self._collect()
            waiting = self._pool.get(size)
            if waiting:
                self._wait_for_others()
                return Memory(self, waiting.pop(), size)
            return Memory(self, self._new(size), size)

    def _wait_for_others(self) -> None:
        """Another stream may still use what was freed: nobody knows which ones a piece of memory has seen."""
        with self._busy_lock:
            others = {stream: piece for stream, piece in self._busy.items() if stream != self.stream}
        if others:
            self.calls().cuCtxSynchronize()
            self._are_done(others)

    def _collect(self) -> None:
        while self._freed:
            address, size = self._freed.popleft()
            self._pool.setdefault(size, []).append(address)

    def _new(self, size: int) -> int:
        address = c_uint64()
        try:
            self.calls().cuMemAlloc_v2(byref(address), size)
        except CudaError as error:
            if error.status != drivers._OUT_OF_MEMORY or not self._pool:
                raise
            self._release()
            self.calls().cuMemAlloc_v2(byref(address), size)
        return address.value

    def _release(self) -> None:
        """Give the pool back to the driver."""
        while self._pool:
            _, pieces = self._pool.popitem()
            while pieces:
                self.calls().cuMemFree_v2(pieces.pop())

    def check_own(self, address: int) -> None:
        """Raise where memory of others is on another GPU."""
        number = c_int()
        self.calls().cuPointerGetAttribute(byref(number), _ORDINAL, address)
        self.check_number(number.value)

    def check_number(self, number: int) -> None:
        if number != self.ordinal:
            raise WrongDevice(f"the memory is on GPU {number}, and kernels run on GPU {self.ordinal}",
                              advice="move it, or choose GPUs with CUDA_VISIBLE_DEVICES")  # fmt: skip

    def free_bytes(self) -> int:
        """What the driver can still give."""
        free, total = c_size_t(), c_size_t()
        self.calls().cuMemGetInfo_v2(byref(free), byref(total))
        return free.value

    def spare(self, what: str) -> int:
        """How large scratch memory can become."""
        found = self._scratch.get((what, self.stream))
        with self._lock:
            self._collect()
            pooled = sum(size * len(pieces) for size, pieces in self._pool.items())
        return self.free_bytes() + pooled + (found.nbytes if found else 0)

    def scratch(self, what: str, nbytes: int) -> Memory:
        """Memory that launches of this stream use one after the other; it only grows."""
        key = (what, self.stream)
        found = self._scratch.get(key)
        if found is None or found.nbytes < nbytes:
            self._scratch.pop(key, None)
            found = self._scratch[key] = self.allocate(nbytes)
        return found

    # -- copies
    def upload(self, address: int, data: Host) -> None:
        """Copy dense host memory to the GPU."""
        if data.nbytes:
            self.queue().cuMemcpyHtoDAsync_v2(address, data.ctypes.data, data.nbytes, self.stream)
            self.synchronize()  # the caller may change or free its memory

    def download(self, address: int, data: Host) -> None:
        """Copy from the GPU to dense host memory."""
        if data.nbytes:
            self.queue().cuMemcpyDtoHAsync_v2(data.ctypes.data, address, data.nbytes, self.stream)
            self.synchronize()

    def copy(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.queue().cuMemcpyDtoDAsync_v2(to, source, nbytes, self.stream)

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        if nbytes:
            self.queue().cuMemsetD8Async(address, byte, nbytes, self.stream)

    # -- kernels
    def function(self, library: Path, name: str) -> int:
        """The handle of a kernel in a fat binary."""
        module = self._modules.get(str(library))
        if module is None:
            module = c_void_p()
            self.calls().cuModuleLoadData(byref(module), library.read_bytes())
            self._modules[str(library)] = module
        function = c_void_p()
        self.calls().cuModuleGetFunction(byref(function), module, name.encode())
        return function.value or 0

    def launch(self, function: int, blocks: int, threads: int, params: list[bytes]) -> None:
        """Start a kernel; its parameters are copied before this returns."""
        kept = [c_char_p(p) for p in params]
        pointers = (c_void_p * len(kept))(*[ctypes.cast(p, c_void_p) for p in kept])
        self.queue().cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, self.stream, pointers, None)


_device: Device | None = None
_lock = threading.Lock()


def device() -> Device:
    """The GPU of this process. Raises `NoCuda` where there is none."""
    global _device
    if _device is None:
        with _lock:
            if _device is None:
                _device = Device(drivers.load())
    return _device


def is_available() -> bool:
    """Whether there is a GPU with a driver."""
    try:
        device()
    except NoCuda:
        return False
    return True
