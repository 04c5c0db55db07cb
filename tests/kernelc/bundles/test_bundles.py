"""Bundles outside of kernels: made once, passed as one argument, on tapes, to torch, in every mode of running."""

import numpy as np
import pytest

import kernelc as kc


@kc.struct
class Wind:
    speed: kc.Array[float]
    gust: kc.Array[float] | None


@kc.struct
class Bodies:
    x: kc.Array[kc.float3]
    mass: kc.Array[float]
    gravity: kc.float3
    k: float
    wind: Wind | None


@kc.kernel
def fall(b: Bodies, dt: float, f: kc.Array[kc.float3]):
    i = kc.tid()
    f[i] = b.gravity * b.mass[i] - b.x[i] * (b.k * dt)
    if b.wind is not None:
        f[i] += kc.float3(b.wind.speed[i], 0.0, 0.0)
        if b.wind.gust is not None:
            f[i] *= b.wind.gust[i]


@kc.kernel
def push(b: Bodies, f: kc.Array[kc.float3], dt: float):
    i = kc.tid()
    b.x[i] += f[i] * (dt / b.mass[i])


def bodies(n=4, real=kc.float64, **more):
    random = np.random.default_rng(0)
    x = kc.array(random.uniform(0.5, 1.5, (n, 3)), dtype=kc.float3, real=real, requires_grad=True)
    mass = kc.array(random.uniform(0.5, 1.5, n), dtype=float, real=real, requires_grad=True)
    return Bodies(**{"x": x, "mass": mass, "gravity": [0.0, -9.8, 0.5], "k": 2.0} | more)


def forces(b, dt=0.1, device=None):
    f = kc.zeros(len(b.x), dtype=kc.float3, real=b.x.real)
    kc.launch(fall, len(b.x), [b, dt], [f], device=device)
    return f.numpy()


def expected(b, dt=0.1):
    f = np.array(b.gravity) * b.mass.numpy()[:, None] - b.x.numpy() * (float(b.k) * dt)
    if b.wind is not None:
        f[:, 0] += b.wind.speed.numpy()
        if b.wind.gust is not None:
            f *= b.wind.gust.numpy()[:, None]
    return f


def wind(n=4, gust=True):
    random = np.random.default_rng(1)
    speed, gusts = (kc.array(random.uniform(0.5, 1.5, n), requires_grad=True) for _ in range(2))
    return Wind(speed=speed, gust=gusts if gust else None)


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("blows", [None, False, True])
@pytest.mark.parametrize("real", [kc.float32, kc.float64])
def test_a_launch_reads_the_members(real, blows, device):
    blown = None if blows is None else wind(gust=blows)
    if blown is not None and real is kc.float32:
        members = (blown.speed, blown.gust)
        blown = Wind(*(None if a is None else kc.array(a.numpy().astype(np.float32)) for a in members))
    b = bodies(real=real, wind=blown)
    np.testing.assert_allclose(forces(b, device=device), expected(b), rtol=1e-5 if real is kc.float32 else 1e-12)


@pytest.mark.parametrize("blows", [None, False, True])
def test_gradients_to_members_equal_differences(blows):
    b = bodies(wind=None if blows is None else wind(gust=blows))
    f = kc.zeros(4, dtype=kc.float3, real=kc.float64)
    assert kc.testing.gradcheck(fall, 4, [b, 0.1], [f])
    assert kc.testing.gradcheck(fall, 4, [b, 0.1], [f], wrt=["b.k", "b.gravity", b], device="python")

    def twice(b, f):
        for _ in range(2):
            kc.launch(fall, 4, [b, 0.1], [f])
            kc.launch(push, 4, [b, f, 0.1])

    assert kc.testing.gradcheck(twice, None, [b], [f])
    jacobian = kc.testing.jacobian(fall, 4, [b, 0.1], [f], wrt="b.mass", of="f")
    assert np.count_nonzero(jacobian) == 4 * 2


def test_a_wrong_member_is_named_by_gradcheck():
    @kc.func
    def off(x: float) -> float:
        return x * x

    @off.adjoint
    def _(x: float, adj: float):
        return x * adj

    @kc.kernel
    def wrong(b: Bodies, out: kc.Array[float]):
        i = kc.tid()
        out[i] = off(b.mass[i])

    with pytest.raises(kc.testing.GradientMismatch, match=r"d out\[\d\] / d b.mass\[\d\]"):
        kc.testing.gradcheck(wrong, 4, [bodies()], [kc.zeros(4, real=kc.float64)])


