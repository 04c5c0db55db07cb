"""Moving meshes in USD files: what is read back by USD itself is what was written."""

import numpy as np
import pytest

from nablasim import physics as ph
from nablasim.physics.geometry.rotation import rotation_matrix

pxr = pytest.importorskip("pxr")
from pxr import Usd, UsdGeom  # noqa: E402

TIMES = np.array([0.0, 0.5, 1.25])


@pytest.mark.parametrize("ending", [".usd", ".usda", ".usdc"])
def test_samples_come_back_at_their_times(tmp_path, ending):
    cloth, cube = ph.TriMesh.grid((1, 1), (2, 2)), ph.Box(1, 1, 1).mesh()
    points = np.stack([cloth.vertices + [0, 0, t] for t in TIMES])
    pos, rot = np.stack([(0, t, 0) for t in TIMES]), np.stack([ph.quat((0, 0, 1), t) for t in TIMES])
    things = {
        "the cloth": ph.io.Moving(cloth, points=points, colour=(1, 0, 0)),
        "cube": ph.io.Moving(cube, pos=pos, rot=rot),
        "9 floor": cube,
    }
    path = tmp_path / f"scene{ending}"
    ph.io.save_usd(path, things, TIMES, fps=24)
    assert list(tmp_path.iterdir()) == [path]
    stage = Usd.Stage.Open(str(path))
    assert UsdGeom.GetStageUpAxis(stage) == "Y" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert stage.GetEndTimeCode() == 30.0
    written, body = (UsdGeom.Mesh(stage.GetPrimAtPath(f"/World/{name}")) for name in ("the_cloth", "cube"))
    assert np.array_equal(np.array(written.GetFaceVertexIndicesAttr().Get()).reshape(-1, 3), cloth.faces)
    assert UsdGeom.Mesh(stage.GetPrimAtPath("/World/_9_floor")).GetPointsAttr().Get() is not None
    for k, t in enumerate(TIMES):
        assert np.allclose(written.GetPointsAttr().Get(24 * t), points[k], atol=1e-6)
        M = np.array(body.ComputeLocalToWorldTransform(24 * t)).T  # USD multiplies rows
        assert np.allclose(M[:3, :3], rotation_matrix(rot[k]), atol=1e-6) and np.allclose(M[:3, 3], pos[k])


CUBE = ph.Box(1, 1, 1).mesh()


@pytest.mark.parametrize(
    ("thing", "times", "words"),
    [
        (ph.io.Moving(CUBE, pos=np.zeros((2, 3))), TIMES, r"a: pos has shape \(2, 3\); expected \(3, 3\)"),
        (ph.io.Moving(CUBE, rot=np.full((3, 4), np.nan)), TIMES, "a: rot is not finite at sample 0"),
        (CUBE, [0.0, 0.0], "times are a row of ascending numbers"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path, thing, times, words):
    with pytest.raises(ValueError, match=words):
        ph.io.save_usd(tmp_path / "a.usd", {"a": thing}, times)
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match="a USD file ends in"):
        ph.io.save_usd(tmp_path / "a.obj", {}, [0.0])
