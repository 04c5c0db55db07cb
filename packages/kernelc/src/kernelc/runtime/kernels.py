"""`@kc.kernel`: a function that is launched over a grid. Holds its variants by precision and its launch plans."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from operator import is_
from typing import Any

import numpy as np

from .. import ir
from .. import types as t
from ..codegen import pack_scalar, packer
from ..config import config
from ..errors import (
    CutGradient,
    LaunchError,
    MixedLaunch,
    Overlap,
    ReadOnly,
    WrongArity,
    WrongChoice,
    WrongDevice,
    WrongDtype,
    WrongRank,
    WrongShape,
    WrongUse,
    public,
)
from ..frontend import Source, signature
from ..homes import pickled, sent_by_value
from ..structs import Bundle, StructValue, absent, gathered, spread
from .arrays import Array
from .compile import Options, Variant
from .content import check_no_mask, numbers, offers_device_memory, plain
from .creation import array, copied
from .cuda.device import device as gpu
from .elements import holds_bfloats
from .halves import bits_of
from .memory import check_no_gradient, is_dense, is_on_gpu, is_tensor, numpy_of, overlaps_itself, shown


@dataclass
class Plan:
    """A checked launch signature: everything about a launch that does not depend on pointers and sizes."""

    kernel: Kernel
    variant: Variant
    contiguous: frozenset[int]
    arrays: tuple[int, ...]
    packers: tuple[Callable[[Any], bytes] | None, ...]
    """By argument: what turns a number into words; None for arrays."""
    generation: int = field(default_factory=lambda: config._generation)
    plain: bool = field(default_factory=lambda: config.device == "cpu" and not config.debug)
    """Launches that do not name a device run on the CPU, without checks inside the kernel."""
    on_gpu: bool = False
    """The arrays are on a GPU."""
    width: int = 0
    """Launches of at least this many threads run in lanes."""
    binaries: list[Any] = field(default_factory=lambda: [None, None])
    """The forward kernel for small launches and for those that fill lanes."""

    def __post_init__(self) -> None:
        self.numbers = len(self.arrays) < len(self.packers)
        self.dims, self.block = self.variant.kernel.dims, self.variant.kernel.block
        self.written = self.variant.written
        self.kinds = tuple(self.kernel.params.values())
        self.repeats: list[Any] = []
        """Weak references to what is kept of tapes that began with a launch like this (repeats.py)."""
        self.seen: dict[Any, None] = {}
        """What such tapes have recorded."""
        self.repeats_pay = True

    @cached_property
    def reals(self) -> frozenset[int]:
        """The arrays of reals that the kernel works on: through these, a gradient may go."""
        kinds = [kind.element if isinstance(kind, t.ArrayType) else kind for kind in self.kinds]
        worked_on = self.variant.touched.intersection(self.arrays)
        return frozenset([i for i in worked_on if any(s.is_float for s in t.leaves(kinds[i]))])

    def stale(self) -> bool:
        """Whether a setting, or a name that the kernel captured, has changed."""
        return self.generation != config._generation or self.variant.changed()


class Kernel:
    """A kernel. `kc.launch(kernel, dim, inputs, outputs)` runs it."""

    launchable = True

    def __init__(self, function: Callable[..., Any], options: Options):
        self.source = Source(function)
        self.options = options
        self._variants: dict[Any, Variant] = {}
        self._plans: dict[Any, Plan] = {}
        self._passed: dict[Any, Any] = {}
        """Plans of launches with memory that is no array, by types and shapes: passing.py."""
        self.bundled = False
        """Whether launches with bundles were seen: then they are found by what bundles say of themselves."""
        update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.source.name

    @cached_property
    def declared(self) -> dict[str, t.Type]:
        """The declared parameters with their types: what a launch is given."""
        return signature(self.source)

    @cached_property
    def params(self) -> dict[str, t.Type]:
        """The arrays and values that the kernel works on: its parameters, with bundles as their members, `bodies.x`."""
        return {path: kind for name, declared in self.declared.items() for path, kind in t.members(name, declared)}

    @cached_property
    def bundles(self) -> bool:
        """Whether a parameter has members, or may be absent."""
        return any(isinstance(kind, t.Optional) or (t.has_arrays(kind) and isinstance(kind, t.Struct))
                   for kind in self.declared.values())  # fmt: skip

    @cached_property
    def optional(self) -> tuple[str, ...]:
        """The parameters and members that may be absent, as `bodies.wind`."""
        return tuple(path for name, kind in self.declared.items() for path in t.optional_members(name, kind))

    @cached_property
    def values(self) -> frozenset[str]:
        """The parameters that are numbers, vectors, structs: not arrays."""
        return frozenset(name for name, kind in self.params.items() if not isinstance(kind, t.ArrayType))

    @cached_property
    def reals(self) -> list[tuple[int, str, bool]]:
        """The parameters with reals: position, name, and whether these are "the reals of this launch"."""
        found = []
        for i, (name, declared) in enumerate(self.params.items()):
            kinds = t.leaves(declared.element if isinstance(declared, t.ArrayType) else declared)
            if any(s.is_float for s in kinds):
                found.append((i, name, any(s is t.REAL for s in kinds)))
        return found

    def __repr__(self) -> str:
        return f"<kc.kernel {self.name}>"

    @public
    def __reduce__(self) -> Any:
        if sent_by_value(self):
            return Kernel, (self.source.function, self.options)
        return pickled(self, "the kernel")

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, _: Any) -> Kernel:
        return self

    @public
    def __call__(self, *args: Any, **named: Any) -> Any:
        raise WrongUse(f"{self.name} is a kernel: it is launched, not called",
                       advice=f"write kc.launch({self.name}, dim, inputs=[…], outputs=[…])")  # fmt: skip

    # -- variants
    def variant(self, real: t.Scalar, boxed: Sequence[str] = (), lacks: Sequence[str] = ()) -> Variant:
        """The kernel lowered for one precision; lowered anew when a captured name has changed.

        boxed: the values that are given as arrays of one element; lacks: the optional members that are absent.
        """
        key = (real, tuple(boxed), tuple(lacks), config.singular, config.debug)
        found = self._variants.get(key)
        if found is None or found.changed():
            found = self._variants[key] = Variant(self.source, real, boxed, self.options, lacks)
        return found

    # -- bundles
    def spread(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of a launch with bundles as their members: one for each of `params`."""
        self.check_arity(args)
        if not self.bundles:
            return list(args)
        flat: list[Any] = []
        for (name, kind), arg in zip(self.declared.items(), args, strict=True):
            self.check_bundle(name, kind, arg)
            flat.extend(value for _, value in spread(name, kind, arg))
        return flat

    def gather(self, flat: Sequence[Any], like: Sequence[Any]) -> list[Any]:
        """The arguments of a launch from their members, `like` those that were spread."""
        members = iter(flat)
        return [gathered(kind, arg, members) for kind, arg in zip(self.declared.values(), like, strict=True)]

    def lacking(self, args: Sequence[Any]) -> list[str]:
        """The optional members, and parameters, that are absent."""
        if not self.bundles:
            return []
        given = zip(self.declared.items(), args, strict=True)
        return [path for (name, kind), arg in given for path in absent(name, kind, arg)]

    def check_arity(self, args: Sequence[Any]) -> None:
        names = self.declared
        if len(args) != len(names):
            many = f"{len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)})"
            raise WrongArity(f"{self.name} takes {many}, but got {len(args)}")

    def check_bundle(self, name: str, kind: t.Type, arg: Any) -> None:
        wanted = kind.kind if isinstance(kind, t.Optional) else kind
        if not (isinstance(wanted, t.Struct) and wanted.is_bundle) or (arg is None and wanted is not kind):
            return
        if not isinstance(arg, Bundle) or arg._struct != wanted:
            found = arg._struct.name if isinstance(arg, Bundle) else type(arg).__name__
            found = f"the type {arg.name} itself" if isinstance(arg, t.Struct) else found
            made = f"{wanted.name}({', '.join(f'{n}=…' for n in wanted.names)})"
            error = WrongDtype(f"{self.name}: argument {name!r} must be a {wanted.name}, not {found}",
                               advice=f"make one: {made}")  # fmt: skip
            error.locate(self.source.parameter_span(name))
            raise error

    # -- plans
    def plan(self, args: list[Any]) -> tuple[Plan, list[Any]]:
        """The plan for these arguments, and the arguments as arrays and numbers that fit it, one for each of `params`.

        An optional member that is absent is None there."""
        flat, names = self.spread(args), self.params
        real = self.precision(flat)
        boxed = [n for n, a in zip(names, flat, strict=True) if a.__class__ is Array and n in self.values]
        lacks = self.lacking(args)
        variant = self.variant(real, boxed, lacks)
        kinds = [t.resolve(kind, real) for kind in names.values()]
        fitted = []
        for i, (name, kind, arg) in enumerate(zip(names, kinds, flat, strict=True)):
            try:
                absent = arg is None and lacks and any(name == n or name.startswith(f"{n}.") for n in lacks)
                fitted.append(None if absent else self.fit(i, name, kind, arg, real, variant))
            except (CutGradient, LaunchError) as error:
                error.locate(self.source.parameter_span(name.partition(".")[0]))
                raise
        # A list of members is no list of arguments: it is found under another key.
        key = ("members", *signature_of(fitted)) if self.bundles else signature_of(fitted)
        plan = self._plans.get(key)
        if plan is None or plan.variant is not variant or plan.stale():
            plan = self._plans[key] = self.make_plan(variant, fitted)
        if self.bundles and all(map(is_, fitted, flat)) and len(flat) == sum(map(_width, args)):
            # The next launch finds it by the signatures of the bundles, without looking at their members.
            self._plans[signature_of(args)] = plan
            self.bundled = True
        return plan, fitted

    def precision(self, args: list[Any]) -> t.Scalar:
        """The real type of a launch: that of its arrays; float32 where there is none."""
        decided: tuple[str, t.Scalar] | None = None
        pinned: set[t.Scalar] = set()
        for i, name, polymorphic in self.reals:
            if not isinstance(self.params[name], t.ArrayType) and args[i].__class__ is not Array:
                continue  # a value, like a number, takes the precision of the launch
            found = _real_of(args[i])
            if found is None:
                continue
            if polymorphic:
                if decided is not None and decided[1] is not found:
                    raise MixedLaunch(f"{self.name}: {decided[0]!r} is {decided[1]}, but {name!r} is {found}")
                decided = decided or (name, found)
            else:
                pinned.add(found)
        if decided is not None:
            return decided[1]
        return pinned.pop() if len(pinned) == 1 else t.FLOAT32

    def fit(self, i: int, name: str, kind: t.Type, arg: Any, real: t.Scalar, variant: Variant) -> Any:
        """Argument `i` as the kernel wants it, or an error that names it."""
        if not isinstance(kind, t.ArrayType):
            if isinstance(arg, Array):
                if arg.size != 1:
                    raise WrongShape(f"{self.name}: argument {name!r} is one value, not an array of shape {arg.shape}",
                                     advice="pass an array of one element: kc.scalar(...)")  # fmt: skip
                return self.fit_array(name, arg, t.ArrayType(kind, 1), real)
            value = self.fit_value(name, arg, kind)
            if not isinstance(kind, t.Scalar):
                b"".join(self.words(name, value, kind))  # now: the interpreter would take what is no number of its type
            return value
        if arg.__class__ is not Array:
            shared = _shared(arg, kind)
            arg = self.wrap(name, arg, kind, i in variant.written) if shared is None else shared
        found = self.fit_array(name, arg, kind, real)
        if i in variant.written and not found._data.flags.writeable and not found.own():
            raise ReadOnly(f"{self.name}: argument {name!r} is written, but its memory is read-only")
        if i in variant.written and overlaps_itself(found._data):
            raise Overlap(f"{self.name}: {name!r} is written, but its elements overlap each other",
                          advice="write to memory with a place for every element: kc.zeros, np.zeros")  # fmt: skip
        return found

    def wrap(self, name: str, arg: Any, kind: t.ArrayType, written: bool) -> Array:
        """An array-like argument as an array: shared where possible."""
        if arg is None or isinstance(arg, (str, bytes, dict, set)) or callable(arg):
            raise WrongDtype(f"{self.name}: argument {name!r} must be an array, not {type(arg).__name__}")
        if isinstance(arg, (int, float, np.generic)):
            raise WrongRank(f"{self.name}: argument {name!r} must be an array of {kind.element!r}, not a number",
                            advice="wrap it: kc.array([value])")  # fmt: skip
        made = array(arg, device=self.place(arg))
        if is_on_gpu(made._data):
            return made
        if written and made._data.size and not np.may_share_memory(made._data, numbers(arg)):
            raise ReadOnly(f"{self.name}: argument {name!r} is written, but only a copy of it could be",
                           advice="pass an array: kc.zeros, or a NumPy array of native, aligned numbers")  # fmt: skip
        if made.element is t.INT64 and kind.element is t.INT32 and not written:
            # NumPy's default integers: a copy serves where it is only read and fits.
            if made.size == 0 or (made._data.min() >= -(2**31) and made._data.max() < 2**31):
                return copied(made, t.INT32)
        _, trailing = t.element_dtype(kind.element)
        shares = made.as_element(kind.element) is not None
        if trailing and not shares and made._data.shape[made._data.ndim - len(trailing) :] == trailing:
            if written:
                raise ReadOnly(f"{self.name}: argument {name!r} is written, but its components do not lie side by side",
                               advice="pass a contiguous array")  # fmt: skip
            return copied(made, made.element)
        return made

    def place(self, arg: Any) -> str | None:
        """Memory stays where it is; only lists go where arrays are made."""
        return None if isinstance(arg, (list, tuple)) or offers_device_memory(arg) else "cpu"

    def fit_array(self, name: str, arg: Array, kind: t.ArrayType, real: t.Scalar) -> Array:
        if arg._source is not None and arg.real is not None and _takes_reals(kind.element):
            arg.adapt(real if any(s is real for s in t.leaves(kind.element)) else t.leaves(kind.element)[0])
        found = arg.as_element(kind.element)
        if found is None:
            wanted, held = _plain_name(kind.element), f"{_plain_name(arg.element)} in shape {arg.shape}"
            raise WrongDtype(f"{self.name}: argument {name!r} must be an array of {wanted}, but holds {held}",
                             advice=_dtype_advice(kind, arg))  # fmt: skip
        if found.ndim != kind.ndim:
            many = f"{kind.ndim} dimension{'s' * (kind.ndim > 1)}"
            raise WrongRank(f"{self.name}: argument {name!r} must have {many}, but has shape {found.shape}")
        return found

    def fit_value(self, name: str, arg: Any, kind: t.Type) -> Any:
        check_no_gradient(arg)
        if type(arg).__module__.split(".")[0] == "torch" and getattr(arg, "ndim", 1) == 0:
            arg = arg.item()
        if isinstance(kind, t.Scalar):
            if isinstance(arg, np.ndarray) and arg.ndim == 0:
                arg = arg[()]
            if kind is t.BOOL and not isinstance(arg, (bool, np.bool_)):
                raise self.misfit(name, arg, kind)
            if isinstance(arg, np.timedelta64):  # NumPy counts it among the integers
                raise self.misfit(name, arg, kind)
            if kind.is_int and not isinstance(arg, (int, np.integer)):
                raise self.misfit(name, arg, kind)
            if kind.is_float and not isinstance(arg, (int, float, np.integer, np.floating)):
                raise self.misfit(name, arg, kind)
            if not _holds(kind, arg):
                raise WrongDtype(f"{self.name}: argument {name!r} is {repr(arg)[:40]}, which does not fit {kind}",
                                 advice="annotate the parameter with a wider type: kc.int64, kc.float64")  # fmt: skip
            return arg
        if isinstance(kind, t.Struct):
            if not isinstance(arg, StructValue) or arg.struct.name != kind.name:
                raise self.misfit(name, arg, kind)
            return arg
        try:
            data = np.asarray(plain(arg), dtype=np.float64)
        except (TypeError, ValueError):
            raise self.misfit(name, arg, kind) from None
        assert isinstance(kind, t.Composite)
        if data.shape != kind.shape:
            raise WrongDtype(f"{self.name}: argument {name!r} must be {_plain_name(kind)}, not of shape {data.shape}")
        return arg

    def misfit(self, name: str, arg: Any, kind: t.Type) -> WrongDtype:
        """The error for a value of another type."""
        found = getattr(getattr(arg, "struct", None) or getattr(arg, "_struct", None), "name", type(arg).__name__)
        advice = "" if isinstance(kind, t.Struct) else f"convert it: {_short_name(kind)}(...)"
        return WrongDtype(f"{self.name}: argument {name!r} must be {_plain_name(kind)}, not {found}", advice=advice)

    def make_plan(self, variant: Variant, args: list[Any]) -> Plan:
        arrays = tuple(i for i, a in enumerate(args) if isinstance(a, Array))
        contiguous = frozenset(i for i in arrays if args[i]._counted)
        self.check_shapes(variant, args)
        packers = tuple(
            None if i in arrays else _nothing if args[i] is None else self.packer(name, t.resolve(kind, variant.real))
            for i, (name, kind) in enumerate(self.params.items())
        )  # fmt: skip
        on_gpu = any(is_on_gpu(args[i]._data) for i in arrays)
        made = Plan(self, variant, contiguous, arrays, packers, on_gpu=on_gpu)
        made.plain = made.plain and not on_gpu
        return made

    def check_shapes(self, variant: Variant, args: list[Any]) -> None:
        """The shape of an array is int32 in a kernel."""
        for s in variant.kernel.body.walk():
            if isinstance(s, ir.Query) and s.what == "shape" and s.array is not None:
                size = args[s.array.position].shape[s.axis]
                if size >= 2**31:
                    asked = f"{s.array.name}.shape[{s.axis}]"
                    raise WrongShape(f"{self.name} asks for {asked}, which is an int, but {size} does not fit",
                                     advice="pass the size as an argument of type kc.int64, or an array with less than "
                                     "2**31 elements along each axis")  # fmt: skip

    def packer(self, name: str, kind: t.Type) -> Callable[[Any], bytes]:
        """A function from a value to its words; it raises where the value does not fit: plans only know its class."""
        if isinstance(kind, t.Scalar):
            return packer(kind)

        def pack(value: Any) -> bytes:
            self.fit_value(name, value, kind)
            return b"".join(self.words(name, value, kind))

        return pack

    def words(self, path: str, value: Any, kind: t.Type) -> Iterator[bytes]:
        """The words of a vector, a matrix or a struct; what is no number of its type is an error that names it."""
        if isinstance(kind, t.Struct):
            for name, field in kind.fields:
                yield from self.words(f"{path}.{name}", getattr(value, name), field)
            return
        try:
            flat = _flat(value, kind)
            if kind is t.BOOL and flat[0] not in (0, 1):
                raise TypeError(flat)
            yield b"".join(pack_scalar(s, v) for s, v in zip(t.leaves(kind), flat, strict=True))
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            wanted = _plain_name(kind)
            raise WrongDtype(f"{self.name}: argument {path!r} is {shown(value)}, which does not fit {wanted}",
                             advice="convert it, or annotate it with a wider type") from None  # fmt: skip