# -- what launches note of a bundle
def test_a_second_launch_finds_its_plan_by_the_bundle(monkeypatch):
    b, f = bodies(), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    kc.launch(fall, 4, [b, 0.1], [f])
    monkeypatch.setattr(type(fall), "plan", lambda *_: pytest.fail("the launch looked at every member"))
    b.x.assign(b.x.numpy() * 2)
    kc.launch(fall, 4, [b, 0.1], [f])
    np.testing.assert_allclose(f.numpy(), expected(b))


def test_a_member_that_is_replaced_is_the_one_that_counts():
    b = bodies()
    assert np.allclose(forces(b), expected(b))
    b.mass = kc.array(np.full(4, 3.0))
    b.k, b.gravity = 7.0, kc.float3(1, 2, 3)
    assert np.allclose(forces(b), expected(b)) and forces(b)[0, 0] != 0
    b.wind = wind()
    assert np.allclose(forces(b), expected(b))
    b.wind.gust = None  # a member of a member
    assert np.allclose(forces(b), expected(b))


def test_numbers_are_kept_as_they_were_given():
    gravity = np.array([0.0, 1.0, 2.0])
    b = bodies(gravity=gravity)
    gravity[:] = 5.0
    assert np.allclose(forces(b), expected(b)) and b.gravity[1] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        b.gravity[1] = 3.0


def test_a_struct_in_a_bundle_is_a_copy_that_cannot_change():
    @kc.struct
    class Material:
        mu: float

    @kc.struct
    class Solid:
        x: kc.Array[float]
        of: Material

    @kc.kernel
    def scaled(s: Solid):
        s.x[kc.tid()] *= s.of.mu

    material = Material(mu=2.0)
    solid = Solid(x=kc.ones(2), of=material)
    material.mu = 5.0
    kc.launch(scaled, 2, [solid])
    assert solid.x.numpy().tolist() == [2.0, 2.0]
    with pytest.raises(kc.WrongUse, match=r"part of a bundle.*\n?.*set the member of the bundle to a new Material"):
        solid.of.mu = 3.0
    solid.of = Material(mu=3.0)
    kc.launch(scaled, 2, [solid])
    assert solid.x.numpy().tolist() == [6.0, 6.0]


def test_memory_that_moves_is_followed():
    """A list takes the precision of its first launch; a bundle of it was signed before."""
    b = bodies(mass=kc.array([1.0, 2.0, 3.0, 4.0]))
    b._note()
    assert np.allclose(forces(b), expected(b)) and b.mass.real is kc.float64
    again = forces(b)
    assert np.allclose(again, expected(b))


def test_numpy_arrays_and_tensors_are_members_as_they_are_arguments():
    torch = pytest.importorskip("torch")
    x, mass = np.ones((4, 3)), torch.arange(4.0, dtype=torch.float64)
    b = bodies(x=x, mass=mass)
    f = kc.zeros(4, dtype=kc.float3, real=kc.float64)
    for _ in range(2):
        kc.launch(fall, 4, [b, 0.1], [f])
        np.testing.assert_allclose(f.numpy(), np.array(b.gravity) * mass.numpy()[:, None] - x * 0.2)
        x *= 2
    kc.launch(push, 4, [bodies(x=x, mass=np.ones(4)), f, 0.1])
    assert not np.allclose(x, 4.0)  # shared, and written


# -- tapes
def test_overwrites_and_replays_of_members():
    b, f = bodies(wind=wind()), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    with kc.Tape() as tape:
        for _ in range(3):
            kc.launch(fall, 4, [b, 0.1], [f])
            kc.launch(push, 4, [b, f, 0.1])
    assert tape.memory() > 0
    start = bodies().x.numpy()
    b.x.assign(start)
    tape.replay()
    tape.backward(grads={b.x: np.ones((4, 3))})
    fresh, g = bodies(wind=wind()), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    with kc.Tape() as other:
        for _ in range(3):
            kc.launch(fall, 4, [fresh, 0.1], [g])
            kc.launch(push, 4, [fresh, g, 0.1])
    other.backward(grads={fresh.x: np.ones((4, 3))})
    for a, c in ((b.x, fresh.x), (b.mass, fresh.mass), (b.wind.gust, fresh.wind.gust)):
        assert a.grad.numpy().tobytes() == c.grad.numpy().tobytes() and np.any(a.grad.numpy())


def test_an_overwritten_member_is_an_error_where_it_is_asked_for():
    b, f = bodies(), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    with pytest.raises(kc.Overwritten, match=r"launch 1 \(squared\) overwrites"), kc.Tape(on_overwrite="error"):
        kc.launch(push, 4, [b, f, 0.1])
        kc.launch(squared, 4, [b])


@kc.kernel
def squared(b: Bodies):
    i = kc.tid()
    b.mass[i] = b.mass[i] * b.mass[i]


