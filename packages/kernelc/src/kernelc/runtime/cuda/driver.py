"""The CUDA driver, loaded when it is first asked for: its functions with their types, and its errors as exceptions.

No wheel links CUDA. KERNELC_CUDA_DRIVER names a driver library that is not where the loader looks.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from ...errors import CudaError, NoCuda

Pointer = c_uint64
"""CUdeviceptr."""
_HANDLES = POINTER(c_void_p)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_HANDLES, c_int),
    "cuCtxGetCurrent": (_HANDLES,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (_HANDLES,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_HANDLES, c_char_p),
    "cuModuleGetFunction": (_HANDLES, c_void_p, c_char_p),
    "cuMemAlloc_v2": (POINTER(Pointer), c_size_t),
    "cuMemFree_v2": (Pointer,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuPointerGetAttribute": (c_void_p, c_int, Pointer),
    "cuMemcpyHtoDAsync_v2": (Pointer, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, Pointer, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (Pointer, Pointer, c_size_t, c_void_p),
    "cuMemsetD8Async": (Pointer, c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (_HANDLES, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuLaunchKernel": (c_void_p, *([c_uint] * 7), c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
}
_OUT_OF_MEMORY = 2


class Driver:
    """The functions of the driver library: `driver.cuInit(0)` raises what the driver says, or returns nothing."""

    def __init__(self, library: ctypes.CDLL, path: str):
        self.path = path
        self._library = library
        for name, types in _FUNCTIONS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                why = "it is too old" if hasattr(library, "cuInit") else "it is no CUDA driver"
                raise NoCuda(f"the CUDA driver {path} has no function {name}: {why}",
                             advice="install a newer driver, or launch on the CPU") from None  # fmt: skip
            function.argtypes, function.restype = types, c_int

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)

        def call(*args: Any) -> None:
            status = function(*args)
            if status:
                raise self.error(name, status)

        setattr(self, name, call)
        return call

    def error(self, name: str, status: int) -> CudaError:
        """What the driver says about a status."""
        words = []
        for question in ("cuGetErrorName", "cuGetErrorString"):
            function = getattr(self._library, question)
            function.argtypes, function.restype = (c_int, POINTER(c_char_p)), c_int
            text = c_char_p()
            known = function(status, ctypes.byref(text)) == 0 and text.value
            words.append(text.value.decode("utf-8", "replace") if known and text.value else f"error {status}")
        advice = "free arrays, or use smaller ones" if status == _OUT_OF_MEMORY else ""
        return CudaError(f"{name.removesuffix('_v2')}: {words[0]}: {words[1]}", advice=advice, status=status)


class Guest:
    """The driver in a thread that works in a context of somebody else, who finds it as it was after each call."""

    def __init__(self, driver: Driver, context: c_void_p):
        self._driver, self._context = driver, context

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> None:
            self._driver.cuCtxPushCurrent_v2(self._context)
            try:
                getattr(self._driver, name)(*args)
            finally:
                self._driver.cuCtxPopCurrent_v2(ctypes.byref(c_void_p()))

        return call


def load() -> Driver:
    """The driver of this machine. Raises `NoCuda`."""
    chosen = os.environ.get("KERNELC_CUDA_DRIVER", "")
    reasons = []
    for path in [chosen] if chosen else ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]:
        try:
            return Driver(ctypes.CDLL(path), path)
        except OSError as error:
            reasons.append(str(error))
    raise NoCuda(f"no CUDA device is available: the driver cannot be loaded ({reasons[0]})",
                 advice='launch on the CPU: device="cpu"')  # fmt: skip
