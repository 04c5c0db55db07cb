"""Probes: kernels as operations of torch."""

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def combine(a: kc.Array[float], b: kc.Array[float], k: float, out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(a[i]) * b[i] + k * a[i]


@kc.kernel
def step(x: kc.Array[float], v: kc.Array[float], k: kc.Array[float], dt: float):
    i = kc.tid()
    v[i] -= dt * k[0] * kc.sin(x[i])
    x[i] += dt * v[i]


@kc.kernel
def rows(x: kc.Array[float, 2], out: kc.Array[float]):
    i, j = kc.tid()
    kc.atomic_add(out, i, x[i, j] * x[i, j] * float(j + 1))


def rollout(x, v, k):
    """A rollout that works on copies of its own."""
    p, w = kc.zeros_like(x), kc.zeros_like(v)
    p.assign(x)
    w.assign(v)
    for _ in range(5):
        kc.launch(step, 3, inputs=[p, w, k, 0.1])
    return p, w


def tensors(*shapes, grad=True):
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(s, dtype=torch.float64, generator=generator).add_(0.3).requires_grad_(grad) for s in shapes]


def test_gradcheck_of_a_function():
    x, v, k = tensors(3, 3, 1)
    assert torch.autograd.gradcheck(kc.torch.function(rollout), (x, v, k))


def test_gradcheck_of_an_op():
    a, b = tensors(4, 4)
    op = kc.torch.op(combine, 4, outputs=[(4,)])
    assert torch.autograd.gradcheck(lambda a, b: op(a, b, 0.7), (a, b))


def test_a_function_that_writes_its_inputs_leaves_the_callers_tensors_alone():
    def in_place(x, v, k):
        for _ in range(3):
            kc.launch(step, 3, inputs=[x, v, k, 0.1])
        return x

    x, v, k = tensors(3, 3, 1)
    before = [t.detach().clone() for t in (x, v, k)]
    assert torch.autograd.gradcheck(kc.torch.function(in_place), (x, v, k))
    for t, b in zip((x, v, k), before):
        assert torch.equal(t.detach(), b)


def test_seeds_of_the_caller_are_not_changed():
    (x,) = tensors(3)
    f = kc.torch.function(lambda x: launch_square(x))
    y = f(x)
    seed = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    y.backward(seed)
    assert seed.tolist() == [1, 2, 3]
    assert torch.allclose(x.grad, 2 * x.detach() * seed)


def launch_square(x):
    y = kc.zeros_like(x)
    kc.launch(square, len(x), [x], [y])
    return y


def test_non_contiguous_inputs_and_seeds():
    big = torch.rand(6, 8, dtype=torch.float64)
    x = big.t()[::2, 1::2].requires_grad_()
    op = kc.torch.op(rows, tuple(x.shape), outputs=[(x.shape[0],)])
    y = op(x)
    weights = torch.rand(8, dtype=torch.float64)[::2]
    y.backward(weights)
    want = 2 * x.detach() * torch.arange(1, x.shape[1] + 1) * weights[:, None]
    assert torch.allclose(x.grad, want)
    expanded = torch.rand(1, dtype=torch.float64).requires_grad_()
    kc.torch.function(launch_square)(expanded.expand(4)).sum().backward()
    assert torch.allclose(expanded.grad, 8 * expanded.detach())


def test_no_grad_and_partial_gradients():
    a, b = tensors(4, 4)
    op = kc.torch.op(combine, 4, outputs=[(4,)])
    with torch.no_grad():
        assert not op(a, b, 1.0).requires_grad
    c = b.detach()
    y = op(a, c, 1.0)
    y.sum().backward()
    assert torch.allclose(a.grad, torch.cos(a.detach()) * c + 1.0) and c.grad is None
    assert not op(a.detach(), c, 1.0).requires_grad


def test_reentrancy_and_use_inside_of_a_larger_graph():
    (x,) = tensors(3)
    f = kc.torch.function(launch_square)
    y = f(f(x * 2) + x)
    z = (y * f(x)).sum()
    z.backward()
    x2 = x.detach().clone().requires_grad_()
    ((((x2 * 2) ** 2 + x2) ** 2) * x2**2).sum().backward()
    assert torch.allclose(x.grad, x2.grad)


