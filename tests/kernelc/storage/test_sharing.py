"""Images, half tensors and others are shared with whoever has them; their gradients are float32."""

import numpy as np
import pytest
import torch

import kernelc as kc


@kc.kernel
def brighter(img: kc.Array[kc.uint8, 3], by: int):
    i, j = kc.tid()
    for c in range(3):
        img[i, j, c] = kc.min(img[i, j, c] + by, 255)


@kc.kernel
def doubled(h: kc.Array[kc.float16]):
    i = kc.tid()
    h[i] = 2.0 * h[i]


@kc.kernel
def doubled_b(h: kc.Array[kc.bfloat16]):
    i = kc.tid()
    h[i] = 2.0 * h[i]


def test_images_are_written_in_place():
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    wanted = np.minimum(image.astype(int) + 9, 255)
    kc.launch(brighter, (5, 7), [image, 9])
    assert np.array_equal(image, wanted)
    part = image[1:, ::2]
    kc.launch(brighter, part.shape[:2], [part, 200])
    assert (image[1:, ::2] >= 200).all()
    assert np.array_equal(image[0], wanted[0])


@pytest.mark.parametrize(("kind", "kernel"), [(torch.float16, doubled), (torch.bfloat16, doubled_b)])
def test_half_tensors_are_written_in_place(kind, kernel):
    tensor = torch.arange(40, dtype=kind)
    kc.launch(kernel, 40, [tensor])
    assert torch.equal(tensor, 2 * torch.arange(40, dtype=kind))
    kc.launch(kernel, 20, [tensor[::2]])
    assert torch.equal(tensor[::2], 8 * torch.arange(20, dtype=kind))
    wrapped = kc.from_torch(tensor)
    kc.launch(kernel, 40, [wrapped])
    assert wrapped.torch().data_ptr() == tensor.data_ptr()
    assert torch.equal(wrapped.torch(), tensor)
    assert kc.from_dlpack(tensor).torch().data_ptr() == tensor.data_ptr()
    assert torch.from_dlpack(wrapped).data_ptr() == tensor.data_ptr()
    assert torch.from_dlpack(wrapped).dtype == kind


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "uint16", "uint64", "float16"])
def test_numpy_arrays_are_shared_by_every_way_in(kind):
    data = np.arange(6).astype(kind)
    for a in (kc.array(data), kc.from_dlpack(data), kc.array(data, dtype=getattr(kc, kind))):
        assert a.dtype is getattr(kc, kind)
        assert np.shares_memory(a.numpy(), data)
        assert np.array_equal(np.from_dlpack(a), data)
        assert a.copy().numpy().base is not data and not np.shares_memory(a.copy().numpy(), data)


def test_bfloat16_reads_as_float32_in_numpy_and_cannot_be_written_there():
    a = kc.array([1.0, 2.5, 3.140625], dtype=kc.bfloat16)
    assert a.numpy().dtype == np.float32
    assert a.tolist() == [1.0, 2.5, 3.140625]
    with pytest.raises(ValueError, match="read-only"):
        a.numpy()[0] = 2.0
    a.assign(np.array([4.0, 5.0, 1.0 / 3.0]))
    assert a.tolist() == [4.0, 5.0, 0.333984375]
    assert a.fill_(0.1).tolist() == [0.10009765625] * 3
    assert kc.ones(2, kc.bfloat16).tolist() == [1.0, 1.0]
    assert kc.full(2, -1.5, kc.bfloat16).tolist() == [-1.5, -1.5]
    assert kc.zeros_like(a).tolist() == [0.0] * 3
    assert a.copy().tolist() == a.tolist()
    assert kc.array(a, copy=True).dtype is kc.bfloat16
    assert kc.array(a, dtype=float).dtype is kc.float32
    # Whole numbers are numbers, not bits.
    assert kc.array(np.array([1, 2], np.uint16), dtype=kc.bfloat16).tolist() == [1.0, 2.0]
    vectors = kc.array(torch.ones(2, 3, dtype=torch.bfloat16), dtype=kc.vec(3, kc.bfloat16))
    assert vectors.shape == (2,)


def test_numbers_that_do_not_fit_are_refused_where_arrays_are_made():
    with pytest.raises(kc.WrongDtype, match="do not fit uint8"):
        kc.array([1, 256], dtype=kc.uint8)
    with pytest.raises(kc.WrongDtype, match="do not fit uint8"):
        kc.full(3, 300, kc.uint8)


def test_assign_between_bfloat16_and_others_names_the_ways():
    a, b = kc.zeros(3, kc.bfloat16), kc.ones(3)
    for into, source in ((a, b), (b, a)):
        with pytest.raises(kc.WrongDtype, match="convert it in a kernel"):
            into.assign(source)
    assert a.assign(b.numpy()).tolist() == [1.0] * 3


def test_sums_of_small_numbers_do_not_wrap():
    a = kc.array(np.full(1000, 200, np.uint8))
    assert kc.reduce(a).item() == 200_000
    assert kc.scan(a).dtype is kc.int32
    assert kc.reduce(a, "max").dtype is kc.uint8
    h = kc.array(np.full(5000, 1.0, np.float16))
    assert kc.reduce(h).item() == 5000.0
    with pytest.raises(kc.WrongDtype, match="does not take bfloat16"):
        kc.sort(kc.zeros(3, kc.bfloat16))


# -- vectors and structs of stored numbers
@kc.struct
class Pixel:
    rgb: kc.vec(3, kc.uint8)
    depth: kc.float16
    n: int


