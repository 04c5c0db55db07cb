"""The rollout as one operation: gradients by every parameter through contact, checkpoints, torch and tapes."""

import gc

import numpy as np
import pytest
import torch
from touching import MODEL, STEPS, central, leaves, loss, scene

import kernelc as kc
from nablasim import physics as ph


def gradients(names, **settings):
    values = leaves(names)
    loss(values, **settings).backward()
    return {name: v.grad for name, v in values.items()}


@pytest.mark.parametrize("ground", [{}, {"damping": "linear"}, {"smoothing": 0.002}])
@pytest.mark.parametrize("alternative", [False, True])
def test_every_parameter_against_central_differences_through_contact(ground, alternative):
    model = scene(**ground).build("float64")
    names = ["block.mass", "block.E", "block.nu"] if alternative else model.names()
    values = leaves(names, model)
    loss(values, model).backward()
    rng = np.random.default_rng(1)
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        found = float((value.grad * way).sum())
        h = 1e-6 * max(0.01, float(value.detach().abs().max()))
        assert found == pytest.approx(central(values, name, way, h, model=model), rel=2e-5, abs=1e-6), name
        assert found != 0.0, f"{name} has no effect"


def test_per_element_values_and_their_sum_for_one_value():
    count = MODEL.layout.count["tets"]
    each = torch.full((count,), 5.0, dtype=torch.float64, requires_grad=True)
    loss({"block.damping": each}).backward()
    (one,) = gradients(["block.damping"]).values()
    assert one.item() == pytest.approx(each.grad.sum().item(), rel=1e-12)
    assert (each.grad != 0).all()


@pytest.mark.parametrize("checkpoint", ["all", "sqrt", 40, 20, 9, 4, 1, 2**20])
def test_checkpoints_do_not_change_a_bit(checkpoint):
    names = ["block.mu", "floor.mu", "net.x", "gravity"]
    expected = gradients(names, checkpoint="all")
    found = gradients(names, checkpoint=checkpoint)
    for name in names:
        assert torch.equal(found[name], expected[name]), name


@pytest.mark.parametrize(("steps", "every", "substeps"), [(99, 9, 1), (97, 97, 1), (60, 1, 1), (30, 5, 3), (7, 7, 5)])
def test_any_number_of_steps_frames_and_substeps(steps, every, substeps):
    settings = {"steps": steps, "every": every, "substeps": substeps}
    expected = gradients(["net.ke"], checkpoint="all", **settings)
    found = gradients(["net.ke"], checkpoint="sqrt", **settings)
    assert torch.equal(found["net.ke"], expected["net.ke"])
    values = leaves(["net.ke"])
    differences = central(values, "net.ke", torch.tensor(1.0), 1e-4, **settings)
    assert expected["net.ke"].item() == pytest.approx(differences, rel=1e-5)


def test_substeps_are_shorter_steps():
    fine = ph.rollout(MODEL, dt=5e-4, steps=40, every=2)
    coarse = ph.rollout(MODEL, dt=1e-3, steps=20, substeps=2)
    assert torch.equal(fine["block"].x, coarse["block"].x)
    np.testing.assert_allclose(fine.times, coarse.times)


def test_gradients_survive_when_only_the_loss_is_kept():
    values = leaves(["floor.ke"])
    kept = loss(values)
    others = [loss(leaves(["floor.ke"]), steps=50, checkpoint=c).detach() for c in ("all", "sqrt")]
    gc.collect()
    kept.backward()
    assert len(others) == 2
    assert torch.equal(values["floor.ke"].grad, gradients(["floor.ke"])["floor.ke"])


def test_two_rollouts_in_one_loss_add_up():
    values = leaves(["floor.ke"])
    (loss(values) + loss(values, weights=1)).backward()
    apart = [gradients(["floor.ke"], weights=w)["floor.ke"] for w in (0, 1)]
    assert values["floor.ke"].grad.item() == pytest.approx(sum(a.item() for a in apart), rel=1e-12)