def _nothing(_: Any) -> bytes:
    """The words of what is absent."""
    return b""


def _width(arg: Any) -> int:
    """How many of a kernel's `params` an argument is."""
    return len(arg._note().flat) if arg.__class__ is Bundle else 1


def signature_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """What a plan depends on: types and layout of arrays, kinds of numbers."""
    return tuple([a._sig if a.__class__ is Array or a.__class__ is Bundle else a.__class__ for a in args])


def _shared(data: Any, kind: t.ArrayType) -> Array | None:
    """An array of the memory of a NumPy array or a tensor that is just as the kernel wants it; None if it is not."""
    if data.__class__ is not np.ndarray:
        if not is_tensor(data) or data.is_cuda:
            return None
        bits = bits_of(data)
        if (bits is not None) != holds_bfloats(kind.element):
            return None
        data = numpy_of(data) if bits is None else bits
    elif holds_bfloats(kind.element):
        return None
    base, trailing = t.element_dtype(kind.element)
    n, flags = len(trailing), data.flags
    if data.dtype != base or data.ndim != kind.ndim + n or not flags.writeable or not flags.aligned:
        return None
    if n and (data.shape[kind.ndim :] != trailing or not is_dense(data, n)):
        return None
    return Array(data.view(), kind.element)


def _flat(value: Any, kind: t.Type) -> list[Any]:
    if isinstance(kind, t.Struct):
        return [x for name, field_type in kind.fields for x in _flat(getattr(value, name), field_type)]
    if isinstance(kind, t.Scalar):
        if value.__class__ is not float and value.__class__ is not int:
            value = _constant(value)
        return [value.item() if hasattr(value, "item") else value]
    return [x.item() for x in np.asarray(plain(_constant(value))).reshape(-1)]


