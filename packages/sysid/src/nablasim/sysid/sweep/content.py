"""Digests of what things are: the same for equal content in every process, another one for anything else.

Arrays count by their numbers, objects by their class and state, files by their bytes, functions by their code and by
what it reads. Code of packages that are installed counts by its name; code of the user's own by its instructions.
What has no content that a later process could compare is refused: a digest that leaves it out would call different
things the same.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import io
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

OWN = ("kernelc", "nablasim")
"""Packages of this house: their version is part of what uses digests."""


class NoContent(TypeError):
    """Something that cannot be compared with what a later process has."""


def digest(value: Any, name: str = "value") -> str:
    """Of everything that a value holds. `name` is what errors call it."""
    return _Reader().read(value, name).hex()


class _Reader:
    """One reading: remembers what it has seen, so that shared things are read once and circles end."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._open: dict[int, int] = {}
        self._alive: list[Any] = []

    def read(self, value: Any, name: str) -> bytes:
        key = id(value)
        if key in self._open:
            return _hash(b"circle", str(self._open[key]).encode())
        if key not in self._known:
            self._open[key] = len(self._open)
            try:
                made = self._content(value, name)
            except RecursionError:
                raise NoContent(f"{name} is nested too deeply to be compared") from None
            finally:
                del self._open[key]
            self._known[key] = made
            self._alive.append(value)  # An id is given again when its owner is gone.
        return self._known[key]

    def _content(self, value: Any, name: str) -> bytes:
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes, bytearray):
            return _hash(kind.__name__.encode(), value if kind in (bytes, bytearray) else repr(value).encode())
        if kind in (type(Ellipsis), type(NotImplemented)):
            return _hash(kind.__name__.encode())
        if kind in (list, tuple):
            return self._all(kind.__name__, ((f"{name}[{k}]", part) for k, part in enumerate(value)))
        if kind in (dict, types.MappingProxyType):
            return self._mapping(value, name)
        if kind in (set, frozenset):
            return _hash(kind.__name__.encode(), *sorted(self.read(part, f"{name}{{…}}") for part in value))
        torch = sys.modules.get("torch")  # Looked up each time: it may be imported after this module.
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        for type_, read in _KINDS:
            if isinstance(value, type_):
                return read(self, value, name)
        return self._object(value, name)

    def _all(self, kind: str, parts: Iterable[tuple[str, Any]]) -> bytes:
        return _hash(kind.encode(), *(self.read(part, name) for name, part in parts))

    def _mapping(self, value: Mapping[Any, Any], name: str) -> bytes:
        pairs = ((self.read(k, f"a key of {name}"), self.read(v, f"{name}[{_short(k)}]")) for k, v in value.items())
        return _hash(b"dict", *(part for pair in pairs for part in pair))

    # -- numbers and files
    def _array(self, value: np.ndarray, name: str) -> bytes:
        if type(value) not in (np.ndarray, np.memmap):
            return self._object(value, name)
        head = (b"array", repr((value.dtype.descr, value.shape)).encode())
        if value.dtype.names is not None:  # Between fields there may be bytes that nobody wrote.
            return _hash(*head, *(self.read(value[field], f"{name}[{field!r}]") for field in value.dtype.names))
        if value.dtype.hasobject:
            return _hash(*head, self.read(value.tolist(), name))
        return _hash(*head, np.ascontiguousarray(value).tobytes())

    def _tensor(self, value: Any, name: str) -> bytes:
        held = value.detach().cpu().contiguous() if value.layout == sys.modules["torch"].strided else None
        if held is None or held.is_quantized:
            raise NoContent(f"{name} is a tensor that is not dense: pass it as a dense one")
        numbers = held.resolve_conj().resolve_neg().reshape(-1).view(sys.modules["torch"].uint8).numpy().tobytes()
        return _hash(b"tensor", repr((str(held.dtype), tuple(held.shape))).encode(), numbers)

    def _path(self, value: PurePath, name: str) -> bytes:
        """The name; and the bytes of a file, which may be another one next time."""
        parts = [b"path", str(value).encode("utf-8", "surrogateescape")]
        if isinstance(value, Path) and value.is_file():
            with value.open("rb") as file:
                parts.append(hashlib.file_digest(file, "sha256").digest() if sys.version_info >= (3, 11)
                             else hashlib.sha256(file.read()).digest())  # fmt: skip
        return _hash(*parts)

    # -- code
    def _function(self, value: types.FunctionType, name: str) -> bytes:
        called = f"{value.__module__}.{value.__qualname__}"
        if not _is_users(value.__module__) and "<l" not in value.__qualname__:
            return _hash(b"function", called.encode())
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        state = (value.__defaults__, value.__kwdefaults__, cells, getattr(value, "__wrapped__", None))
        globals_ = [(key, self._global(value, key, f"{key}, which {called} reads,")) for key in _globals(value)]
        return _hash(b"function", called.encode(), self._code(value.__code__, name), self.read(state, name),
                     *(part for key, made in globals_ for part in (key.encode(), made)))  # fmt: skip

    def _global(self, function: types.FunctionType, key: str, name: str) -> bytes:
        value = function.__globals__[key]
        if isinstance(value, types.ModuleType) and _is_users(value.__name__):
            used = [n for n in sorted(_names(function.__code__)) if n in vars(value)]
            return self._all(f"module {value.__name__}", ((f"{key}.{n}", getattr(value, n)) for n in used))
        return self.read(value, name)

    def _code(self, code: types.CodeType, name: str) -> bytes:
        """Without names of files and numbers of lines: moving a function does not change it."""
        plan = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_names,
                code.co_varnames, code.co_freevars, code.co_cellvars)  # fmt: skip
        return _hash(b"code", repr(plan).encode(), code.co_code, self.read(code.co_consts, name))

    def _class(self, value: type, name: str) -> bytes:
        called = f"{value.__module__}.{value.__qualname__}"
        if not _is_users(value.__module__):
            return _hash(b"class", called.encode())
        parts = {k: v for k, v in vars(value).items() if k not in _MADE and not k.startswith("_abc_")}
        members = ((f"{called}.{k}", part) for k in sorted(parts) for part in (k, parts[k]))
        bases = self._all("bases", ((name, base) for base in value.__bases__))
        return _hash(b"class", called.encode(), bases, self._all("members", members))

    def _method(self, value: types.MethodType, name: str) -> bytes:
        return self._all("method", ((name, value.__func__), (name, value.__self__)))

    def _builtin(self, value: types.BuiltinFunctionType, name: str) -> bytes:
        owner = value.__self__
        bound = b"" if owner is None or isinstance(owner, types.ModuleType) else self.read(owner, name)
        return _hash(b"builtin", f"{value.__module__}.{value.__qualname__}".encode(), bound)

    def _descriptor(self, value: Any, name: str) -> bytes:
        held = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (_inner(value),)
        return self._all(type(value).__name__, ((name, part) for part in held))

    # -- everything else: what pickle would make of it
    def _object(self, value: Any, name: str) -> bytes:
        hook = getattr(type(value), "__content__", None)
        if hook is not None:
            return self._all("content", ((name, type(value)), (name, hook(value))))
        try:
            reduced = copyreg.dispatch_table.get(type(value), lambda v: v.__reduce_ex__(4))(value)
        except Exception as error:  # Whatever __reduce__ of somebody's class raises, it has no state to compare.
            raise NoContent(f"{name} is a {_called(type(value))}, which cannot be compared later on: {error}") from None
        if isinstance(reduced, str):
            return _hash(b"global", f"{getattr(value, '__module__', '')}.{reduced}".encode())
        make, arguments, state, items, pairs = (*reduced, *[None] * 5)[:5]
        return self._all("object", (
            (name, make), (name, arguments), (name, _lasting(value, state)),
            (name, None if items is None else list(items)), (name, None if pairs is None else dict(pairs)),
        ))  # fmt: skip

    def _unreadable(self, value: Any, name: str) -> bytes:
        raise NoContent(f"{name} is a {_called(type(value))}, which is not the same later on")