def test_backward_twice_gives_the_same():
    values = leaves(["floor.ke"])
    total = loss(values, checkpoint=6)
    first, second = (torch.autograd.grad(total, values["floor.ke"], retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_a_rollout_without_gradients_gives_the_same_frames():
    values = leaves(["block.mu"])
    with_gradient = ph.rollout(MODEL.replace(values), dt=1e-3, steps=STEPS, every=5)
    without = ph.rollout(MODEL, dt=1e-3, steps=STEPS, every=5)
    assert with_gradient["block"].x.requires_grad and not without["block"].x.requires_grad
    assert torch.equal(with_gradient["block"].x, without["block"].x)
    assert torch.equal(with_gradient["net"].v, without["net"].v)


def test_nothing_is_kept_under_no_grad():
    with torch.no_grad():
        frames = ph.rollout(MODEL.replace(leaves(["block.mu"])), dt=1e-3, steps=10)
    assert not frames["block"].x.requires_grad


def test_no_steps_are_the_start():
    still = ph.rollout(MODEL, dt=1e-3, steps=0)
    assert len(still) == 1
    np.testing.assert_array_equal(still["net"].x[0].numpy(), MODEL["net.x"])


def test_a_tape_of_kernelc_holds_a_rollout_as_one_operation():
    weights = np.random.default_rng(0).normal(size=(11, 9, 3))
    ke = kc.array(np.full(1, 60.0), requires_grad=True)
    with kc.Tape() as tape:
        x = ph.rollout(MODEL.replace({"net.ke": ke}), dt=1e-3, steps=STEPS, every=10)["net"].x
    tape.backward(grads={x: weights})

    def by_torch(value):
        k = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        frames = ph.rollout(MODEL.replace({"net.ke": k}), dt=1e-3, steps=STEPS, every=10)["net"].x
        (frames * torch.tensor(weights)).sum().backward()
        return frames.detach().numpy(), k.grad.numpy()

    expected = by_torch(60.0)
    np.testing.assert_array_equal(x.numpy(), expected[0])
    np.testing.assert_array_equal(ke.grad.numpy()[0], expected[1])

    ke.assign(np.full(1, 70.0))
    tape.replay()
    tape.zero()
    tape.backward(grads={x: weights})
    expected = by_torch(70.0)
    np.testing.assert_array_equal(x.numpy(), expected[0])
    np.testing.assert_array_equal(ke.grad.numpy()[0], expected[1])


def test_control_on_a_tape_is_read_again_in_a_replay():
    control = kc.array(np.full(STEPS, 0.05), requires_grad=True)
    with kc.Tape() as tape:
        x = ph.rollout(MODEL, dt=1e-3, steps=STEPS, every=STEPS, control={"net.actuation": control})["net"].x
    control.assign(np.full(STEPS, 0.1))
    tape.replay()
    expected = ph.rollout(MODEL, dt=1e-3, steps=STEPS, every=STEPS)["net"].x
    np.testing.assert_array_equal(x.numpy(), expected.numpy())
    tape.backward(grads={x: np.random.default_rng(0).normal(size=x.numpy().shape)})
    assert np.abs(control.grad.numpy()).min() > 0


def test_a_kernelc_array_without_a_tape_is_refused():
    with pytest.raises(TypeError, match="no tape is open"):
        ph.rollout(MODEL.replace({"net.ke": kc.array(np.full(1, 60.0), requires_grad=True)}), dt=1e-3, steps=2)


def test_control_varies_parameters_in_time():
    control = torch.tensor(0.1 * np.sin(np.arange(STEPS)), requires_grad=True)
    loss({}, control={"block.activation": control}).backward()
    steady = torch.full((STEPS,), 0.05, dtype=torch.float64)
    assert torch.equal(loss({}, control={"block.activation": steady}), loss({}))
    rng = np.random.default_rng(2)
    way, h = torch.tensor(rng.normal(size=STEPS)), 1e-6
    two = [loss({}, control={"block.activation": control.detach() + s * h * way}) for s in (1, -1)]
    assert float((control.grad * way).sum()) == pytest.approx(float(two[0] - two[1]) / (2 * h), rel=1e-6)


def test_control_per_element_has_the_same_bits_whatever_is_kept():
    values = 0.1 * np.random.default_rng(3).normal(size=(STEPS, MODEL.layout.count["springs"]))
    found = []
    for checkpoint in ("all", "sqrt", 10):
        control = torch.tensor(values, requires_grad=True)
        ke = leaves(["net.ke"])["net.ke"]
        loss({"net.ke": ke}, control={"net.actuation": control}, checkpoint=checkpoint).backward()
        found.append((control.grad, ke.grad))
    for control, ke in found[1:]:
        assert torch.equal(control, found[0][0]) and torch.equal(ke, found[0][1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dt": 0.0}, "dt must be positive"),
        ({"dt": "0.001"}, "dt must be positive"),
        ({"steps": -1}, "steps is a whole number from 0 on"),
        ({"every": 0}, "every is a whole number from 1 on"),
        ({"every": 7}, "not a multiple of every = 7: the last 2 steps would not be seen"),
        ({"substeps": 1.5}, "substeps is a whole number"),
        ({"integrator": "rk4"}, 'integrators by name are "semi_implicit"'),
        ({"checkpoint": "some"}, 'checkpoint is "auto", "all", "sqrt"'),
        ({"checkpoint": 0}, 'checkpoint is "auto", "all", "sqrt"'),
        ({"control": {"net.ke": np.ones(STEPS)}}, "'net.ke' cannot vary in time: did you mean"),
        ({"control": {"net.actuation": np.ones(3)}}, r"expected one row per step: \(100,\) or \(100, 20\)"),
        ({"control": {"net.actuation": np.full(STEPS, np.nan)}}, "not finite"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    ke = torch.tensor(50.0, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match=message):
        ph.rollout(MODEL.replace({"net.ke": ke}), **{"dt": 1e-3, "steps": STEPS, **settings})


@pytest.mark.parametrize("checkpoint", ["some", 0, -3, True, None])
def test_a_wrong_wish_is_named_where_nothing_is_kept(checkpoint):
    with pytest.raises(ValueError, match='checkpoint is "auto", "all", "sqrt"'):
        ph.rollout(MODEL, dt=1e-3, steps=4, checkpoint=checkpoint)


def test_a_parameter_under_control_cannot_require_a_gradient():
    actuation = leaves(["net.actuation"])
    with pytest.raises(ValueError, match="the control replaces it at every step"):
        loss(actuation, control={"net.actuation": np.zeros(STEPS)})


def test_a_rollout_that_blows_up_names_the_object_and_the_step():
    with pytest.raises(ph.Diverged, match=r"'net' blew up: its .* after step") as caught:
        ph.rollout(MODEL.replace({"net.ke": 1e9}), dt=1e-3, steps=STEPS, check=False)
    assert caught.value.thing == "net" and 1 <= caught.value.step <= STEPS
    with pytest.raises(ph.StepTooLarge, match=r"'net': at row .* allow about") as refused:
        ph.rollout(MODEL.replace({"net.ke": 1e9}), dt=1e-3, steps=STEPS)
    assert refused.value.limit < 1e-5
