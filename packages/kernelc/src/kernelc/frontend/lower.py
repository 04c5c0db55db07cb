"""Entry of the front end: a Python function and a precision in, a verified kernel out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import types as t
from ..errors import CompilerBug, KernelError, MissingAnnotation, Span, TypeMismatch, Unsupported, WrongType
from ..ir import FALSE, ArrayRef, Kernel, Param, Query, Value, const, verify
from ..records import record
from .convert import Restart
from .loops import Loops
from .source import Capture, Source, StaticCapture
from .values import AbsentVal, ArrayVal, BundleVal, of_type, type_of


@record
class Lowered:
    """A kernel in the intermediate representation, and the outside names it depends on."""

    kernel: Kernel
    captures: tuple[Capture | StaticCapture, ...]


def signature(source: Source) -> dict[str, t.Type]:
    """The declared parameters of a kernel, in order."""
    spec = source.definition.args
    if spec.vararg or spec.kwarg or spec.kwonlyargs:
        raise Unsupported(f"kernel {source.name} has *args, **kwargs or keyword-only parameters", source.head,
                          advice="name its parameters one by one; launches pass them by position")  # fmt: skip
    found: dict[str, t.Type] = {}
    for arg in (*spec.posonlyargs, *spec.args):
        if arg.arg not in source.annotations:
            raise MissingAnnotation(f"parameter {arg.arg!r} of kernel {source.name} has no type", source.span(arg))
        try:
            found[arg.arg] = t.as_type(source.annotations[arg.arg])
        except WrongType as error:
            raise MissingAnnotation(error.message, source.span(arg)) from None
        if isinstance(found[arg.arg], (t.Tuple, t.Local)):
            text = f"parameter {arg.arg!r} of kernel {source.name} cannot be a tuple"
            raise MissingAnnotation(text, source.span(arg), advice="use a vector such as kc.int2, or two parameters")
        _check_values(arg.arg, found[arg.arg], source.span(arg))
    return found


def _check_values(name: str, kind: t.Type, span: Span) -> None:
    """Numbers, vectors and structs that are passed by value must be of types that kernels compute with."""
    try:
        for _, part in t.members(name, kind):
            if not isinstance(part, t.ArrayType):
                t.check_value(part)
    except WrongType as error:
        raise TypeMismatch(f"parameter {name!r}: {error.message}", span, advice=error.advice) from None


def lower(source: Source, real: t.Scalar, boxed: Sequence[str] = (), lacks: Sequence[str] = ()) -> Lowered:
    """Lower a kernel. `boxed` names values that are passed as one-element arrays, `lacks` what is optional and absent:
    parameters, and members of bundles, as `bodies.x`."""
    try:
        try:
            return _lower(source, real, boxed, lacks, records=False)
        except Restart:
            return _lower(source, real, boxed, lacks, records=True)
    except RecursionError:
        raise Unsupported(f"{source.name} is nested too deeply", source.head,
                          advice="split long expressions over several lines") from None  # fmt: skip


def _lower(source: Source, real: t.Scalar, boxed: Sequence[str], lacks: Sequence[str], *, records: bool) -> Lowered:
    state = Loops(source, real)
    state.records = records
    frame = state.frame
    frame.is_kernel = True
    state.b.span = source.head
    state.tids = [Value(t.INT32, f"tid{axis}") for axis in range(4)]
    params: list[Param] = []
    for name, kind in signature(source).items():
        frame.env[name] = _argument(state, name, t.resolve(kind, real), params, boxed, lacks)
    frame.types.update({n: k for n, v in frame.env.items() if (k := type_of(v)) is not None})
    frame.env["$ret"] = FALSE
    if records:
        frame.env["$seq"] = const(t.INT64, 0)
    try:
        state.body(source.definition.body)
    except (KernelError, Restart, RecursionError):
        raise
    except Exception as error:
        raise CompilerBug(f"the compiler failed: {type(error).__name__}: {error}", state.b.span) from error
    dims = state.dims[0] if state.dims else 0
    body = state.b.block
    body.body[:0] = [Query(v, "tid", axis, None, source.head) for axis, v in enumerate(state.tids[:dims])]
    kernel = Kernel(source.name, params, body, real, source.head, dims)
    return Lowered(verify(kernel), tuple(state.captures.values()))


def _argument(
    state: Loops, name: str, kind: t.Type, params: list[Param], boxed: Sequence[str], lacks: Sequence[str]
) -> Any:
    """What a parameter means in the kernel: an array, a value, or a bundle of them. Adds what it is made of."""
    if isinstance(kind, t.Optional):
        if name in lacks:
            params.extend(Param(path, None) for path, _ in t.members(name, kind))
            return AbsentVal(name)
        kind = kind.kind
    if isinstance(kind, t.Struct) and kind.is_bundle:
        members = [_argument(state, f"{name}.{n}", inner, params, boxed, lacks) for n, inner in kind.fields]
        return BundleVal(kind, name, tuple(members))
    if isinstance(kind, t.ArrayType):
        array = ArrayRef(name, kind, len(params))
        params.append(Param(name, array))
        return ArrayVal(array)
    if name in boxed:
        array = ArrayRef(name, t.ArrayType(kind, 1), len(params))
        params.append(Param(name, array))
        leaves = state.b.load(array, [const(t.INT32, 0)], range(len(t.leaves(kind))), t.leaves(kind))
        return of_type(kind, leaves)
    values = tuple(Value(scalar, label) for label, scalar in t.leaf_items(kind, name))
    params.append(Param(name, None, values))
    return of_type(kind, values)
