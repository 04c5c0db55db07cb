"""The bodies of the experiments are solids."""

import numpy as np
import pytest
import trimesh

from nablasim.sysid.experiments.shapes import names, shape


@pytest.mark.parametrize("name", names())
def test_a_body_is_closed_small_and_about_a_metre_large(name):
    mesh = shape(name)
    solid = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    assert solid.is_watertight and solid.is_winding_consistent and solid.volume > 0.02
    assert len(mesh.vertices) <= 250
    assert np.ptp(mesh.vertices, axis=0).max() == pytest.approx(1)


def test_there_are_fourteen_and_some_are_not_convex():
    assert len(names()) == 14
    assert sum(not trimesh.Trimesh(shape(n).vertices, shape(n).faces, process=False).is_convex for n in names()) >= 6
    with pytest.raises(KeyError, match="banana"):
        shape("zebra")