def _constant(value: Any) -> Any:
    """A value that goes into the argument block: it must not carry a gradient, which would end there."""
    if isinstance(value, Array):
        if value.requires_grad or value._carries:
            raise CutGradient("an array that carries a gradient would be a constant in a struct",
                              advice="pass it as an argument of its own, or as a member of a bundle")  # fmt: skip
        return value.numpy().reshape(-1)[0] if value.size == 1 else value.numpy()
    check_no_gradient(value)
    check_no_mask(value)
    return value


def _takes_reals(element: t.Type) -> bool:
    """Whether numbers without a precision become elements: not where they would be whole numbers, or bfloat16."""
    return all(s.is_float for s in t.leaves(element)) and not holds_bfloats(element)


_reals: dict[Any, t.Scalar | None] = {}


def _real_of(arg: Any) -> t.Scalar | None:
    """The precision that an argument asks for; None if it does not care."""
    if isinstance(arg, Array):
        return None if arg._source is not None or (arg.real is not None and arg.real.is_half) else arg.real
    dtype = getattr(arg, "dtype", None)
    if dtype is None or (is_tensor(arg) and arg.is_nested) or not getattr(arg, "shape", ()):
        return None
    if dtype not in _reals:
        name = str(dtype).removeprefix("torch.")
        _reals[dtype] = {"float32": t.FLOAT32, "float64": t.FLOAT64}.get(name)
    return _reals[dtype]