def test_two_calls_before_backward_do_not_disturb_each_other():
    (x,) = tensors(3)
    f = kc.torch.function(launch_square)
    a = f(x)
    b = f(3 * x)
    b.sum().backward(retain_graph=True)
    a.sum().backward()
    assert torch.allclose(x.grad, 18 * x.detach() + 2 * x.detach())


def test_backward_twice_with_retained_graph():
    (x,) = tensors(3)
    y = kc.torch.function(launch_square)(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert torch.allclose(x.grad, 4 * x.detach())


def test_a_tensor_changed_in_place_before_backward_is_noticed():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    h = x * 1.0
    y = kc.torch.function(launch_square)(h)
    with torch.no_grad():
        h.mul_(10)
    try:
        y.sum().backward()
    except (RuntimeError, kc.KernelError):
        return
    assert torch.allclose(x.grad, 2 * x.detach())


def test_results_stay_what_they_were():
    """The next call must not write into the tensor that the first one returned."""
    (x,) = tensors(3)
    f = kc.torch.function(launch_square)
    a = f(x)
    kept = a.detach().clone()
    f(x * 5)
    assert torch.equal(a.detach(), kept)


def test_float32_and_other_arguments():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    n = torch.tensor([1, 0], dtype=torch.int32)

    @kc.kernel
    def pick(x: kc.Array[float], n: kc.Array[int], k: float, out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[n[i]] * k * float(i + 1)

    y = kc.torch.op(pick, 2, outputs=[(2,)])(x, n, 2.0)
    y.sum().backward()
    assert y.dtype == torch.float32 and x.grad.tolist() == [4.0, 2.0]


def test_several_outputs_of_which_one_is_used():
    x, v, k = tensors(3, 3, 1)
    p, w = kc.torch.function(rollout)(x, v, k)
    w.pow(2).sum().backward()
    x2, v2, k2 = (t.detach().clone().requires_grad_() for t in (x, v, k))
    a, b = x2, v2
    for _ in range(5):
        b = b - 0.1 * k2 * torch.sin(a)
        a = a + 0.1 * b
    b.pow(2).sum().backward()
    for s, t in ((x, x2), (v, v2), (k, k2)):
        assert torch.allclose(s.grad, t.grad)


def test_an_input_that_is_returned():
    (x,) = tensors(3)
    y = kc.torch.function(lambda a: a)(x)
    y.sum().backward()
    assert torch.allclose(x.grad, torch.ones(3, dtype=torch.float64))


def test_errors_inside_reach_the_caller_and_leave_no_tape_open():
    def broken(x):
        raise ValueError("mine")

    (x,) = tensors(3)
    with pytest.raises(ValueError, match="mine"):
        kc.torch.function(broken)(x)
    y = kc.torch.function(launch_square)(x)
    y.sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach())


def test_a_tape_with_a_torch_module_inside():
    module = torch.nn.Linear(2, 2).double()
    x, y, out = (
        kc.array(np.array([0.5, 0.7]), requires_grad=True),
        kc.zeros(2, real=kc.float64),
        kc.zeros(2, real=kc.float64),
    )
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        inp = y.torch().clone().requires_grad_()
        res = module(inp)
        out.numpy()[...] = res.detach().numpy()

        def backward():
            (g,) = torch.autograd.grad(res, inp, out.grad.torch(), retain_graph=True)
            y.grad.numpy()[...] += g.numpy()

        tape.record(backward, reads=[y], writes=[out])
    tape.backward(grads={out: [1.0, 1.0]})
    want = 2 * np.array([0.5, 0.7]) * module.weight.detach().numpy().sum(0)
    assert np.allclose(x.grad.numpy(), want)


def test_double_backward_is_right_or_refused():
    (x,) = tensors(3)
    y = kc.torch.function(launch_square)(x)
    try:
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    except (RuntimeError, kc.KernelError):
        return
    assert torch.allclose(h, torch.full((3,), 2.0, dtype=torch.float64))
