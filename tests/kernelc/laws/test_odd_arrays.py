"""A user's odd array ends in the right number or in a KernelError: never in a wrong number, a raw error or a crash."""

import ctypes
import mmap
import pickle
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import kernelc as kc
from kernelc.runtime import Array

torch = pytest.importorskip("torch")
N = 5
DEVICES = st.sampled_from(["cpu", "cpu", "cpu", "python"])


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def twice(x: kc.Array[int], y: kc.Array[int]):
    i = kc.tid()
    y[i] = x[i] + x[i]


def owned(owner, content):
    """Memory that something else than NumPy has."""
    raw = np.ascontiguousarray(content).tobytes() or b"\0" * 8
    if owner == "mmap":
        buffer = mmap.mmap(-1, len(raw))
        buffer[:] = raw
    elif owner == "ctypes":
        buffer = (ctypes.c_char * len(raw)).from_buffer_copy(raw)
    elif owner == "bytes":
        buffer = raw
    else:
        buffer = memoryview(bytearray(raw)) if owner == "memoryview" else bytearray(raw)
    return np.frombuffer(buffer, content.dtype, content.size).reshape(content.shape)


def unaligned(data):
    raw = np.zeros(data.nbytes + 1, np.uint8)
    odd = raw[1:].view(data.dtype) if data.size else data.copy()
    odd[...] = data
    return odd


def spaced(data, step):
    wide = np.zeros(max(1, data.size * abs(step)), data.dtype)
    part = wide[:: abs(step)][: data.size][:: 1 if step > 0 else -1]
    part[...] = data
    return part


def frozen(data):
    data = data.copy()
    data.flags.writeable = False
    return data


def structured(data):
    made = np.zeros(data.shape, [("a", np.int8), ("x", data.dtype)])
    made["x"] = data
    return made


@kc.struct
class Member:
    x: kc.Array[float]
    k: float


@kc.struct
class Field:
    v: kc.vec(N)
    k: float


@kc.kernel
def square_of_member(b: Member, y: kc.Array[float]):
    i = kc.tid()
    y[i] = b.x[i] * b.x[i] * b.k


@kc.kernel
def square_of_field(s: Field, y: kc.Array[float]):
    i = kc.tid()
    y[i] = s.v[i] * s.v[i]


@kc.kernel
def square_of_vector(v: kc.vec(N), y: kc.Array[float]):
    i = kc.tid()
    y[i] = v[i] * v[i]


@kc.kernel
def square_of_bytes(x: kc.Array[kc.uint8], y: kc.Array[float]):
    i = kc.tid()
    y[i] = float(x[i]) * float(x[i])


@kc.kernel
def square_of_halves(x: kc.Array[kc.float16], y: kc.Array[float]):
    i = kc.tid()
    y[i] = float(x[i]) * float(x[i])


def mapped(data, mode):
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate([data, data[:1], np.zeros(1, data.dtype)]).tofile(file.name)  # an empty file has no memory
        return np.memmap(file.name, data.dtype, mode, shape=(max(1, data.size),))[: data.size]


def resized(data, nbytes):
    made = torch.tensor(np.concatenate([data, np.ones(1, data.dtype)]))
    made.untyped_storage().resize_(nbytes)
    return made


def inferred(data):
    with torch.inference_mode():
        return torch.tensor(np.repeat(data, 2))[::2]


class Sub(torch.Tensor):
    """A subclass that adds nothing."""