def _plain_name(kind: t.Type) -> str:
    if isinstance(kind, t.Composite) and kind.scalar.is_float:
        return f"{kind.with_scalar(t.REAL)!r} ({kind.scalar})"
    return repr(kind)


def _dtype_advice(kind: t.ArrayType, arg: Array) -> str:
    if arg.element is t.INT64 and kind.element is t.INT32:
        return "make it int32: kc.array(data, dtype=int)"
    held, wanted = t.leaves(arg.element)[0], t.leaves(kind.element)[0]
    if held is not wanted and (held.is_stored or held is t.UINT64):
        return f"annotate it as kc.Array[kc.{held}], which kernels read without a copy; or convert the data"
    _, trailing = t.element_dtype(kind.element)
    if trailing and arg.shape[kind.ndim :] == trailing:
        return "the components of an element must lie side by side in memory: kc.array(np.ascontiguousarray(data))"
    return f"an array of shape (…, {', '.join(map(str, trailing))}) fits, too" if trailing else ""


def _short_name(kind: t.Type) -> str:
    """How a value of a type is made outside of kernels."""
    if isinstance(kind, t.Scalar):
        return {"b": "bool", "i": "int", "u": "int", "f": "float"}[kind.kind]
    return f"kc.{kind.with_scalar(t.REAL)!r}" if isinstance(kind, t.Composite) else repr(kind)


