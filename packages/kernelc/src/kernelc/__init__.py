"""kernelc: Python functions become kernels; gradients are right, or there is an error that names the line.

import kernelc as kc
"""

# ruff: noqa: F401  (names for users; __all__ below is computed)
import math as _math
from types import ModuleType as _ModuleType
from typing import Any as _Any

from . import errors as _errors
from .builtins import TABLE as _TABLE
from .config import config
from .errors import KernelError
from .frontend import func
from .frontend.intrinsics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xor,
    grad,
    load,
    randf,
    rng,
    static,
    stop_grad,
    store,
    tid,
    where,
)
from .runtime import (
    Tape,
    array,
    checkpoint,
    empty,
    empty_like,
    explain,
    from_dlpack,
    from_torch,
    full,
    inspect,
    jacobian,
    jvp,
    kernel,
    launch,
    ones,
    reduce,
    scalar,
    scan,
    sort,
    unique,
    zeros,
    zeros_like,
)
from .structs import struct
from .types import (
    Array,
    bfloat16,
    float2,
    float3,
    float4,
    float16,
    float32,
    float64,
    int2,
    int3,
    int4,
    int8,
    int16,
    int32,
    int64,
    local,
    mat,
    mat22,
    mat33,
    mat44,
    quat,
    spatial_matrix,
    spatial_vector,
    tensor,
    transform,
    uint8,
    uint16,
    uint32,
    uint64,
    vec,
)

pi = _math.pi
_BUILTINS = {name: row for name, row in _TABLE.rows.items() if row.public}
_ERRORS = {n: e for n, e in vars(_errors).items() if isinstance(e, type) and issubclass(e, KernelError)}
globals().update(_BUILTINS)
globals().update(_ERRORS)
# Its kernels use the names above.
from .spatial import Bvh, HashGrid, bvh_query, bvh_query_ray, hash_grid_query  # noqa: E402

# Type checkers read __init__.pyi, which docs/generate.py writes from this list.
__all__ = sorted(n for n, v in globals().items() if not n.startswith("_") and not isinstance(v, _ModuleType))


def __getattr__(name: str) -> _Any:
    """`kc.torch`, `kc.testing` and the like are imported when they are asked for: kernelc itself needs none."""
    if name == "__version__":
        from importlib.metadata import version  # it takes a while to import

        return version("kernelc")
    if name in ("torch", "jax", "testing", "aot", "cuda"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