SHAPES = {
    "plain": np.copy,
    "every third": lambda d: spaced(d, 3),
    "backwards": lambda d: spaced(d, -1),
    "every other, backwards": lambda d: spaced(d, -2),
    "stride 0": lambda d: as_strided(d[:1].copy(), d.shape, (0,)) if d.size else d,
    "windows": lambda d: as_strided(np.repeat(d, 2), d.shape, (d.itemsize // 2,)),
    "broadcast": lambda d: np.broadcast_to(d[:1], d.shape) if d.size else d,
    "unaligned": unaligned,
    "big-endian": lambda d: d.astype(d.dtype.newbyteorder(">")),
    "read-only": frozen,
    "a field": lambda d: structured(d)["x"],
    "structured": structured,
    "masked": lambda d: np.ma.array(d, mask=np.arange(d.size) == 1),
    "masked nowhere": np.ma.array,
    "a matrix": lambda d: np.asmatrix(d),
    "a column": lambda d: np.asfortranarray(np.stack([d, d], 1))[:, 0],
    "a mmap": lambda d: owned("mmap", d),
    "ctypes": lambda d: owned("ctypes", d),
    "bytes": lambda d: owned("bytes", d),
    "a memoryview": lambda d: owned("memoryview", d),
    "a bytearray": lambda d: owned("bytearray", d),
    "a real memoryview": lambda d: memoryview(d.copy()),
    "objects": lambda d: d.astype(object),
    "float16": lambda d: d.astype(np.float16),
    "complex": lambda d: d.astype(complex),
    "long double": lambda d: d.astype(np.longdouble),
    "text": lambda d: d.astype(str),
    "dates": lambda d: d.astype("i8").astype("M8[s]"),
    "a list": lambda d: d.tolist(),
    "a tuple of arrays": lambda d: tuple(d.reshape(-1, 1)),
    "a tensor": torch.tensor,
    "an expanded tensor": lambda d: torch.tensor(d[:1]).expand(d.size) if d.size else torch.tensor(d),
    "a part of a tensor": lambda d: torch.tensor(np.repeat(d, 2))[::2],
    "a negated tensor": lambda d: torch._neg_view(torch.tensor(d)),
    "an imaginary part": lambda d: torch.imag(torch.tensor(1j * d).conj()) if d.dtype.kind == "f" else torch.tensor(d),
    "a sparse tensor": lambda d: torch.tensor(d).to_sparse(),
    "a meta tensor": lambda d: torch.tensor(d).to("meta"),
    "a tensor of halves": lambda d: torch.tensor(d).half(),
    "a tensor of one byte": lambda d: torch.tensor(d).to(torch.int8),
    "an array of ours": kc.array,
    "a view of ours": lambda d: kc.array(spaced(d, 2))[:],
    "ours, backwards": lambda d: kc.array(spaced(d, 1))[::-1],
    "ours, to be read only": lambda d: kc.array(frozen(d)),
    "None": lambda d: None,
    "a file": lambda d: mapped(d, "r+"),
    "a file to be read only": lambda d: mapped(d, "r"),
    "a tensor whose storage was freed": lambda d: resized(d, 0),
    "a tensor whose storage was shrunk": lambda d: resized(d, d.itemsize),
    "a nested tensor": lambda d: torch.nested.nested_tensor([torch.tensor(d), torch.tensor(d[:1])]),
    "a tensor of bfloat16": lambda d: torch.tensor(d).bfloat16(),
    "an inferred tensor": inferred,
    "a subclass of tensors": lambda d: torch.tensor(d).as_subclass(Sub),
    "a parameter": lambda d: torch.nn.Parameter(torch.tensor(d), requires_grad=False),
}
# Left to other tests: tensors that require gradients, and bools whose bytes are neither 0 nor 1.


def contents(dtype):
    whole = st.integers(-100, 100)  # exact in every type: what is right has no rounding
    return st.lists(whole, min_size=0, max_size=N).map(lambda v: np.array(v, dtype))


def values(odd):
    """What an odd array holds, by NumPy or torch themselves; None where they do not say."""
    if isinstance(odd, Array):
        return odd.numpy().copy()
    if isinstance(odd, torch.Tensor):
        if odd.is_meta or odd.is_nested or (odd.layout is torch.strided and not backed(odd)):
            return None
        dense = odd.detach().to_dense().resolve_neg()
        return (dense.float() if dense.dtype is torch.bfloat16 else dense).as_subclass(torch.Tensor).clone().numpy()
    return None if odd is None else np.array(odd)


def backed(tensor):
    """Whether the storage holds as much as the tensor shows."""
    reach = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1
    return not tensor.numel() or reach * tensor.element_size() <= tensor.untyped_storage().nbytes()


def attempt(work):
    """Whether it was done; a KernelError says that it was not, anything else is a fault."""
    try:
        work()
    except kc.KernelError:
        return False
    return True


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found, np.float64).reshape(-1), np.asarray(expected, np.float64))


@given(st.data(), st.sampled_from([np.float32, np.float64]), st.sampled_from(sorted(SHAPES)), DEVICES)
def test_odd_inputs(data, dtype, shape, device):
    odd = SHAPES[shape](data.draw(contents(dtype)))
    held, y = values(odd), kc.full(N, 7.0, real=dtype)
    n = 0 if held is None else held.size
    if attempt(lambda: kc.launch(square, n, [odd], [y], device=device)):
        same(y.numpy()[:n], held.reshape(-1).astype(dtype) ** 2)


@given(st.data(), st.sampled_from([np.int32, np.int64]), st.sampled_from(sorted(SHAPES)), DEVICES)
def test_odd_integers(data, dtype, shape, device):
    odd = SHAPES[shape](data.draw(contents(dtype)))
    held, y = values(odd), kc.zeros(N, dtype=int)
    n = 0 if held is None else held.size
    if attempt(lambda: kc.launch(twice, n, [odd], [y], device=device)):
        same(y.numpy()[:n], 2 * held.reshape(-1).astype(np.float64))