def _holds(kind: t.Scalar, number: Any) -> bool:
    """Whether a number is in the range of a type. Infinities and NaN are reals."""
    if kind is t.BOOL:
        return True
    if kind.is_int:
        limits = np.iinfo(kind.numpy)
        return bool(limits.min <= int(number) <= limits.max)
    try:
        packer(kind)(float(number))
    except (OverflowError, struct.error):
        return False
    return True


def check_device(device: str | None, plan: Plan, args: Sequence[Any]) -> str:
    """Where a launch runs: where it says, else where its arrays are. Raises if they are elsewhere."""
    where = device or ("cuda" if plan.on_gpu else config.device)
    if where not in ("cpu", "python", "cuda"):
        raise WrongDevice(f"unknown device {where!r}", advice='use "cpu", "cuda" or "python"')
    if where == "cuda":
        gpu()  # raises if there is none
    if plan.on_gpu or where == "cuda":
        names = list(plan.kernel.params)
        for i in plan.arrays:
            if is_on_gpu(args[i]._data) != (where == "cuda"):
                home, other = ("cpu", "cuda") if where == "cuda" else ("cuda", "cpu")
                name = names[i]
                made = f', or of NumPy kc.array({name}, device="cuda")' if where == "cuda" else ""
                raise WrongDevice(
                    f"{plan.kernel.name} is launched on {where!r}, but {name!r} is on {home!r}",
                    advice=f'move it: {name}.to("{other}"){made}')  # fmt: skip
    return where