def test_checkpoints_take_bundles_as_state():
    def rollout(run):
        b, f = bodies(wind=wind()), kc.zeros(4, dtype=kc.float3, real=kc.float64)

        def step(_):
            kc.launch(fall, 4, [b, 0.1], [f])
            kc.launch(push, 4, [b, f, 0.1])

        with kc.Tape() as tape:
            run(step, b)
        tape.backward(grads={b.x: np.ones((4, 3))})
        return [a.grad.numpy() for a in (b.x, b.mass, b.wind.speed)]

    plain = rollout(lambda step, b: [step(k) for k in range(6)])
    kept = rollout(lambda step, b: kc.checkpoint(step, [b], 6, every=2))
    for a, c in zip(plain, kept):
        np.testing.assert_allclose(a, c, rtol=1e-12)


def test_forward_mode_takes_tangents_of_members():
    b, f = bodies(), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    dots = kc.jvp(fall, 4, [b, 0.1], [f], tangents={b.mass: np.ones(4)})
    np.testing.assert_allclose(dots[f].numpy(), np.tile(b.gravity, (4, 1)))


# -- torch
def test_operations_of_torch_take_bundles_of_tensors():
    torch = pytest.importorskip("torch")
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
    mass = torch.rand(4, dtype=torch.float64, requires_grad=True)
    made = kc.torch.op(fall, dim=4, outputs=[4])

    def rollout(b, dt):
        f = kc.zeros(4, dtype=kc.float3, real=kc.float64)
        kc.launch(fall, 4, [b, dt], [f])
        kc.launch(push, 4, [b, f, dt])
        return b.x

    for blown in (None, Wind(speed=torch.rand(4, dtype=torch.float64), gust=None)):

        def force(x, mass, blown=blown):
            return made(Bodies(x=x, mass=mass, gravity=[0.0, 1.0, 2.0], k=2.0, wind=blown), 0.1)

        def moved(x, mass, blown=blown):
            return kc.torch.function(rollout)(Bodies(x=x, mass=mass, gravity=[0, 1, 2], k=2.0, wind=blown), dt=0.1)

        assert torch.autograd.gradcheck(force, (x, mass))
        assert torch.autograd.gradcheck(moved, (x, mass))


# -- debug mode, what is shown, errors
def test_debug_mode_names_the_member(monkeypatch):
    monkeypatch.setattr(kc.config, "debug", True)
    for device in ("cpu", "python"):
        with pytest.raises(kc.OutOfBounds, match=r"b\.mass"):
            f = kc.zeros(5, dtype=kc.float3, real=kc.float64)
            kc.launch(fall, 5, [bodies(x=kc.zeros(5, dtype=kc.float3, real=kc.float64)), 0.1], [f], device=device)


def test_explain_and_inspect_show_members():
    full, bare = kc.explain(fall), kc.explain(fall, absent=["b.wind"])
    assert full.reads == ["b.x", "b.mass", "b.wind.speed", "b.wind.gust"] and full.writes == ["f"]
    assert bare.reads == ["b.x", "b.mass"]
    for what in ("ir", "adjoint", "tangent", "cpp", "cuda"):
        assert len(kc.inspect(fall, what)) > len(kc.inspect(fall, what, absent=["b.wind"])) > 0
    with pytest.raises(kc.WrongChoice, match=r"no optional member 'b.x'.*\n?.*it has b.wind, b.wind.gust"):
        kc.explain(fall, absent=["b.x"])


def test_errors_of_launches_name_the_member_and_the_parameter():
    b, f = bodies(), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    with pytest.raises(kc.Overlap, match=r"'f' is written, and shares memory with 'b.x'"):
        kc.launch(fall, 4, [b, 0.1], [b.x])
    with pytest.raises(kc.MixedLaunch, match=r"'b.x' is float64, but 'b.mass' is float32"):
        kc.launch(fall, 4, [bodies(mass=kc.zeros(4)), 0.1], [f])
    with pytest.raises(kc.WrongDtype, match=r"argument 'b.mass' must be an array of float64, but holds int32"):
        kc.launch(fall, 4, [bodies(mass=kc.zeros(4, dtype=int)), 0.1], [f])
    with pytest.raises(kc.WrongDtype, match=r"argument 'b.k' must be float64, not str"):
        kc.launch(fall, 4, [bodies(k="stiff"), 0.1], [f])
    with pytest.raises(kc.WrongDtype, match=r"argument 'b' must be a Bodies, not Wind(.|\n)*make one: Bodies\(x=…"):
        kc.launch(fall, 4, [wind(), 0.1], [f])
    with pytest.raises(kc.WrongDtype, match=r"argument 'b' must be a Bodies, not Array"):
        kc.launch(fall, 4, [f, 0.1], [f])
    with pytest.raises(kc.WrongArity, match=r"fall takes 3 arguments \(b, dt, f\), but got 5"):
        kc.launch(fall, 4, [b.x, b.mass, b.gravity, b.k, 0.1])
    with pytest.raises(kc.WrongDtype, match=r"'dt' must be float64, not Bodies"):
        kc.launch(fall, 4, [b, b], [f])