def _kinds() -> list[tuple[Any, Callable[[_Reader, Any, str], bytes]]]:
    slots = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
             types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType)  # fmt: skip
    return [
        (np.ndarray, _Reader._array), (PurePath, _Reader._path), (types.FunctionType, _Reader._function),
        (types.MethodType, _Reader._method), (types.BuiltinFunctionType, _Reader._builtin),
        (types.CodeType, _Reader._code), (type, _Reader._class),
        (types.ModuleType, lambda reader, value, name: _hash(b"module", value.__name__.encode())),
        ((property, staticmethod, classmethod, functools.cached_property, functools._lru_cache_wrapper),
         _Reader._descriptor),
        (slots, lambda reader, value, name: _hash(b"slot", repr(value.__name__).encode())),
        ((io.IOBase, types.GeneratorType, types.CoroutineType, types.FrameType), _Reader._unreadable),
    ]  # fmt: skip


_MADE = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotations_cache__",
         "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__firstlineno__", "__static_attributes__",
         "__abstractmethods__", "__orig_bases__", "__parameters__"}  # fmt: skip
"""What Python makes of a class by itself."""


def _lasting(value: Any, state: Any) -> Any:
    """A state without what is computed from the rest of it when somebody asks."""
    if not isinstance(state, dict):
        return state
    cached = {k for c in type(value).__mro__ for k, v in vars(c).items() if isinstance(v, functools.cached_property)}
    return {k: v for k, v in state.items() if k not in cached}


def _inner(value: Any) -> Any:
    return getattr(value, "func", None) or getattr(value, "__wrapped__", None) or value.__func__


def _codes(code: types.CodeType) -> Iterable[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _globals(function: types.FunctionType) -> list[str]:
    """Global names that a function reads, and the functions inside of it."""
    reads = {i.argval for c in _codes(function.__code__) for i in dis.get_instructions(c) if i.opname in _LOADS}
    return sorted(n for n in reads if n in function.__globals__)


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")


def _names(code: types.CodeType) -> set[str]:
    return {name for c in _codes(code) for name in c.co_names}


@functools.cache
def _is_users(module: str | None) -> bool:
    """Whether a module is neither of an installed package nor of this house."""
    if module is None or module.partition(".")[0] in OWN:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if module in ("__main__", "__mp_main__") or module not in sys.modules:
        return True
    if file is None:
        return False
    installed = [Path(p).resolve() for p in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))]
    path = Path(file).resolve()
    parts = {"site-packages", "dist-packages"} & set(path.parts)
    return not parts and not any(path.is_relative_to(p) for p in installed)


def _called(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) < 40 else text[:37] + "…"


def _hash(*parts: bytes | bytearray) -> bytes:
    """With the length of each part, so that none runs into the next."""
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()


_KINDS = _kinds()
