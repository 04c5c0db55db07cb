"""Memory of a GPU with a shape and a type: as much of a NumPy array as the runtime uses. Nobody reads it directly."""

from __future__ import annotations

import ctypes
from typing import Any, cast

import numpy as np

from .device import Device, Memory, device

Host = np.ndarray[Any, Any]


class DeviceData:
    """A view of GPU memory. Shapes, strides and slices are NumPy's, of an array at the same address that is never read.

    owner: keeps the memory alive
    """

    __slots__ = ("_ghost", "device", "owner")

    def __init__(self, ghost: Host, device: Device, owner: Any):
        self._ghost, self.device, self.owner = ghost, device, owner

    def as_array(self) -> Host:
        """Itself, under the type that it stands for: the runtime uses what both have, or asks `is_on_gpu`."""
        return cast("Host", self)

    # -- what it is
    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._ghost.shape
        return shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._ghost.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self._ghost.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return self._ghost.ndim

    @property
    def size(self) -> int:
        return self._ghost.size

    @property
    def nbytes(self) -> int:
        return self._ghost.nbytes

    @property
    def itemsize(self) -> int:
        return self._ghost.itemsize

    @property
    def flags(self) -> Any:
        return self._ghost.flags

    @property
    def ctypes(self) -> Any:
        return self._ghost.ctypes

    @property
    def address(self) -> int:
        return int(self._ghost.ctypes.data)

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} on {self.device!r}>"

    # -- views
    def __getitem__(self, key: Any) -> DeviceData:
        part = self._ghost[key] if self._is_view(key) else None
        if not isinstance(part, np.ndarray):
            raise IndexError(f"{key!r} is no view of memory on a GPU")
        return DeviceData(part, self.device, self.owner)

    def _is_view(self, key: Any) -> bool:
        """Anything else would read the memory: an integer for each dimension, arrays of indices."""
        if isinstance(key, str) or key is Ellipsis:
            return True
        keys = key if isinstance(key, tuple) else (key,)
        numbers = [isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in keys]
        plain = all(n or isinstance(k, slice) for n, k in zip(numbers, keys, strict=True))
        return plain and not (all(numbers) and len(keys) == self.ndim)

    def reshape(self, *shape: Any) -> DeviceData:
        if not self.flags.c_contiguous:
            raise ValueError("only contiguous memory can be reshaped on a GPU")
        return DeviceData(self._ghost.reshape(*shape), self.device, self.owner)

    @property
    def ghost(self) -> Host:
        """What has its address, shape and strides, and must not be read."""
        return self._ghost

    def may_share(self, other: DeviceData) -> bool:
        return bool(np.may_share_memory(self._ghost, other._ghost))

    def _span(self) -> tuple[int, int]:
        """The lowest address, and how many bytes lie between it and the end."""
        if self.flags.c_contiguous:
            return self.address, self.nbytes
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(s for s in steps if s < 0)
        return low, sum(map(abs, steps)) + self.itemsize if self.size else 0

    def _download_span(self) -> tuple[int, Host, Host]:
        """The address and content of the span, and the view as part of it."""
        low, extent = self._span()
        raw = np.empty(extent, np.uint8)
        self.device.download(low, raw)
        view = np.ndarray(self.shape, self.dtype, raw.data if extent else None, self.address - low, self.strides)
        return low, raw, view

    # -- content
    def host(self) -> Host:
        """A copy in the memory of the host."""
        if not self.size:
            return np.zeros(self.shape, self.dtype)
        if self.flags.c_contiguous:
            made = np.empty(self.shape, self.dtype)
            self.device.download(self.address, made)
            return made
        return np.ascontiguousarray(self._download_span()[2])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Host:
        return np.asarray(self.host(), dtype)

    def tobytes(self) -> bytes:
        return self.host().tobytes()

    def copy(self) -> DeviceData:
        """Dense memory with the same content."""
        made = empty(self.shape, self.dtype, self.device)
        made.write(self)
        return made

    def __setitem__(self, key: Any, content: Any) -> None:
        (self if key is Ellipsis else self[key]).write(content)

    def write(self, content: Any) -> None:
        """Take over what host or GPU memory holds; one number goes everywhere."""
        if not self.size:
            return
        if isinstance(content, DeviceData):
            dense = self.flags.c_contiguous and content.flags.c_contiguous
            if dense and self.may_share(content):
                content = content.copy()  # what a copy within memory does is not defined
            if dense and content.dtype == self.dtype and content.shape == self.shape:
                self.device.copy(self.address, content.address, self.nbytes)
                return
            content = content.host()
        if self.flags.c_contiguous:
            made = np.empty(self.shape, self.dtype)
            made[...] = content
            self.device.upload(self.address, made)
            return
        low, raw, view = self._download_span()
        view[...] = content
        self.device.upload(low, raw)

    def zero(self) -> None:
        if self.flags.c_contiguous:
            self.device.fill(self.address, 0, self.nbytes)
        else:
            self.write(np.zeros((), self.dtype))


def empty(shape: tuple[int, ...], dtype: Any, on: Device | None = None) -> DeviceData:
    """New memory on the GPU."""
    gpu, kind = on or device(), np.dtype(dtype)
    memory = gpu.allocate(int(np.prod(shape)) * kind.itemsize)
    return at(memory.address, shape, kind, None, memory, gpu)


def zeros(shape: tuple[int, ...], dtype: Any, on: Device | None = None) -> DeviceData:
    made = empty(shape, dtype, on)
    made.zero()
    return made


def upload(data: Host, on: Device | None = None) -> DeviceData:
    """A copy of host memory on the GPU."""
    made = empty(data.shape, data.dtype, on)
    made.write(data)
    return made


def at(
    address: int, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, owner: Any,
    gpu: Device, *, writeable: bool = True,
) -> DeviceData:  # fmt: skip
    """Memory that somebody has."""
    before = 0
    if strides is None or not all(shape):
        extent = int(np.prod(shape)) * dtype.itemsize
        strides = None
    else:
        steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        before = -sum(s for s in steps if s < 0)  # bytes before the first element: it runs backwards
        extent = sum(map(abs, steps)) + dtype.itemsize
    buffer: Any = (ctypes.c_char * max(extent, 1)).from_address(address - before)
    ghost: Host = np.ndarray(shape, dtype, buffer, before, strides)
    ghost.flags.writeable = writeable
    return DeviceData(ghost, gpu, owner)


def foreign(source: Any) -> DeviceData:
    """The memory of anything with a `__cuda_array_interface__` (torch, CuPy, Numba), shared."""
    about = source.__cuda_array_interface__
    address, read_only = about["data"]
    gpu = device()
    if address:
        gpu.check_own(address)
    stream = about.get("stream")  # 1 stands for the default one
    if stream is not None and (0 if stream == 1 else stream) != gpu.stream:
        # Its producer works on another stream: what it has queued there must be done first.
        gpu.calls().cuStreamSynchronize(stream if stream != 1 else 0)
    shape, strides = tuple(about["shape"]), about.get("strides")
    dtype = np.dtype(about["typestr"])
    return at(address or 1, shape, dtype, tuple(strides) if strides else None, source, gpu, writeable=not read_only)


__all__ = ["DeviceData", "Memory", "at", "empty", "foreign", "upload", "zeros"]