def test_members_passed_one_by_one_are_not_mistaken_for_a_bundle():
    b, f = bodies(), kc.zeros(4, dtype=kc.float3, real=kc.float64)
    for _ in range(2):
        kc.launch(fall, 4, [b, 0.1], [f])
        with pytest.raises(kc.WrongArity):
            kc.launch(fall, 4, [b.x, b.mass, b.gravity, b.k, None, None, 0.1], [f])


def test_bundles_are_made_of_what_they_declare():
    with pytest.raises(kc.WrongUse, match=r"Bodies misses x, mass(.|\n)*give x=…"):
        Bodies()
    with pytest.raises(kc.WrongUse, match=r"Bodies has the fields x, mass, gravity, k, wind, not y"):
        bodies(y=3)
    with pytest.raises(kc.WrongUse, match=r"'mass' of Bodies is None, but not optional"):
        bodies(mass=None)
    with pytest.raises(kc.WrongUse, match=r"'wind' of Bodies is a Wind, not a Bodies"):
        bodies(wind=bodies())
    b = bodies()
    with pytest.raises(kc.WrongUse, match=r"not velocity"):
        b.velocity = 3
    with pytest.raises(kc.WrongUse, match="cannot be deleted"):
        del b.x
    with pytest.raises(kc.WrongType, match=r"float3 \| None: only arrays"):
        kc.float3 | None
    assert repr(wind()).startswith("Wind(speed=kc.array([")


def test_a_parameter_may_be_absent_by_itself():
    @kc.func
    def scale(w, i):
        if w is None:
            return 1.0
        return w[i]

    @kc.kernel
    def weighted(x: kc.Array[float], w: kc.Array[float] | None, wind: Wind | None, out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i] * scale(w, i) + (wind.speed[i] if wind is not None else 0.0)

    x, out = kc.array(np.ones(4)), kc.zeros(4, real=kc.float64)
    blown = wind()
    for w, v in ((None, None), (kc.array(np.arange(4.0)), None), (None, blown), (None, None), (None, blown)):
        kc.launch(weighted, 4, [x, w, v], [out])
        want = (1.0 if w is None else w.numpy()) + (0.0 if v is None else v.speed.numpy())
        np.testing.assert_allclose(out.numpy(), want * np.ones(4))


def test_members_that_a_kernel_leaves_alone_ask_for_no_other_adjoint():
    @kc.kernel
    def weigh(b: Bodies, out: kc.Array[float]):
        out[kc.tid()] = 2.0 * b.mass[kc.tid()]

    for asks in (False, True):
        x = kc.zeros(3, dtype=kc.float3, requires_grad=asks)
        mass = kc.array([1.0, 2.0, 3.0], requires_grad=True)
        bundle, out = Bodies(x=x, mass=mass), kc.zeros(3)
        with kc.Tape() as tape:
            kc.launch(weigh, 3, [bundle], [out])
        tape.backward(grads={out: np.ones(3)})
        np.testing.assert_array_equal(mass.grad.numpy(), 2.0)
        assert not asks or (x.grad.numpy() == 0).all()
    (variant,) = weigh._variants.values()
    assert len(variant._adjoints) == 1
    np.testing.assert_array_equal(tape.jvp({x: np.ones((3, 3)), mass: np.ones(3)}, outputs=[out])[out], 2.0)


@kc.struct
class Moving:
    x: kc.Array[float]
    v: kc.Array[float]


@kc.kernel
def swing(s: Moving, k: kc.Array[float]):
    i = kc.tid()
    s.v[i] -= 0.1 * k[0] * s.x[i]
    s.x[i] += 0.1 * s.v[i]


def test_the_state_of_a_checkpoint_may_be_one_bundle():
    def slope(state_of):
        s = Moving(x=kc.array([1.0, 2.0]), v=kc.zeros(2))
        k = kc.array([3.0], requires_grad=True)
        with kc.Tape() as tape:
            kc.checkpoint(lambda n: kc.launch(swing, 2, [s, k]), state_of(s), steps=5)
        tape.backward(grads={s.x: np.ones(2)})
        return k.grad.item()

    assert slope(lambda s: s) == slope(lambda s: [s.x, s.v]) != 0.0
    with pytest.raises(kc.WrongChoice, match=r"the state of kc.checkpoint holds a ndarray"):
        slope(lambda s: [s, np.zeros(2)])