@kc.func
def darker(p: Pixel) -> Pixel:
    return Pixel(rgb=kc.vec(3, int)(p.rgb.x // 2, p.rgb.y // 2, p.rgb.z // 2), depth=0.5 * p.depth, n=p.n + 1)


@kc.kernel
def shade(pixels: kc.Array[Pixel], colors: kc.Array[kc.vec(3, kc.uint8)], normals: kc.Array[kc.vec(3, kc.float16)]):
    i = kc.tid()
    p = darker(pixels[i])
    p.rgb.x += 1
    pixels[i] = p
    pixels[i].depth *= 2.0
    colors[i] = p.rgb + kc.int3(1, 2, 3)
    normals[i] = 2.0 * normals[i]


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_vectors_and_structs_hold_stored_numbers(device):
    pixels = kc.zeros(20, Pixel)
    pixels.numpy()["rgb"] = np.arange(60).reshape(20, 3)
    pixels.numpy()["depth"] = np.linspace(0, 1, 20)
    before = pixels.numpy().copy()
    colors, normals = np.zeros((20, 3), np.uint8), np.ones((20, 3), np.float16)
    kc.launch(shade, 20, [pixels, colors, normals], device=device)
    rgb = before["rgb"] // 2 + np.array([1, 0, 0], np.uint8)
    assert np.array_equal(pixels.numpy()["rgb"], rgb)
    assert np.array_equal(pixels.numpy()["depth"], (before["depth"] / 2).astype(np.float16) * np.float16(2))
    assert (pixels.numpy()["n"] == 1).all()
    assert np.array_equal(colors, rgb + np.array([1, 2, 3], np.uint8))
    assert (normals == 2).all()


# -- gradients
@kc.kernel
def spread(x: kc.Array[kc.float16], w: kc.Array[float], out: kc.Array[kc.float16]):
    i = kc.tid()
    out[i] = x[i % x.shape[0]] * w[i]


@kc.kernel
def total(a: kc.Array[kc.float16], loss: kc.Array[float]):
    i = kc.tid()
    loss[0] += a[i] * a[i]


@pytest.mark.parametrize("real", [kc.float32, kc.float64])
@pytest.mark.parametrize("width", [0, 4, 16])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_gradients_of_halves_are_float32_and_exact_sums(width, device, real):
    before, kc.config.lanes = kc.config.lanes, width
    n = 300 if device == "python" else 9000
    try:
        x = kc.array(np.array([1.0, 2.0], np.float16), requires_grad=True)
        w, out = kc.ones(n, real=real, requires_grad=True), kc.zeros(n, kc.float16)
        loss = kc.zeros(1, real=real)
        with kc.Tape() as tape:
            kc.launch(spread, n, [x, w], [out], device=device)
            kc.launch(total, n, [out], [loss], device=device)
        tape.backward(loss)
    finally:
        kc.config.lanes = before
    # A sum of 4500 ones in float16 would stop at 2048.
    assert x.grad.dtype is kc.float32
    assert np.array_equal(x.grad.numpy(), [n, 2 * n])
    assert np.allclose(w.grad.numpy(), 2 * np.tile([1.0, 4.0], n // 2))
    assert out.grad.dtype is kc.float32


def test_gradients_agree_with_torch():
    x = torch.linspace(-2, 2, 50).half()
    w = torch.linspace(0.5, 1.5, 50)
    a, b = kc.array(x.numpy().copy(), requires_grad=True), kc.zeros(50, kc.float16)
    with kc.Tape() as tape:
        kc.launch(spread, 50, [a, w], [b])
    tape.backward(grads={b: np.arange(50)})
    theirs = x.clone().requires_grad_()
    (theirs * w).half().backward(torch.arange(50).half())
    assert np.allclose(a.grad.numpy(), theirs.grad.float(), rtol=1e-3)


def test_copies_and_views_of_halves_carry_gradients():
    a = kc.array(np.ones(6, np.float16), requires_grad=True)
    out = kc.zeros(3, kc.float16)
    with kc.Tape() as tape:
        copy = a[::2].copy()
        kc.launch(spread, 3, [copy, kc.full(3, 3.0)], [out])
    tape.backward(grads={out: np.ones(3)})
    assert a.grad.tolist() == [3.0, 0.0, 3.0, 0.0, 3.0, 0.0]


def test_forward_mode_of_halves_is_refused():
    x, w, out = kc.array(np.array([1.0, 2.0], np.float16)), kc.ones(4), kc.zeros(4, kc.float16)
    with pytest.raises(kc.NotDifferentiable, match="holds halves, which carry no tangents"):
        kc.jvp(spread, 4, [x, w], [out], tangents={x: np.array([1.0, 1e-3])})


@kc.kernel
def highest(x: kc.Array[float], out: kc.Array[kc.float16]):
    kc.atomic_max(out, 0, x[kc.tid()])


def test_the_winner_of_a_rounded_maximum_cannot_be_told():
    x, out = kc.array(np.linspace(0, 1, 5), requires_grad=True), kc.zeros(1, kc.float16)
    with kc.Tape() as tape, pytest.raises(kc.NotDifferentiable, match="rounded when they are stored"):
        kc.launch(highest, 5, [x], [out])
        tape.backward(out)
    out.zero_()
    kc.launch(highest, 5, [kc.array(np.linspace(0, 1, 5))], [out])
    assert out.item() == 1.0
