"""`ph.jvp`: tangents of rollouts against the reverse sweep, against differences, and k at once against one by one."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

STEPS = {"semi_implicit": dict(dt=5e-4, steps=240, every=40), "backward_euler": dict(dt=4e-3, steps=30, every=10)}


def everything(real="float64"):
    """A bit of all that there is, in contact from early on."""
    scene = ph.Scene()
    scene.add_rigid("cube", ph.Box(0.3, 0.2, 0.4), density=500.0, pos=(0, 0.16, 0), vel=(1, -0.2, 0),
                    rot=ph.quat((0, 0, 1), 0.1))  # fmt: skip
    scene.add_rigid("ball", ph.Sphere(0.1), density=300.0, pos=(0.05, 0.37, 0.02), vel=(0, -1, 0))
    block = ph.TetMesh.box((0.3, 0.3, 0.3), cells=2).moved(pos=(2, 0.001, 0))
    soft = ph.NeoHookean(E=2e4, nu=0.3)
    scene.add_soft("jelly", block, density=300.0, vel=(0.3, -0.5, 0), material=soft, damping=1.0, activation=True)
    sheet = ph.TriMesh.grid((1, 1), cells=(3, 3)).moved(pos=(0, 2, 3))
    scene.add_cloth("flag", sheet, mass=0.2, stretch=1e2, shear=1e2, bend=0.1, lift=1.0, drag=0.5)
    points = [[5.0, 0.02, 0], [5.3, 0.05, 0], [5.3, 0.4, 0]]
    scene.add_springs("net", points, [[0, 1], [1, 2]], mass=0.1, ke=50.0, kd=0.1)
    scene.add_wind((1.0, 0.2, 0.3))
    scene.add_ground("floor", ke=1e4, kd=20.0, kf=100.0, mu=0.5)
    return scene.build(real=real)


def steps(integrator):
    exact = ph.BackwardEuler(tol=1e-13) if integrator == "backward_euler" else integrator
    return dict(STEPS[integrator], integrator=exact)


def frames(trajectory):
    return {f"{name}.{what}": getattr(trajectory[name], what) for name in trajectory for what in trajectory[name].names}


def reverse(model, names, weights, **how):
    """Gradients of Σ weights · frames by the parameters."""
    values = {n: torch.tensor(np.asarray(model[n]), requires_grad=True) for n in names}
    seen = frames(ph.rollout(model.replace(values), **how))
    loss = sum((torch.as_tensor(weights[n]) * seen[n]).sum() for n in weights)
    found = torch.autograd.grad(loss, list(values.values()), allow_unused=True)
    return {n: np.zeros(v.shape) if g is None else g.numpy() for (n, v), g in zip(values.items(), found)}


@pytest.mark.parametrize("integrator", STEPS)
def test_tangents_are_the_transposed_of_the_reverse_sweep(integrator):
    model, rng = everything(), np.random.default_rng(3)
    how = steps(integrator)
    names = [p.name for p in model.parameters()]
    directions = {n: rng.normal(size=np.shape(model[n])) * (0.1 + np.abs(model[n])) for n in names}
    moved = frames(ph.jvp(model, directions, **how))
    weights = {n: rng.normal(size=a.shape[1:]) for n, a in moved.items()}
    pushed = sum((weights[n] * a[0]).sum() for n, a in moved.items())
    grads = reverse(model, names, weights, **how)
    terms = [(grads[n] * directions[n]).sum() for n in names]
    # Equations of implicit steps are solved to a tolerance, twice.
    close = 1e-12 if integrator == "semi_implicit" else 1e-9
    assert abs(pushed - sum(terms)) <= close * np.abs(terms).max()
    assert sum(abs(t) > 1e-9 * max(map(abs, terms)) for t in terms) > 20, "nearly all parameters matter here"


@pytest.mark.parametrize("integrator", ["semi_implicit", pytest.param("backward_euler", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", ["cube.density", "cube.v", "floor.mu", "floor.ke", "jelly.mu", "flag.drag", "gravity"])
def test_tangents_against_central_differences(integrator, name):
    model, how = everything(), steps(integrator)
    value = np.asarray(model[name])
    way = np.random.default_rng(1).normal(size=value.shape) * np.abs(value).max()
    moved = frames(ph.jvp(model, {name: way}, **how))
    there, back = (frames(ph.rollout(model.replace({name: value + s * way}), **how)) for s in (1e-6, -1e-6))
    for what, a in moved.items():
        slope = (there[what] - back[what]).numpy() / 2e-6
        # Differences step over the caps of friction; the law above is the sharp one.
        assert np.allclose(a[0], slope, rtol=2e-5, atol=1e-6 * (1 + np.abs(slope).max())), what


def test_many_at_once_are_each_alone():
    model, how, rng = everything(), dict(STEPS["semi_implicit"]), np.random.default_rng(0)
    names = ["cube.density", "cube.v", "jelly.mu", "floor.mu", "gravity"]
    ways = {n: rng.normal(size=(5, *np.shape(model[n]))) for n in names}
    rollout, together = ph.jvp(model, ways, primal=True, **how)
    plain = frames(ph.rollout(model, **how))
    assert all(np.array_equal(a, plain[n].numpy()) for n, a in frames(rollout).items()), "the bits of a rollout"
    for k in range(5):
        alone = frames(ph.jvp(model, {n: way[k] for n, way in ways.items()}, **how))
        for n, a in frames(together).items():
            assert a.shape[0] == 5
            assert np.allclose(a[k], alone[n][0], rtol=1e-12, atol=1e-12 * np.abs(a).max() + 1e-300), n


def test_tangents_of_a_control():
    scene = ph.Scene().add_springs("ball", [[0.0, 0, 0], [0.3, 0, 0]], [[0, 1]], mass=0.1, ke=2.0, kd=0.05,
                                   actuation=True)  # fmt: skip
    scene.fix("ball", where=lambda x: x[:, 0] == 0)
    model, rng = scene.build(real="float64"), np.random.default_rng(0)
    control = rng.normal(size=(30, 1)) * 0.1
    way = rng.normal(size=(2, *control.shape))
    how = dict(dt=1e-2, steps=30, every=5, substeps=2)
    moved = ph.jvp(model, {"ball.actuation": way}, control={"ball.actuation": control}, **how)["ball"].x
    for k in range(2):
        there, back = (ph.rollout(model, control={"ball.actuation": control + s * way[k]}, **how)["ball"].x.numpy()
                       for s in (1e-6, -1e-6))  # fmt: skip
        assert np.allclose(moved[k], (there - back) / 2e-6, atol=1e-9)


def test_single_precision_is_the_rounding_of_double():
    way, how = {"floor.ke": 1e4, "cube.density": 500.0}, dict(STEPS["semi_implicit"])
    single, double = (frames(ph.jvp(everything(real), way, **how)) for real in ("float32", "float64"))
    for n, a in double.items():
        assert single[n].dtype == np.float32
        assert np.allclose(single[n], a, atol=2e-3 * (np.abs(a).max() + 1e-3)), n


def test_what_cannot_be_pushed_is_refused():
    model, how = everything(), dict(dt=1e-4, steps=2)
    with pytest.raises(ValueError, match="no parameter moves"):
        ph.jvp(model, {}, **how)
    with pytest.raises(KeyError, match=r"cube\.density"):
        ph.jvp(model, {"cube.densty": 1.0}, **how)
    with pytest.raises(ValueError, match=r"'cube.v' has shape \(2,\); expected \(3,\), or \(k, 3\)"):
        ph.jvp(model, {"cube.v": [1.0, 2.0]}, **how)
    with pytest.raises(ValueError, match=r"as many for every parameter: there are 2 of 'cube\.v', 3 of 'floor\.mu'"):
        ph.jvp(model, {"cube.v": np.ones((2, 3)), "floor.mu": np.ones(3)}, **how)
    with pytest.raises(ValueError, match="batch"):
        ph.jvp(model.batched(2), {"floor.mu": 1.0}, **how)
    with pytest.raises(ValueError, match="finite"):
        ph.jvp(model, {"floor.mu": np.nan}, **how)
    with pytest.raises(TypeError, match="Pendulum"):
        ph.jvp(ph.Pendulum(), {"length": 1.0}, **how)


def dropped_arm():
    """A robot whose hand lands on the ground, and a cube beside it."""
    robot = ph.Robot()
    for name, density in (("upper", 900.0), ("lower", 500.0)):
        robot.add_link(name, ph.Capsule(0.05, 0.4), density=density, pos=(0, -0.2, 0))
    robot.add_joint("shoulder", "spherical", child="upper", pos=(0, 0.1, 0), damping=0.05)
    robot.add_joint("elbow", "revolute", parent="upper", child="lower", pos=(0, -0.4, 0), axis=(1, 0, 0), damping=0.05)
    robot.add_motor("elbow", kp=2.0, kd=0.1, target=0.4)
    scene = ph.Scene()
    scene.add_robot("arm", robot, pos=(0, 0.72, 0), rot=ph.quat((0, 1, 0), 0.3),
                    q=[*ph.quat((1, 0, 0), 0.2), 0.3], qd=[0.5, 0.1, 0.2, -1.0])
    scene.add_rigid("cube", ph.Box(0.2, 0.2, 0.2), density=500.0, pos=(1, 0.15, 0), vel=(0.5, -1, 0))
    scene.add_ground("floor", ke=1e4, kd=20.0, mu=0.5)
    return scene.build(real="float64")


def test_links_of_robots_and_corners_move_as_the_reverse_sweep_says():
    model, rng = dropped_arm(), np.random.default_rng(0)
    how = dict(dt=1e-3, steps=200, every=100)
    names = ["arm.q", "arm.qd", "arm.pos", "arm.rot", "arm.lower.mass", "arm.elbow.pos", "arm.elbow.kp", "gravity",
             "cube.v", "floor.mu"]  # fmt: skip
    ways = {n: rng.normal(size=(2, *np.shape(model[n]))) for n in names}
    rolled, moved = ph.jvp(model, ways, primal=True, **how)
    values = {n: torch.tensor(np.asarray(model[n]), requires_grad=True) for n in names}
    run = ph.rollout(model.replace(values), **how)

    def looks(trajectory):
        hand = trajectory["arm"].links["lower"]
        return {"x": hand.x, "rot": hand.rot, "arm": trajectory.vertices("arm"), "cube": trajectory.vertices("cube")}

    along, seen = looks(moved), looks(run)
    for what, a in looks(rolled).items():
        assert isinstance(a, np.ndarray) and np.array_equal(a, seen[what].detach().numpy()), what
        weights = rng.normal(size=a.shape)
        grads = torch.autograd.grad((torch.tensor(weights) * seen[what]).sum(), list(values.values()),
                                    retain_graph=True, allow_unused=True)  # fmt: skip
        for k in range(2):
            terms = [0.0 if g is None else float((g.numpy() * ways[n][k]).sum()) for n, g in zip(names, grads)]
            assert along[what].shape == (2, *a.shape)
            assert np.isclose((weights * along[what][k]).sum(), sum(terms), rtol=0, atol=1e-11 * np.abs(terms).max())
    assert np.abs(along["arm"][:, -1]).max() > 0.1


def test_looks_at_robots_go_through_transforms_of_torch():
    model, rng = dropped_arm(), np.random.default_rng(1)
    q, mass, a = (torch.tensor(np.asarray(model[n])) for n in ("arm.q", "arm.lower.mass", "arm.qd"))

    def hand(q, mass):
        moved = model.replace({"arm.q": q, "arm.lower.mass": mass})
        return ph.rollout(moved, dt=1e-3, steps=10, every=10)["arm"].links["lower"].x

    def torque(q, mass, a):
        return ph.inverse_dynamics(model.replace({"arm.q": q, "arm.lower.mass": mass}), None, {"arm": a})["arm"]

    def inertia(q, mass):
        return ph.mass_matrix(model.replace({"arm.q": q, "arm.lower.mass": mass}))["arm"]

    def place(q):
        return ph.kinematics(model.replace({"arm.q": q}))["arm"]["lower"].x

    for function, given in ((hand, (q, mass)), (torque, (q, mass, a)), (inertia, (q, mass)), (place, (q,))):
        ways = [torch.tensor(rng.normal(size=(2, *x.shape))) for x in given]
        moved = torch.func.vmap(lambda *way: torch.func.jvp(function, given, way)[1])(*ways)  # noqa: B023
        for k in range(2):
            there, back = (function(*(x + s * w[k] for x, w in zip(given, ways))) for s in (1e-6, -1e-6))
            torch.testing.assert_close(moved[k], (there - back) / 2e-6, rtol=1e-7, atol=1e-7)
        weights = torch.tensor(rng.normal(size=moved.shape[1:]))
        pulled = torch.func.vjp(function, *given)[1](weights)
        terms = torch.stack([(g * w[0]).sum() for g, w in zip(pulled, ways)])
        assert torch.isclose((weights * moved[0]).sum(), terms.sum(), rtol=0, atol=1e-11 * float(terms.abs().max()))


def strung():
    scene = ph.Scene().add_springs("b", [[0.0, 0, 0], [0.3, 0, 0], [0.6, 0.1, 0]], [[0, 1], [1, 2]], mass=0.1, ke=20.0,
                                   kd=0.05, actuation=True)  # fmt: skip
    return scene.fix("b", where=lambda x: x[:, 0] == 0).build(real="float64")


HOW = dict(dt=1e-2, steps=16, every=2, substeps=2)


def test_gradients_of_rollouts_have_gradients():
    """By parameters, the start and the control: Hessian products are differences of the gradient."""
    model, rng = strung(), np.random.default_rng(0)
    names = ["b.ke", "b.mass", "b.v", "b.actuation"]
    values = [torch.tensor(np.asarray(model[n])) for n in names[:3]] + [torch.tensor(0.1 * rng.normal(size=(16, 2)))]
    ways = [torch.tensor(rng.normal(size=v.shape)) * (0.1 + v.abs().max()) for v in values]

    def loss(*given):
        *steady, control = given
        run = ph.rollout(model.replace(dict(zip(names, steady))), control={"b.actuation": control}, **HOW)
        # All at rest and alike: adjoints are zero on the way, and move all the same.
        return (run["b"].x.sin() + run["b"].v.square() + run["b"].v).sum()

    gradient = torch.func.grad(loss, argnums=(0, 1, 2, 3))
    along = torch.func.jvp(gradient, tuple(values), tuple(ways))[1]
    sides = [gradient(*(v + h * w for v, w in zip(values, ways))) for h in (1e-5, -1e-5)]
    for product, there, back, name in zip(along, *sides, names):
        near = (there - back) / 2e-5
        assert torch.allclose(product, near, rtol=1e-6, atol=1e-6 * float(near.abs().max())), name
    leaves = [v.clone().requires_grad_() for v in values]
    first = torch.autograd.grad(loss(*leaves), leaves, create_graph=True)
    again = torch.autograd.grad(first, leaves, ways)
    for product, other in zip(again, along):
        assert torch.allclose(product, other, rtol=1e-10, atol=1e-12 * float(other.abs().max()))
    start = torch.tensor([1.0, 0.3], dtype=torch.float64)
    one = lambda s: ph.rollout(model.replace({"b.ke": 20.0 * s[0], "b.mass": 0.1 * s[1]}), **HOW)["b"].x[-1].sum()  # noqa: E731
    hessian = torch.func.hessian(one)(start)
    assert torch.allclose(hessian, hessian.T, rtol=1e-9) and hessian.abs().min() > 0


def test_second_derivatives_that_there_are_not_are_refused():
    model, ke = strung(), torch.tensor(20.0, dtype=torch.float64, requires_grad=True)
    with pytest.raises(TypeError, match="backward Euler have no second derivatives"):
        x = ph.rollout(model.replace({"b.ke": ke}), dt=1e-2, steps=2, integrator="backward_euler")["b"].x
        torch.autograd.grad(torch.autograd.grad(x.sum(), ke, create_graph=True)[0], ke)
    with pytest.raises(TypeError, match="no derivatives of that order"):
        x = ph.rollout(model.replace({"b.ke": ke}), dt=1e-2, steps=2)["b"].x
        second = torch.autograd.grad(torch.autograd.grad(x.sum(), ke, create_graph=True)[0], ke, create_graph=True)[0]
        second.backward()
