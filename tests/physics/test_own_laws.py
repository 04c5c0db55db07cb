"""Laws from other packages: what their adders forget is told when a scene is built, not by a kernel."""

import numpy as np
import pytest

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics import laws
from nablasim.physics.laws import Limit, System, bodies
from nablasim.physics.model import Column, Index

BODY, PULL = Index("pulls.body", to="bodies"), Column("pulls.pull", kc.float3)


@kc.kernel
def pull_forces(body: kc.Array[int], pull: kc.Array[kc.float3], f: kc.Array[kc.float3]):
    r = kc.tid()
    kc.atomic_add(f, body[r], pull[r])


class Pulls(System):
    name = "pulls"
    columns = (PULL,)
    indices = (BODY,)

    def forces(self, s):
        kc.launch(pull_forces, s.rows("pulls"), [s[BODY], s[PULL]], [bodies.forces(s).f], parts=s.parts)

    def limits(self, a):
        return [Limit("pulls", np.full(len(a.numpy(BODY)), 50.0), "a pull", "pull less")]


@pytest.fixture(autouse=True)
def registered():
    laws.register(Pulls())
    yield
    laws.SYSTEMS.pop()


def add(scene, body=0, *, index=BODY, column=PULL):
    with scene.draft() as draft:
        rows = draft.rows("pulls", 1)
        if body is not None:
            draft.index(index, [body])
        draft.parameter("pull.of", column, rows, [(1.0, 0.0, 0.0)], unit="N")
    return scene


def one_ball():
    return ph.Scene(gravity=(0, 0, 0)).add_rigid("ball", ph.Sphere(0.1), mass=2.0)


def test_a_law_of_its_own_moves_a_body():
    end = ph.rollout(add(one_ball()).build(real="float64"), dt=0.01, steps=10, every=10)["ball"]
    np.testing.assert_allclose(end.v[-1], [0.05, 0, 0], atol=1e-12)


def test_a_step_that_it_does_not_allow_is_refused_by_its_name():
    with pytest.raises(ph.StepTooLarge, match="too large for 'pull': at row 0 of its pulls, a pull"):
        ph.rollout(add(one_ball()).build(), dt=0.1, steps=1)


def test_an_index_that_misses_rows_is_refused():
    with pytest.raises(ValueError, match=r"'pulls.body' was given for 0 of the 1 rows of 'pulls'"):
        add(one_ball(), body=None).build()


@pytest.mark.parametrize("row", [-1, 1])
def test_an_index_that_leads_nowhere_is_refused(row):
    with pytest.raises(ValueError, match=f"'pulls.body' points at row {row} of 'bodies', which has 1"):
        add(one_ball(), body=row).build()


def test_what_no_system_has_is_refused():
    with pytest.raises(ValueError, match=r"'pulls.way' was written, but no system has it"):
        add(one_ball(), column=Column("pulls.way", kc.float3)).build()
    with pytest.raises(ValueError, match=r"'pulls.boddy' was written, but no system has it"):
        add(add(one_ball()), index=Index("pulls.boddy")).build()


def test_an_object_that_is_not_there_is_named_with_those_that_are():
    scene = one_ball()
    with pytest.raises(KeyError, match="there is no object 'bal': did you mean 'ball'"), scene.draft() as draft:
        draft.things["bal"]


def test_parameters_without_bounds_show_none():
    model = add(one_ball()).build()
    assert repr(model.parameter("pull.of")) == "Parameter('pull.of', shape=(1, 3), unit='N')"
    assert repr(model.parameter("ball.mass")).endswith("unit='kg', bounds=(1e-06, None))")