@given(st.data(), st.sampled_from([np.float32, np.float64]), st.sampled_from(sorted(SHAPES)), DEVICES, st.booleans())
def test_odd_outputs(data, dtype, shape, device, debug):
    odd = SHAPES[shape](data.draw(contents(dtype)))
    before = values(odd)
    n = 0 if before is None else before.size
    x = np.arange(1.0, N + 1).astype(dtype)
    kc.config.debug = debug
    try:
        done = attempt(lambda: kc.launch(square, n, [x], [odd], device=device))
    finally:
        kc.config.debug = False
    if done:
        same(values(odd), x[:n] ** 2)
    elif before is not None and before.dtype.kind in "fiu":
        same(values(odd), before.reshape(-1))


@given(st.data(), st.sampled_from(sorted(SHAPES)), DEVICES)
def test_odd_leaves(data, shape, device):
    odd = SHAPES[shape](data.draw(contents(np.float64)))
    held, found = values(odd), {}

    def work():
        x = kc.array(odd, requires_grad=True)
        y = kc.zeros(held.size, real=kc.float64 if x.real is kc.float64 else kc.float32)
        with kc.Tape() as tape:
            kc.launch(square, held.size, [x], [y], device=device)
        tape.backward(grads={y: np.ones(held.size)})
        found["grad"] = x.grad.numpy()

    if attempt(work):
        same(found["grad"], 2 * held.reshape(-1).astype(np.float64))


@given(st.data(), st.sampled_from(sorted(SHAPES)))
def test_odd_weights_and_contents(data, shape):
    odd = SHAPES[shape](data.draw(contents(np.float64)))
    held = values(odd)
    n = 0 if held is None else held.size
    x, y, z = kc.array(np.ones(n), requires_grad=True), kc.zeros(n, real=kc.float64), kc.zeros(n, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, n, [x], [y])
    if attempt(lambda: tape.backward(grads={y: odd})):
        same(x.grad.numpy(), 2 * held.reshape(-1).astype(np.float64))
    if attempt(lambda: z.assign(odd)):
        same(z.numpy(), held.reshape(-1))


def parts(draw, n):
    """A slice of n numbers as slices choose them: any start, stride and direction."""
    step = draw(st.sampled_from([1, 1, 2, -1, -2, 0]))
    reach = abs(step) * (N - 1)
    start = draw(st.integers(0, n - 1 - reach)) + (reach if step < 0 else 0)
    return lambda m: as_strided(m[start:], (N,), (8 * step,))


WRAP = {"itself": lambda m: m, "an array": kc.array, "a tensor": torch.as_tensor, "DLPack": np.from_dlpack}


@given(st.data(), DEVICES)
def test_two_arguments_of_one_memory(data, device):
    memory = np.arange(1.0, 13.0)
    one, two = parts(data.draw, 12), parts(data.draw, 12)
    wraps = [data.draw(st.sampled_from(sorted(WRAP))) for _ in range(2)]
    expected = memory.copy()
    two(expected)[...] = one(memory.copy()) ** 2

    def odd(part, wrap):
        view = part(memory)
        return WRAP["itself" if wrap == "a tensor" and view.strides[0] < 0 else wrap](view)

    if attempt(lambda: kc.launch(square, N, [odd(one, wraps[0])], [odd(two, wraps[1])], device=device)):
        np.testing.assert_array_equal(memory, expected)
    else:
        np.testing.assert_array_equal(memory, np.arange(1.0, 13.0))


@given(st.data(), DEVICES, st.sampled_from(["launch", "assign", "outside"]))
def test_a_tape_over_two_arrays_of_one_memory(data, device, how):
    """y = (part of m)², a write to another part of m, z = (part of m)²: dy and dz by m as it was."""
    memory = np.arange(1.0, 13.0)
    one, two = parts(data.draw, 12), parts(data.draw, 12)
    wraps = [data.draw(st.sampled_from(["itself", "an array", "DLPack"])) for _ in range(2)]
    y, z, found = kc.zeros(N, real=kc.float64), kc.zeros(N, real=kc.float64), {}

    def work():
        a = kc.array(one(memory), requires_grad=True)
        b = WRAP[wraps[0]](two(memory))
        tape = kc.Tape()
        with tape:
            kc.launch(square, N, [a], [y], device=device)
        with tape if how != "outside" else kc.Tape():
            if how == "assign":
                kc.array(b).assign(np.full(N, 5.0))
            else:
                kc.launch(square, N, [np.full(N, 2.0)], [b], device=device)
        with tape:
            kc.launch(square, N, [WRAP[wraps[1]](one(memory))], [z], device=device)
        tape.backward(grads={y: np.ones(N), z: np.full(N, 100.0)})
        found["grad"] = a.grad.numpy().copy()

    if not attempt(work):
        return
    start, marks = np.arange(1.0, 13.0), np.zeros(12)
    two(marks)[...] = 1.0
    survived = one(marks) == 0
    expected = 2 * one(start) + np.where(survived, 200 * one(start), 0.0)
    np.testing.assert_array_equal(found["grad"], expected)


