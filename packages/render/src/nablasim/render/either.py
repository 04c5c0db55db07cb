"""NumPy or torch: what cameras, meshes, lights and videos do with both, without importing torch where none is used.

A tensor is recognised by `new_tensor`. Constants beside tensors take their precision and device.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def is_tensor(value: Any) -> bool:
    return hasattr(value, "new_tensor")


def check_no_mask(value: Any) -> None:
    """NumPy and torch would draw what lies below the mask."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError("elements of an array are masked, and pictures know no masks: say what they are, "
                         "with value.filled(...)")  # fmt: skip


def first_tensor(values: Any) -> Any:
    """The first tensor among values; None if there is none."""
    return next((v for v in values if is_tensor(v)), None)


def library(*values: Any) -> Any:
    """torch, if one of the values is a tensor; else NumPy."""
    if first_tensor(values) is None:
        return np
    import torch

    return torch


def plain(value: Any) -> Any:
    """The numbers of a value, as NumPy has them; of a batch of `torch.func.vmap` those of its first element."""
    check_no_mask(value)
    return numbers(below(value)) if is_tensor(value) else np.asarray(value)


def numbers(tensor: Any) -> Any:
    """Those of a tensor, wherever it is."""
    import torch

    with torch._C._DisableFuncTorch():  # Inside of a transform what is detached would be wrapped again.
        return tensor.detach().cpu().numpy()


def below(tensor: Any, *, whole: bool = False) -> Any:
    """What lies below the transforms of `torch.func`; of a batch its first element, or the `whole` of it."""
    import torch
    from torch._C import _functorch

    while _functorch.is_functorch_wrapped_tensor(tensor):
        batch = _functorch.maybe_get_bdim(tensor) if _functorch.is_batchedtensor(tensor) else -1
        tensor = _functorch.get_unwrapped(tensor)
        if batch >= 0 and not whole:
            with torch._C._DisableFuncTorch():
                tensor = tensor.select(batch, 0)
    return tensor


def is_mapped(value: Any) -> bool:
    """Whether a tensor stands for a batch of `torch.func.vmap`, each element with numbers of its own."""
    return is_tensor(value) and below(value, whole=True).ndim > value.ndim


def as_one(xp: Any, value: Any, *others: Any) -> Any:
    """A value as an array of the library; constants in the precision and on the device of the tensors among others."""
    if xp is np:
        return np.asarray(value, dtype=np.float64)
    return value if is_tensor(value) else first_tensor(others).new_tensor(np.asarray(value))


def like(value: Any, points: Any) -> Any:
    """A value as an array of the kind, precision and device of the points. A tensor stays one, with its gradient."""
    if is_tensor(value):
        return value.to(points) if is_tensor(points) else value
    if is_tensor(points):
        return points.new_tensor(np.asarray(value))
    return np.asarray(value, dtype=points.dtype)


def concatenated(parts: Any, axis: int) -> Any:
    """Parts along an axis; tensors among them make all of them tensors."""
    xp = library(*parts)
    if xp is np:
        return np.concatenate([np.asarray(p, float) for p in parts], axis)
    one = first_tensor(parts)
    return xp.cat([p.to(one) if is_tensor(p) else one.new_tensor(np.asarray(p)) for p in parts], axis)


def flattened(parts: Any) -> Any:
    """All numbers of all parts in a row."""
    return concatenated([p.reshape(-1) if is_tensor(p) else np.ravel(p) for p in parts], 0)
