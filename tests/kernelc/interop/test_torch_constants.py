"""A tensor that requires a gradient carries it, or there is an error: it is never a constant without a word."""

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")


@kc.kernel
def scaled(x: kc.Array[float], k: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = k * x[i] * x[i]


@kc.kernel
def product(x: kc.Array[float], w: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * w[i]


def leaf():
    return torch.ones(3, requires_grad=True)


def tensors():
    """Every kind that torch differentiates by."""
    return {
        "leaf": leaf(),
        "computed": leaf() * 2.0,
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "view": torch.ones(6, requires_grad=True)[::2],
        "row": torch.ones((2, 3), requires_grad=True)[1],
        "double": torch.ones(3, dtype=torch.float64, requires_grad=True),
    }


def uses(t):
    """Every way into kernelc that does not carry a gradient to torch."""
    y = kc.zeros(3, real=kc.float64 if t.dtype == torch.float64 else kc.float32)
    return {
        "launch": lambda: kc.launch(scaled, 3, [t, 1.0], [y]),
        "output": lambda: kc.launch(scaled, 3, [y, 1.0], [t]),
        "number": lambda: kc.launch(scaled, 3, [kc.ones(3), t[0]], [kc.zeros(3)]),
        "interpreted": lambda: kc.launch(scaled, 3, [t, 1.0], [y], device="python"),
        "array": lambda: kc.array(t),
        "copy": lambda: kc.array(t, copy=True),
        "list": lambda: kc.array(list(t)),
        "nested list": lambda: kc.array([[t[0], 1.0], [2.0, 3.0]]),
        "list of rows": lambda: kc.array([t, t]),
        "scalar": lambda: kc.scalar(t[0]),
        "full": lambda: kc.full(3, t[0]),
        "fill": lambda: y.fill_(t[0]),
        "assign": lambda: y.assign(t),
        "typed": lambda: kc.array(t, dtype=float),
        "dlpack": lambda: kc.from_dlpack(t),
        "tape": lambda: on_a_tape(t),
        "captured": lambda: kc.torch.function(lambda x: launched(x, t))(torch.ones(3, dtype=t.dtype)),
        "captured beside": lambda: kc.torch.function(lambda x: launched(x, t))(
            torch.ones(3, dtype=t.dtype, requires_grad=True)
        ),
        "listed": lambda: kc.torch.function(lambda x, more: launched(x, more[0]))(torch.ones(3, dtype=t.dtype), [t]),
    }


def launched(x, w):
    y = kc.zeros_like(x)
    kc.launch(product, 3, [x, w], [y])
    return y


def on_a_tape(t):
    x = kc.array(np.ones(3, np.float64 if t.dtype == torch.float64 else np.float32), requires_grad=True)
    with kc.Tape() as tape:
        y = launched(x, t)
    tape.backward(grads={y: np.ones(3)})


@pytest.mark.parametrize("way", list(uses(leaf())))
@pytest.mark.parametrize("kind", list(tensors()))
def test_a_tensor_that_requires_a_gradient_is_no_constant(kind, way):
    tensor = tensors()[kind]
    with pytest.raises(kc.KernelError) as error:
        uses(tensor)[way]()
    if way != "listed":
        assert all(said in error.value.advice for said in ("kc.torch.op", "kc.torch.function", ".detach()"))


@pytest.mark.parametrize("way", [w for w in uses(leaf()) if w not in ("listed", "captured beside")])
def test_a_tangent_of_forward_mode_is_not_dropped(way):
    """It is no matter of `requires_grad`, and `no_grad` keeps it."""
    mode = torch.autograd.forward_ad
    with mode.dual_level(), torch.no_grad():
        dual = mode.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(kc.CutGradient, match="has a tangent of forward mode") as error:
            uses(dual)[way]()
        assert "t.detach()" in error.value.advice and "kc.jvp" in error.value.advice
        uses(dual.detach())[way]()


def test_the_error_of_a_launch_points_at_the_parameter():
    with pytest.raises(kc.KernelError) as error:
        kc.launch(product, 3, [kc.ones(3), leaf()], [kc.zeros(3)])
    assert "w: kc.Array[float]" in str(error.value) or "w: kc.Array[float]" in (error.value.text or "")


@pytest.mark.parametrize("way", [w for w in uses(leaf()) if w not in ("listed", "output")])
@pytest.mark.parametrize("constant", [torch.Tensor.detach, None])
def test_a_constant_that_says_so_is_one(way, constant):
    if constant is not None:
        uses(constant(leaf()))[way]()
    else:
        with torch.no_grad():
            uses(leaf())[way]()


def test_a_function_may_say_so_for_what_it_captures():
    w, x = leaf() * 3.0, leaf()

    def call(x):
        with torch.no_grad():
            return launched(x, w)

    kc.torch.function(call)(x).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_arguments_of_functions_and_operations_carry_their_gradients():
    x, w = leaf(), torch.nn.Parameter(torch.full((3,), 2.0))
    (kc.torch.function(launched)(x, w * 1.0).sum() + kc.torch.op(product, 3, [3])(x, w).sum()).backward()
    assert x.grad.tolist() == [4.0] * 3 and w.grad.tolist() == [2.0] * 3


def test_an_array_that_requires_a_gradient_is_a_leaf_of_its_own():
    for made in (kc.array(leaf(), requires_grad=True), kc.from_torch(leaf())):
        y = kc.zeros(3)
        with kc.Tape() as tape:
            kc.launch(scaled, 3, [made, 1.0], [y])
        tape.backward(grads={y: np.ones(3)})
        assert made.grad.numpy().tolist() == [2.0] * 3


def test_a_computed_tensor_is_no_leaf():
    with pytest.raises(kc.KernelError, match="requires a gradient"):
        kc.from_torch(leaf() * 2.0)
    assert not kc.from_torch(leaf() * 2.0, requires_grad=False).requires_grad


DETACHED = [lambda t: t.detach(), lambda t: t.detach().numpy(), lambda t: kc.array(t.detach())]


@pytest.mark.parametrize("constant", DETACHED, ids=["a tensor", "NumPy", "an array"])
@pytest.mark.parametrize("first", [True, False])
def test_an_argument_captured_as_a_constant_is_never_the_argument(constant, first):
    """`detach()` shares the memory of the argument: both are one to a tape, and two things to torch."""
    t = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    held = constant(t)

    def of(other):
        @kc.torch.function
        def f(a):
            y = kc.zeros(3, real=kc.float64)
            kc.launch(product, 3, [a, other] if first else [other, a], [y])
            return y

        return f

    with pytest.raises(kc.Overlap, match="share"):
        of(held)(t)
    (grad,) = torch.autograd.grad(of(t.detach().clone())(t).sum(), t)
    np.testing.assert_array_equal(grad.numpy(), [1, 2, 3])