def launched(kernel, *args):
    y = kc.zeros(N, real=kc.float64)
    kc.launch(kernel, N, list(args), [y])
    return y.numpy()


def pushed(odd):
    x, y = kc.array(np.ones(N), requires_grad=True), kc.zeros(N, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, N, [x], [y])
        loss = kc.reduce(y)
    along, curved = tape.jvp({x: odd}, [y])[y].numpy(), tape.hvp(loss, {x: odd})[x].numpy()
    np.testing.assert_array_equal(along, curved)
    return along


USES = {
    "array": (lambda a: kc.array(a).numpy(), lambda v: v),
    "a copy": (lambda a: kc.array(a, copy=True).numpy(), lambda v: v),
    "another copy": (lambda a: kc.array(a).copy().numpy(), lambda v: v),
    "as float32": (lambda a: kc.array(a, dtype=kc.float32).numpy(), lambda v: v),
    "as float16": (lambda a: kc.array(a, dtype=kc.float16).numpy(), lambda v: v),
    "as bfloat16": (lambda a: kc.array(a, dtype=kc.bfloat16).numpy(), lambda v: v),
    "as int": (lambda a: kc.array(a, dtype=int).numpy(), lambda v: v),
    "as bytes": (lambda a: kc.array(a, dtype=kc.uint8).numpy(), lambda v: v),
    "as bool": (lambda a: kc.array(a, dtype=bool).numpy(), lambda v: v != 0),
    "through DLPack": (lambda a: kc.from_dlpack(a).numpy(), lambda v: v),
    "through torch": (lambda a: kc.array(a).torch().float().numpy(), lambda v: v),
    "pickled": (lambda a: pickle.loads(pickle.dumps(kc.array(a))).numpy(), lambda v: v),
    "lists": (lambda a: kc.array(a).tolist(), lambda v: v),
    "assigned to integers": (lambda a: kc.zeros(np.size(values(a)), dtype=int).assign(a).numpy(), lambda v: v),
    "filled": (lambda a: kc.full(N, a, real=kc.float64).numpy(), lambda v: np.broadcast_to(v, (N,))),
    "sum": (lambda a: kc.reduce(a).numpy(), lambda v: [v.sum()]),
    "smallest": (lambda a: kc.reduce(a, "min").numpy(), lambda v: [v.min()]),
    "running sums": (lambda a: kc.scan(a).numpy(), np.cumsum),
    "sorted": (lambda a: kc.sort(a).numpy(), np.sort),
    "different": (lambda a: kc.unique(kc.sort(a))[0].numpy(), np.unique),
    "a member": (lambda a: launched(square_of_member, Member(a, 1.0)), np.square),
    "a field": (lambda a: launched(square_of_field, Field(a, 1.0)), np.square),
    "a vector": (lambda a: launched(square_of_vector, a), np.square),
    "bytes": (lambda a: launched(square_of_bytes, a), np.square),
    "halves": (lambda a: launched(square_of_halves, a), np.square),
    "a direction": (pushed, lambda v: 2 * v),
}
DTYPES = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int16]
NEEDS_ALL = {"a member", "a field", "a vector", "bytes", "halves", "a direction"}
"""Where N numbers are read."""


def check_use(use, dtype, shape, content):
    """One way to use an odd array: the right numbers, or a KernelError."""
    odd, found = SHAPES[shape](np.array(content, dtype)), {}
    held = values(odd)
    do, meaning = USES[use]

    def work():
        found["it"] = do(odd)

    if attempt(work):
        numbers = held.astype(np.float64).reshape(-1)
        if (np.abs(numbers) <= 100).all() and (numbers == np.trunc(numbers)).all():  # windows show others, which round
            same(found["it"], np.asarray(meaning(numbers)).reshape(-1))


@pytest.mark.parametrize("use", USES)
def test_every_use_of_every_odd_array(use):
    for dtype in DTYPES:
        for shape in SHAPES:
            check_use(use, dtype, shape, np.array([3, 77, 4, 1, 95]) - (0 if dtype is np.uint8 else 80))


@given(st.data(), st.sampled_from(sorted(USES)), st.sampled_from(DTYPES), st.sampled_from(sorted(SHAPES)))
def test_uses_of_odd_arrays_of_any_size(data, use, dtype, shape):
    least, low = N if use in NEEDS_ALL else 0, 0 if dtype is np.uint8 else -100
    check_use(use, dtype, shape, data.draw(st.lists(st.integers(low, 100), min_size=least, max_size=N)))
