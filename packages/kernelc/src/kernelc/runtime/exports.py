"""Arrays on their way out: as NumPy arrays, torch tensors, DLPack, the CUDA interface, and Python numbers."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from ..errors import NoCuda, WrongDevice, WrongDtype, WrongShape, public
from .blocks import Block
from .cuda.device import device as gpu
from .elements import holds_bfloats
from .halves import from_bfloat16
from .memory import Data, is_on_gpu


class Readable(Block):
    """Memory that others read: shared where they can, copied where they cannot."""

    __slots__ = ()

    def __repr__(self) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        where = ', device="cuda"' if is_on_gpu(self._data) else ""
        return f"kc.array({np.array2string(self.numpy(), threshold=20)}, dtype={self.element!r}{where}{grad})"

    @public
    def __float__(self) -> float:
        return float(self._one())

    @public
    def __int__(self) -> int:
        return int(self._one())

    @public
    def _one(self) -> Any:
        if self._data.size != 1:
            raise WrongShape(f"an array of shape {self.shape} is not one number")
        return self.numpy().reshape(-1)[0]

    def numpy(self) -> Data:
        """The memory as a NumPy array, shared; of a GPU, a copy. Writes through it are not seen by tapes.

        NumPy has no bfloat16: of those it is a copy in float32, which cannot be written to.
        """
        if not holds_bfloats(self.element):
            return self._host().view()  # what is done to the object, its shape or its flags, is not done to the array
        numbers = from_bfloat16(self._host())
        numbers.flags.writeable = False
        return numbers

    def _host(self) -> Data:
        """The memory as it is; of a GPU, a copy."""
        data: Any = self._data
        return data.host() if is_on_gpu(data) else self._data

    @public
    def item(self) -> Any:
        """The one number of an array of one element, as a Python number."""
        return self._one().item()

    def tolist(self) -> Any:
        """The numbers as nested lists of Python numbers; vectors and matrices are lists, structs are tuples."""
        return self.numpy().tolist()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How torch, CuPy and Numba share memory of a GPU."""
        data = self._data
        if not is_on_gpu(data) or data.dtype.fields is not None:
            raise AttributeError("only arrays of numbers on a GPU have a __cuda_array_interface__")
        strides = None if data.flags.c_contiguous else data.strides
        where = (data.ctypes.data if data.size else 0, not data.flags.writeable)
        about = {"shape": data.shape, "typestr": data.dtype.str, "data": where, "strides": strides, "version": 3}
        # Launches may still be at work there; 1 stands for the default stream.
        return about | {"stream": data.device.stream or 1}

    @public
    def torch(self) -> Any:
        """The memory as a torch tensor, shared; a copy of what torch cannot refer to (read-only, negative strides)."""
        import torch

        data = self._data
        if data.dtype.fields is not None:
            raise WrongDtype(f"torch has no tensors of {self.element!r}")
        if is_on_gpu(data):
            if not (torch.version.cuda or torch.version.hip):
                raise NoCuda("this torch was built without CUDA: it has no tensors on a GPU",
                             advice='use a.to("cpu").torch(), or install a torch for CUDA')  # fmt: skip
            return torch.as_tensor(self, device=f"cuda:{gpu().ordinal}")  # not torch's current one
        if not data.flags.writeable or any(s < 0 for s in data.strides):
            data = data.copy()
        tensor = torch.from_numpy(data.view(np.int16) if holds_bfloats(self.element) else data)
        if holds_bfloats(self.element):
            tensor = tensor.view(torch.bfloat16)
        if data is self._data:
            self._storage.show(ref(tensor))
        return tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Data:
        if dtype is None and not copy:
            return self.numpy()
        return np.array(self.numpy(), dtype=dtype) if copy else np.asarray(self.numpy(), dtype=dtype)

    @public
    def __dlpack__(self, **options: Any) -> Any:
        if is_on_gpu(self._data):
            raise WrongDevice("memory on a GPU is shared by __cuda_array_interface__, not by DLPack",
                              advice="use a.torch(), or a.to(\"cpu\")")  # fmt: skip
        if holds_bfloats(self.element):
            return self.torch().__dlpack__(**options)  # NumPy knows no bfloat16
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if is_on_gpu(self._data) else (1, 0)
