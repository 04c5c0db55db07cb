"""kc.torch.op as an operator of torch.library: torch's own checks, its transforms, its compiler, every derivative.

The witness is the same formula in operations of torch.
"""

import copy
import io
from itertools import product

import pytest

import kernelc as kc

torch = pytest.importorskip("torch")
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from kernelc.torch.specs import specs  # noqa: E402


@kc.kernel
def wave(
    x: kc.Array[float], w: kc.Array[float], k: float, y: kc.Array[float], z: kc.Array[kc.float3], n: kc.Array[int]
):  # fmt: skip
    i = kc.tid()
    y[i] = kc.sin(x[i]) * w[i] * k + x[i] * x[i] * x[i]
    z[i] = kc.float3(w[i], w[i] * w[i], x[i] * w[i])
    n[i] = i


@kc.kernel
def apart(x: kc.Array[float], w: kc.Array[float], y: kc.Array[float], z: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i] * x[i]
    z[i] = kc.exp(w[i])


@kc.kernel
def drain(x: kc.Array[float], y: kc.Array[float]):
    """Writes to its input: it goes over arrays."""
    i = kc.tid()
    y[i] = x[i] * x[i] * x[i]
    x[i] = 0.0


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, kc.exp(x[i]))


@kc.kernel
def smallest(x: kc.Array[float], out: kc.Array[float]):
    kc.atomic_min(out, 0, kc.exp(x[kc.tid()]) - 9.0)


