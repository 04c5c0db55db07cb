"""Reverse sweeps that cannot be right do not run: each error says why, and points at the kernel that it is about."""

import linecache
import traceback

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def total(y: kc.Array[float], loss: kc.Array[float]):
    loss[0] += y[kc.tid()]


@kc.kernel
def rounded(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.floor(x[i])


@kc.kernel
def counted(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = float(int(x[i]))


@kc.kernel
def stopped(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.stop_grad(x[i]) * 2.0


@kc.kernel
def power(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for k in range(n):
        p *= x[i]
    y[i] = p


@kc.kernel
def root(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sqrt(x[i])


def leaf(*numbers):
    return kc.array(np.array(numbers), requires_grad=True)


def plain(n=2):
    return kc.zeros(n, real=kc.float64)


def taped(*launches, **options):
    with kc.Tape(**options) as tape:
        for kernel, *args in launches:
            kc.launch(kernel, 2, args, device="python")
    return tape


def loss_of_two():
    x, y, loss = leaf(1.0, 2.0), plain(), plain(1)
    return x, y, loss, taped((square, x, y), (total, y, loss))


def non_scalar():
    x, y = leaf(1.0, 2.0), plain()
    taped((square, x, y)).backward(y)


def not_recorded():
    x, y = leaf(1.0, 2.0), plain()
    taped((square, x, y)).backward(plain(1))


def without_a_leaf():
    x, y, loss = plain(), plain(), plain(1)
    taped((square, x, y), (total, y, loss)).backward(loss)


def cut_by(kernel):
    def cut():
        x, y, loss = leaf(1.5, 2.5), plain(), plain(1)
        taped((kernel, x, y), (total, y, loss)).backward(loss)

    return cut


def written_from_outside():
    x, _, loss, tape = loss_of_two()
    x.assign(np.zeros(2))
    tape.backward(loss)


def overwritten():
    x, y, z = leaf(1.0, 2.0), plain(), plain()
    taped((square, x, y), (square, y, z), (square, x, y), on_overwrite="error")


def while_recording():
    x, y = leaf(1.0, 2.0), plain()
    with kc.Tape() as tape:
        kc.launch(square, 2, [x, y], device="python")
        tape.backward(grads={y: np.ones(2)})


def replay_while_recording():
    with kc.Tape() as tape:
        tape.replay()


def replay_without_forward():
    x, y = leaf(1.0, 2.0), plain()
    with kc.Tape() as tape:
        tape.record(lambda: None, reads=[x], writes=[y])
    tape.replay()


def with_seed(**seed):
    def run():
        _, _, loss, tape = loss_of_two()
        tape.backward(**{name: make(loss) for name, make in seed.items()})

    return run


SEED = "write tape.backward(loss), or tape.backward(grads={array: weights})"
CASES = {
    "a loss of two elements": (non_scalar, kc.NonScalarLoss, "the loss has shape (2,), not one element",
        "seed it yourself: tape.backward(grads={array: weights})", "def square"),
    "a loss of another tape": (not_recorded, kc.NotRecorded,
        "the loss was not written by a launch that this tape recorded",
        "launch inside `with kc.Tape() as tape:`", "def square"),
    "no leaf": (without_a_leaf, kc.CutGradient, "no array that requires a gradient leads to the loss",
        "mark the leaves: kc.array(…, requires_grad=True); kc.explain(kernel) shows cuts", "def total"),
    "floor": (cut_by(rounded), kc.CutGradient,
        "floor ends the gradient on the way to the loss: its derivative is zero",
        "use a smooth function here, or mark a leaf that comes after it", "kc.floor(x[i])"),
    "int": (cut_by(counted), kc.CutGradient, "int() ends the gradient on the way to the loss: its derivative is zero",
        "use a smooth function here, or mark a leaf that comes after it", "int(x[i])"),
    "stop_grad": (cut_by(stopped), kc.CutGradient,
        "stop_grad ends the gradient on the way to the loss: its derivative is zero",
        "use a smooth function here, or mark a leaf that comes after it", "kc.stop_grad(x[i])"),
    "a write from outside": (written_from_outside, kc.Overwritten,
        "an array of launch 0 (square) was written from outside after it was recorded",
        "call tape.replay() first, so that the recorded values are those of today", "def square"),
    "an overwritten array": (overwritten, kc.Overwritten,
        "launch 2 (square) overwrites what the reverse sweep of launch 1 (square) needs",
        'write to another array, or use kc.Tape(on_overwrite="copy")', "def square"),
    "while recording": (while_recording, kc.TapeError, "a tape cannot go back while it records",
        "leave its `with` block first", None),
    "replay while recording": (replay_while_recording, kc.TapeError, "a tape cannot be replayed while it records",
        "leave its `with` block first", None),
    "replay without forward": (replay_without_forward, kc.TapeError,
        "an operation on the tape has no forward function, so it cannot be replayed",
        "give it: tape.record(backward, …, forward=function)", None),
    "no seed": (with_seed(), kc.TapeError, "backward takes either a loss or grads", SEED, None),
    "two seeds": (with_seed(loss=lambda a: a, grads=lambda a: {a: [1.0]}), kc.TapeError,
        "backward takes either a loss or grads", SEED, None),
    "a number as loss": (with_seed(loss=lambda a: 3.0), kc.TapeError,
        "the loss is an array of one element, not float", "let a kernel write it to an array, as in kc.zeros(1)", None),
    "a seed that is no dictionary": (with_seed(grads=lambda a: 3), kc.TapeError, "grads is a dictionary, not int",
        "write grads={array: weights}", None),
    "a seed of no array": (with_seed(grads=lambda a: {3: [1.0]}), kc.TapeError, "a key of grads is an array, not 3",
        "write grads={array: weights}", None),
    "a seed of no numbers": (with_seed(grads=lambda a: {a: "text"}), kc.TapeError,
        "the weights of an array are numbers, not 'text'", "give one number for each of its elements", None),
    "a seed of another shape": (with_seed(grads=lambda a: {a: [1.0, 2.0]}), kc.WrongShape,
        "the gradient of an array of shape (1,) has shape (2,)", kc.WrongShape.hint, None),
}  # fmt: skip


@pytest.mark.parametrize(("run", "kind", "says", "advice", "at"), CASES.values(), ids=CASES)
def test_what_cannot_be_right_is_explained(run, kind, says, advice, at):
    with pytest.raises(kc.KernelError) as caught:
        run()
    error = caught.value
    assert (type(error), error.message, error.advice) == (kind, says, advice)
    text = "".join(traceback.format_exception(error))
    assert f"[{kind.code}] {says}\nhelp: {advice}\n" in text
    frames = [f.name for f in traceback.extract_tb(error.__traceback__) if "kernelc/src" in f.filename]
    assert len(frames) <= 1, frames
    if at is not None:
        assert error.filename == __file__
        assert at in linecache.getline(__file__, error.lineno)
        marked = error.text[error.offset - 1 : error.end_offset - 1]
        assert marked == at
        assert f"{__file__}:{error.lineno}" in str(error)


def test_a_loop_tape_over_the_limit_is_said_and_the_process_goes_on():
    def gradient(n):
        x, y = leaf(1.0, 1.0), plain()
        with kc.Tape() as tape:
            kc.launch(power, 2, [x, n, y])
        tape.backward(grads={y: np.ones(2)})
        return x.grad.numpy()

    kc.config.tape_limit = 100_000
    try:
        with pytest.raises(kc.TapeFull) as caught:
            gradient(100_000)
        np.testing.assert_array_equal(gradient(100), 100.0)
    finally:
        kc.config.tape_limit = 2 << 30
    error = caught.value
    assert error.message == "the adjoint of power, thread 0: the loop tape needs more than 100000 bytes"
    assert error.advice == 'raise kc.config.tape_limit, or use @kc.kernel(loop_tape="sqrt")'
    assert (error.kernel, error.thread, error.filename) == ("power", 0, __file__)
    np.testing.assert_array_equal(gradient(100_000), 100_000.0)


def test_a_singular_derivative_can_be_an_error():
    kc.config.singular = "raise"
    try:
        x, y = leaf(1.0, 0.0), plain()
        tape = taped((root, x, y))
        with pytest.raises(kc.SingularDerivative) as caught:
            tape.backward(grads={y: np.ones(2)})
    finally:
        kc.config.singular = "zero"
    error = caught.value
    assert error.message == "the adjoint of root, thread 1: the derivative of sqrt does not exist here"
    assert "kc.sqrt" in linecache.getline(__file__, error.lineno)


@kc.kernel
def winners(x: kc.Array[float], best: kc.Array[float]):
    i = kc.tid()
    kc.atomic_max(best, 0, x[i])
    best[0] += x[i]


def test_an_atomic_whose_winner_cannot_be_told_is_refused():
    x, best = leaf(1.0, 2.0), plain(1)
    with kc.Tape(), pytest.raises(kc.NotDifferentiable) as caught:
        kc.launch(winners, 2, [x, best], device="python")
    assert "best is changed by an atomic" in caught.value.message
    assert caught.value.advice == "do the two in two launches"
    assert caught.value.filename == __file__


# -- the user's own frames stay
def test_frames_of_the_users_own_operations_stay_in_the_traceback():
    x, y = leaf(1.0, 2.0), plain()

    def my_backward():
        kc.launch(square, 2, [x], device="python")

    with kc.Tape() as tape:
        tape.record(my_backward, reads=[x], writes=[y])
    with pytest.raises(kc.WrongArity) as caught:
        tape.backward(grads={y: np.ones(2)})
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert "my_backward" in names
    assert "check_and_launch" not in names