@public
def kernel(
    function: Callable[..., Any] | None = None, *, loop_tape: str = "all", lanes: int | None = None, block: int = 0,
    curvature: bool = True,
) -> Any:  # fmt: skip
    """Decorator: make a Python function a kernel.

    loop_tape: "sqrt" trades time for memory in long loops. lanes: how many threads run side by side in SIMD lanes
    (0, 2, 4, 8 or 16), instead of what kc.config.lanes says. block: the last dimension of every launch has this size,
    a multiple of 16; what depends on the other indices only is then computed once for many threads. curvature: False
    says that only its gradients are right, as those of rules (`@f.adjoint`) that leave out what adds up to nothing:
    second derivatives are refused.
    """
    if loop_tape not in ("all", "sqrt"):
        raise WrongChoice(f"loop_tape cannot be {loop_tape!r}", advice='choose one of "all", "sqrt"')
    if lanes not in (None, 0, 2, 4, 8, 16):
        raise WrongChoice(f"lanes cannot be {lanes!r}", advice="choose one of 0, 2, 4, 8, 16")
    if not isinstance(block, int) or block < 0 or block % 16:
        raise WrongChoice(f"block cannot be {block!r}", advice="choose a multiple of 16, or 0 for launches of any size")
    options = Options(loop_tape, lanes, block, curvature)

    @public
    def make(f: Callable[..., Any]) -> Kernel:
        if not inspect.isfunction(f):
            raise WrongUse(f"@kc.kernel makes a kernel of a function, not of {f!r}", advice="write it above a `def`")
        return Kernel(f, options)

    return make if function is None else make(function)