@kc.kernel
def powers(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for _ in range(n):
        p *= kc.sin(x[i]) + 1.5
        if p > 5.0:
            break
    y[i] = p


@kc.kernel
def along(x: kc.Array[kc.float3], v: kc.float3, n: int, flag: bool, y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.dot(x[i], x[i]) * kc.dot(x[i], v) * float(n) if flag else 0.0


@kc.func
def cube(x: float) -> float:
    return x * x * x


@cube.adjoint
def _(x, adj):
    return 3.0 * x * x * adj


@kc.kernel
def cubes(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = cube(x[i])


@kc.struct
class Pair:
    a: kc.Array[float]
    b: kc.Array[float]


@kc.kernel
def products(p: Pair, y: kc.Array[float]):
    i = kc.tid()
    y[i] = p.a[i] * p.a[i] * p.b[i]


def size(x, *rest):
    return x.shape[0]


wave_op = kc.torch.op(wave, size, outputs=[size, size, size])
scaled = kc.torch.op(wave, 4, outputs=[4, 4, 4])


def f(x, w, k=0.5):
    return wave_op(x, w, k)[:2]


def f_in_torch(x, w, k=0.5):
    return torch.sin(x) * w * k + x**3, torch.stack([w, w * w, x * w], -1)


def leaf(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


X, W = leaf(4), leaf(4, seed=1)
CASES = {
    "several outputs": (lambda x, w: f(x, w), (X, W)),
    "outputs that depend on other inputs": (kc.torch.op(apart, 4, outputs=[4, 4]), (X, W)),
    "some inputs": (lambda x: kc.torch.op(apart, 4, outputs=[4, 4])(x, W.detach())[0], (X,)),
    "an input that is written": (kc.torch.op(drain, 4, outputs=[4]), (X,)),
    "a sum": (kc.torch.op(total, 4, outputs=[1]), (X,)),
    "a sum of many": (lambda x: kc.torch.op(total, 2000, outputs=[1])(x.repeat(500)), (X,)),
    "a loop with break": (lambda x: kc.torch.op(powers, 4, outputs=[4])(x, 5), (X,)),
    "values of all kinds": (
        lambda x: kc.torch.op(along, 4, outputs=[4])(x, (1.0, 2.0, 3.0), 3, True),
        (leaf(4, 3),),
    ),
    "a rule of one's own": (kc.torch.op(cubes, 4, outputs=[4]), (X,)),
    "a number as a tensor": (lambda x, w, k: scaled(x, w, k)[:2], (X, W, leaf(1, seed=2))),
    "a number as a tensor without axes": (lambda x, w, k: scaled(x, w, k)[0], (X, W, leaf(seed=2))),
    "a bundle": (lambda a, b: kc.torch.op(products, 4, outputs=[4])(Pair(a=a, b=b)), (X, W)),
    "strides": (lambda x: f(x[::2], x.flip(0)[1::2]), (leaf(8),)),
    "one tensor twice": (lambda x: f(x, x), (X,)),
}


# -- derivatives
@pytest.mark.parametrize("case", CASES)
def test_backward_and_forward_and_batches_of_both(case):
    fn, args = CASES[case]
    assert gradcheck(fn, args, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("case", CASES)
def test_second_derivatives(case):
    fn, args = CASES[case]
    assert gradgradcheck(fn, args, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_second_derivatives_of_a_minimum_are_refused_at_its_line():
    fn = kc.torch.op(smallest, 4, outputs=[1])
    assert gradcheck(fn, (X,), check_forward_ad=True)
    with pytest.raises(kc.KernelError, match=r"test_torch_library\.py"):
        gradgradcheck(fn, (X,))


@pytest.mark.parametrize("transform", [
    jacrev, jacfwd, hessian, lambda f, argnums: jacrev(jacfwd(f, argnums), argnums),
    lambda f, argnums: jacfwd(jacfwd(f, argnums), argnums), lambda f, argnums: jacrev(jacrev(f, argnums), argnums),
], ids=["jacrev", "jacfwd", "hessian", "rev over fwd", "fwd over fwd", "rev over rev"])  # fmt: skip
def test_jacobians(transform):
    assert_close(transform(f, argnums=(0, 1))(X, W), transform(f_in_torch, argnums=(0, 1))(X, W))


def test_third_derivatives():
    for a, b, c in product((jacrev, jacfwd), repeat=3):
        assert_close(a(b(c(lambda x: f(x, W)[0])))(X), a(b(c(lambda x: f_in_torch(x, W)[0])))(X))


def test_products_with_jacobians():
    weights = f_in_torch(X, W)
    assert_close(vjp(f, X, W)[1](weights), vjp(f_in_torch, X, W)[1](weights))
    assert_close(jvp(f, (X, W), (W, X)), jvp(f_in_torch, (X, W), (W, X)))


def test_the_dot_product_law():
    """⟨J v, w⟩ = ⟨v, Jᵀ w⟩, one side by forward mode and one by the reverse sweep."""
    v, w = (leaf(4, seed=3), leaf(4, seed=4)), (leaf(4, seed=5), leaf(4, 3, seed=6))
    forward = sum((a * b).sum() for a, b in zip(jvp(f, (X, W), v)[1], w))
    backward = sum((a * b).sum() for a, b in zip(vjp(f, X, W)[1](w), v))
    assert_close(forward, backward, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_the_functional_interface(vectorize, strategy):
    if strategy == "forward-mode" and not vectorize:
        pytest.skip("torch has no such combination")
    functional = torch.autograd.functional
    found = functional.jacobian(f, (X, W), vectorize=vectorize, strategy=strategy)
    assert_close(found, functional.jacobian(f_in_torch, (X, W)))
    found = functional.hessian(lambda x, w: f(x, w)[0].sum(), (X, W), vectorize=vectorize)
    assert_close(found, functional.hessian(lambda x, w: f_in_torch(x, w)[0].sum(), (X, W)))


def test_gradients_of_a_batch_of_weights():
    weights = leaf(3, 4, seed=3).detach()
    (found,) = torch.autograd.grad(f(X, W)[0], X, weights, is_grads_batched=True)
    (expected,) = torch.autograd.grad(f_in_torch(X, W)[0], X, weights, is_grads_batched=True)
    assert_close(found, expected)


def test_forward_mode_and_a_graph_at_once():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(X.detach(), torch.ones(4, dtype=torch.float64))
        y, z = kc.torch.op(apart, 4, outputs=[4, 4])(x, W)
        assert_close(forward_ad.unpack_dual(y).tangent, 3 * X.detach() ** 2)
        assert not forward_ad.unpack_dual(z).tangent.any() and z.requires_grad


def test_an_argument_that_changes_before_its_second_derivative_is_found():
    for fn in (kc.torch.op(cubes, 4, outputs=[4]), kc.torch.op(drain, 4, outputs=[4])):
        x = X.clone()
        y = fn(x)
        x.mul_(2.0)
        with pytest.raises(kc.Overwritten, match="in place"):
            torch.autograd.grad(y.sum(), X, create_graph=True)


def test_a_graph_of_gradients_is_the_same_as_gradients():
    weights = [w.detach() for w in f_in_torch(X, W)]
    plain = torch.autograd.grad(f(X, W), (X, W), weights)
    assert_close(torch.autograd.grad(f(X, W), (X, W), weights, create_graph=True), plain, rtol=0, atol=0)


# -- batches
def test_vmap_over_any_axis_and_over_some_inputs():
    batch = leaf(5, 4)
    assert_close(vmap(f)(batch, batch + 1), vmap(f_in_torch)(batch, batch + 1))
    assert_close(vmap(f, (1, None))(batch.t(), W), vmap(f_in_torch, (1, None))(batch.t(), W))
    assert_close(vmap(f, (None, 0), 1)(X, batch), vmap(f_in_torch, (None, 0), 1)(X, batch))
    nested = leaf(2, 5, 4)
    assert_close(*(vmap(vmap(g, (0, None)), (0, None))(nested, W) for g in (f, f_in_torch)))


def test_a_batch_of_nothing_has_the_shape_of_its_elements():
    for size in (0, 2):
        batch = leaf(size, 4)
        assert_close(vmap(f)(batch, batch), vmap(f_in_torch)(batch, batch))
        one, other = (vmap(grad(lambda x, g=g: g(x, W)[0].sum())) for g in (f, f_in_torch))
        assert_close(one(batch), other(batch))


def test_vmap_of_gradients_and_gradients_of_vmap():
    batch = leaf(5, 4)

    def loss(f):
        return lambda x: f(x, W)[0].sum() + (f(x, W)[1] ** 2).sum()

    assert_close(vmap(grad(loss(f)))(batch), vmap(grad(loss(f_in_torch)))(batch))
    over = [grad(lambda b, f=f: vmap(loss(f))(b).sum())(batch) for f in (f, f_in_torch)]
    assert_close(*over)
    plain = [torch.autograd.grad(vmap(loss(f))(batch).sum(), batch)[0] for f in (f, f_in_torch)]
    assert_close(*plain)


def test_sizes_are_those_of_one_element_of_the_batch():
    seen = []

    def dim(x, *rest):
        seen.append(tuple(x.shape))
        return x.shape[0]

    vmap(kc.torch.op(cubes, dim, outputs=[dim]))(torch.ones(7, 3))
    assert set(seen) == {(3,)}


# -- torch's own checks
def test_opcheck():
    torch.library.opcheck(wave_op, (X, W, 0.5))
    torch.library.opcheck(wave_op, (X.detach(), W.detach().float().double(), 0.5))
    torch.library.opcheck(kc.torch.op(along, 4, outputs=[4]), (leaf(4, 3), [1.0, 2.0, 3.0], 3, True))
    torch.library.opcheck(kc.torch.op(drain, 4, outputs=[4]), (X,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opcheck_of_what_graphs_hold(dtype):
    x, w = leaf(4, dtype=dtype), leaf(4, seed=1, dtype=dtype)
    jacfwd(f)(x, w)
    name = next(n for n, s in specs.items() if s.kernel is wave)
    torch.library.opcheck(torch.ops.kernelc.push.default, (name, [x, w], [], [0.5], [4], [4, 4, 4]))
    weights = [leaf(4, seed=2, dtype=dtype), leaf(4, 3, seed=3, dtype=dtype)]
    torch.library.opcheck(torch.ops.kernelc.pull.default, (name, [x, w], weights, [], [0.5], [4], [4, 4, 4], [0, 1]))


def test_fake_tensors_say_what_real_ones_will_be():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        made = wave_op(torch.empty(6, dtype=torch.float32), torch.empty(6, dtype=torch.float32), 1.0)
    real = wave_op(torch.ones(6), torch.ones(6), 1.0)
    assert [(x.shape, x.dtype, x.stride()) for x in made] == [(x.shape, x.dtype, x.stride()) for x in real]


# -- the compiler
def around(f):
    def loss(x, w):
        y, z = f(torch.cos(x), w)
        return (2 * y).sum() + (z * z).sum()

    return loss


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_without_a_break(backend):
    torch._dynamo.reset()
    compiled = torch.compile(around(f), fullgraph=True, backend=backend)
    for n in (4, 6, 9):
        x, w = leaf(n), leaf(n, seed=1)
        expected = around(f_in_torch)(x, w)
        assert_close(compiled(x, w), expected)
        assert_close(torch.autograd.grad(compiled(x, w), (x, w)), torch.autograd.grad(expected, (x, w)))


def test_sizes_stay_symbols_in_a_graph():
    torch._dynamo.reset()
    from torch._dynamo.testing import CompileCounterWithBackend

    counted = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(around(f), fullgraph=True, backend=counted, dynamic=True)
    counts = []
    for n in (4, 6, 9, 13):
        compiled(leaf(n), leaf(n, seed=1))
        counts.append(counted.frame_count)
    assert counts == counts[:1] * 4


def test_values_and_tensors_for_values_are_compiled():
    torch._dynamo.reset()
    fn = kc.torch.op(along, 4, outputs=[4])
    x = leaf(4, 3)
    compiled = torch.compile(lambda x, n: fn(x, (1.0, 2.0, 3.0), n, True), fullgraph=True, backend="aot_eager")
    for n in (2, 3, 4):
        assert_close(compiled(x, n), fn(x, (1.0, 2.0, 3.0), n, True))
    k = leaf(1, seed=2)
    compiled = torch.compile(lambda x, w, k: scaled(x, w, k)[0], fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(X, W, k).sum(), k)
    assert_close(found, torch.autograd.grad(scaled(X, W, k)[0].sum(), k)[0])


def test_transforms_inside_compiled_functions():
    torch._dynamo.reset()
    batch = leaf(5, 4).detach()
    compiled = torch.compile(lambda b: vmap(grad(lambda x: f(x, W.detach())[0].sum()))(b), fullgraph=True,
                             backend="aot_eager")  # fmt: skip
    assert_close(compiled(batch), vmap(grad(lambda x: f_in_torch(x, W.detach())[0].sum()))(batch))


def test_an_exported_program_holds_the_kernel():
    program = torch.export.export(Layer(), (X.detach(),))
    assert "kernelc.push" in str(program.graph)
    assert_close(program.module()(X.detach()), Layer()(X.detach()))


def test_a_graph_of_another_process_is_refused():
    with pytest.raises(kc.WrongUse, match="another process, wave"):
        torch.ops.kernelc.push("wave-1-elsewhere", [X, W], [], [0.5], [4], [4, 4, 4])


# -- modules and processes
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.op = wave_op
        self.w = torch.nn.Parameter(torch.arange(4.0, dtype=torch.float64))

    def forward(self, x):
        return self.op(x, self.w, 2.0)[0]


class Waves(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return wave_op(torch.full((3,), float(i)), torch.ones(3), 1.0)[0]


def test_modules_are_saved_and_copied():
    layer = Layer()
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    for other in (torch.load(buffer, weights_only=False), copy.deepcopy(layer)):
        assert_close(other(X), layer(X))


def test_operations_that_cannot_be_saved_say_why():
    @kc.kernel
    def local(x: kc.Array[float], y: kc.Array[float]):
        y[kc.tid()] = x[kc.tid()]

    with pytest.raises(kc.WrongUse, match="another process cannot find it"):
        torch.save(kc.torch.op(local, 4, outputs=[4]), io.BytesIO())


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_of_a_loader(workers):
    wave_op(torch.ones(3), torch.ones(3), 1.0)
    batches = list(torch.utils.data.DataLoader(Waves(), batch_size=3, num_workers=workers))
    expected = torch.stack([f_in_torch(torch.full((3,), float(i)), torch.ones(3), 1.0)[0] for i in range(6)])
    assert_close(torch.cat(batches), expected)


# -- what cannot be
def test_errors_of_kernels_reach_through_transforms():
    two = torch.zeros(2, 4)
    with pytest.raises(kc.WrongDtype, match="float16"):
        vmap(lambda x: wave_op(x, x, 1.0))(two.half())
    with pytest.raises(kc.WrongArity, match="takes 6 arguments"):
        vmap(lambda x: wave_op(x, 1.0))(two)
    with pytest.raises(kc.MixedLaunch):
        vmap(lambda x: wave_op(x, x.double(), 1.0))(two)
    with pytest.raises(kc.WrongUse, match="'w' is not a tensor"):
        vmap(lambda x: wave_op(x, [1.0] * 4, 1.0))(two)
    with pytest.raises(kc.WrongUse, match="how many outputs"):
        torch.library.opcheck(kc.torch.op(cubes, 4, outputs=lambda x: [4]), (X,))


def rollout(x):
    y = kc.zeros(x.shape, real=x.real)
    kc.launch(cubes, x.shape[0], [x], [y])
    return y


def test_functions_are_refused_where_torch_transforms():
    g = kc.torch.function(rollout)
    for run in (lambda: vmap(g)(torch.ones(2, 4)), lambda: grad(lambda x: g(x).sum())(X.detach()),
                lambda: jvp(g, (X.detach(),), (W.detach(),)), lambda: jacrev(g)(X.detach()),
                lambda: vmap(lambda y: g(X) + y)(torch.ones(2, 4, dtype=torch.float64))):  # fmt: skip
        with pytest.raises(kc.WrongUse, match=r"rollout is called by a transform"):
            run()
    with pytest.raises(kc.WrongUse, match="not for a batch"):
        torch.autograd.functional.jacobian(g, X, vectorize=True)
    assert_close(vmap(lambda y: g(X.detach()) + y)(torch.zeros(2, 4).double()), torch.stack([X.detach() ** 3] * 2))


def test_functions_are_no_constants_of_a_traced_graph():
    from torch.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(kc.WrongUse, match="tracer"):
        make_fx(kc.torch.function(rollout))(X.detach())


def test_functions_break_a_compiled_graph():
    torch._dynamo.reset()
    g = kc.torch.function(rollout)
    x = leaf(4)
    loss = torch.compile(lambda x: g(2 * x).sum() * 3, backend="aot_eager")(x)
    assert_close(loss, 24 * (x**3).sum())
    assert_close(torch.autograd.grad(loss, x)[0], 72 * x**2)
    with pytest.raises(Exception, match=r"use kc\.torch\.op"):
        torch.compile(lambda x: g(x), fullgraph=True, backend="aot_eager")(x)


@kc.kernel
def parabola(x: kc.Array[float], a: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    s = kc.sqrt(a[i] + x[i]) - 1.0
    y[i] = x[i] * x[i] / a[i] + s * s


def test_second_derivatives_where_the_first_is_zero():
    """An adjoint, or a tangent, that is zero on the way moves all the same: 2/a + 1/(2a) at x = 0, a = 1."""
    op = kc.torch.op(parabola, dim=lambda x, a: x.shape[0], outputs=lambda x, a: [x.shape[0]])
    x, a = torch.zeros(3, dtype=torch.float64, requires_grad=True), torch.ones(3, dtype=torch.float64)
    want = torch.full((3,), 2.5, dtype=torch.float64)
    first = torch.autograd.grad(op(x, a).sum(), x, create_graph=True)[0]
    assert not first.any()
    assert_close(torch.autograd.grad(first.sum(), x)[0], want)
    for way in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f)), lambda f: jacfwd(jacfwd(f))):
        assert_close(way(lambda x: op(x, a).sum())(x.detach()), torch.diag(want))
