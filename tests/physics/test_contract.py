"""The program that the contract of physics shows, as it is written there."""

import meshio
import numpy as np
import pytest
import torch

from nablasim import physics as ph


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a small gear.msh."""
    box = ph.TetMesh.box((0.6, 0.6, 0.2), cells=(3, 3, 1))
    mesh = meshio.Mesh(box.vertices, [("tetra", box.tets)])
    meshio.write(tmp_path / "gear.msh", mesh, file_format="gmsh", binary=False)
    monkeypatch.chdir(tmp_path)


def example():
    points, pairs = ph.spring_grid((1, 1), (4, 4))

    scene = ph.Scene(gravity=(0, -9.81, 0))
    scene.add_rigid("cube", ph.Box(1, 1, 1), density=5.0, pos=(0, 2, 0), rot=ph.quat((0, 0, 1), 0.5), vel=(1, 0, 0))
    scene.add_soft("gear", ph.TetMesh.load("gear.msh"), density=1.0, material=ph.NeoHookean(E=3e3, nu=0.3), damping=1.0,
                   activation=True)  # fmt: skip
    scene.add_cloth("flag", ph.TriMesh.grid((1, 1), cells=(16, 16)), mass=0.1, stretch=1e3, shear=1e3, bend=1.0,
                    lift=1.0, drag=0.5)  # fmt: skip
    scene.add_springs("net", points, pairs, ke=1e3, kd=1.0)
    scene.add_ground("floor", ke=2e3, kd=20.0, kf=100.0, mu=0.5)
    scene.add_impulse("cube", (4, 2, 0), at=(0.5, 0.5, 0.5), t=0.0)
    scene.fix("gear", where=lambda x: x[:, 0] < 1e-6)
    return scene


@pytest.mark.filterwarnings("ignore::nablasim.physics.StepShortened")
def test_the_example_runs_as_it_is_written(here):
    model = example().build(real="float32")

    rho = torch.tensor(2.0, requires_grad=True)
    traj = ph.rollout(model.replace({"cube.density": rho}), dt=1 / 960, steps=1920, every=32,
                      integrator="semi_implicit", control=None, checkpoint="auto")  # fmt: skip
    assert traj["cube"].x.shape == (61, 3) and traj["cube"].rot.shape == (61, 4)
    assert traj["gear"].x.shape == (61, len(model["gear.x"]), 3)
    np.testing.assert_allclose(traj.times, np.arange(61) / 30, rtol=1e-12)
    assert {"cube.density", "floor.mu", "gear.mu"} <= set(model.names())
    for name in traj:
        assert traj[name].v.abs().max() < 10.0 and traj[name].x.abs().max() < 10.0, name
    traj["cube"].x[-1].sum().backward()
    assert torch.isfinite(rho.grad) and rho.grad != 0.0


def test_the_example_runs_with_implicit_steps_too(here):
    rho = torch.tensor(2.0, requires_grad=True)
    model = example().build(real="float64").replace({"cube.density": rho})
    traj = ph.rollout(model, dt=1 / 60, steps=6, every=3, integrator=ph.BackwardEuler(tol=1e-9))
    assert traj["cube"].x.shape == (3, 3) and (traj.solves.newton < 1e-9).all()
    traj["cube"].x[-1].sum().backward()
    assert torch.isfinite(rho.grad) and rho.grad != 0.0 and (traj.solves.adjoint < 1e-9).all()


def test_cloth_takes_up_to_four_substeps_by_itself():
    def flag(stretch):
        mesh = ph.TriMesh.grid((1, 1), cells=(8, 8))
        return ph.Scene().add_cloth("flag", mesh, mass=0.1, stretch=stretch, shear=100.0).build()

    import torch._dynamo  # then rollouts are called through torch

    with pytest.warns(ph.StepShortened, match="taken as 2 shorter ones") as caught:
        found = ph.rollout(flag(2e3), dt=1 / 800, steps=8)["flag"].x
    assert caught[0].filename == __file__
    assert torch.equal(found, ph.rollout(flag(2e3), dt=1 / 800, steps=8, substeps=2)["flag"].x)
    for model, settings in ((flag(2e3), {"substeps": 1}), (flag(1e5), {})):
        with pytest.raises(ph.StepTooLarge):
            ph.rollout(model, dt=1 / 800, steps=8, **settings)
