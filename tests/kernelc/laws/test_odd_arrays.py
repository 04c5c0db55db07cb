"""A user's odd array ends in the right number or in a KernelError: never in a wrong number, a raw error or a crash."""

import ctypes
import mmap

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
        return None if odd.is_meta else odd.to_dense().resolve_neg().clone().numpy()
    return None if odd is None else np.array(odd)


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
