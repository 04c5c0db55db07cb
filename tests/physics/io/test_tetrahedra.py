"""Filling a surface with tetrahedra: the volume is that of the surface, and what cannot be filled is refused."""

import importlib.util

import numpy as np
import pytest

from nablasim import physics as ph

needs_wildmeshing = pytest.mark.skipif(
    importlib.util.find_spec("wildmeshing") is None, reason="the optional package wildmeshing is not installed"
)


@needs_wildmeshing
def test_the_tets_fill_the_surface_and_only_it(capfd):
    surface = ph.Cone(0.5, 1.2).mesh(segments=16)
    tets = ph.TetMesh.from_surface(surface, edge=0.3, tolerance=0.002)
    assert tets.surface.is_closed
    assert np.isclose(tets.volume, surface.volume, rtol=0.02)
    # No vertex of its surface strays further than the tolerance from that of the cone (its mesh is inscribed in it).
    outer = tets.surface.compact().vertices
    inscribed = 0.5 * (1 - np.cos(np.pi / 16))
    assert (
        ph.Cone(0.5, 1.2).distance(outer).max() < 0.002 and ph.Cone(0.5, 1.2).distance(outer).min() > -0.002 - inscribed
    )
    assert capfd.readouterr().out == ""


@needs_wildmeshing
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ph.TetMesh.from_surface(ph.TriMesh.grid((1, 1), (2, 2))), "the surface is open"),
        (lambda: ph.TetMesh.from_surface(ph.Box(1, 1, 1).mesh(), edge=-1.0), "edge is -1.0 m"),
        (lambda: ph.TetMesh.from_surface(ph.Box(1, 1, 1).mesh(), tolerance=3.0), "tolerance is 3.0 m"),
    ],
)
def test_what_cannot_be_filled_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@needs_wildmeshing
def test_a_worker_that_dies_is_an_error_of_ours(monkeypatch):
    monkeypatch.setattr("nablasim.physics.io.tetrahedra.WORKER", "import sys; sys.exit('too thin')")
    with pytest.raises(ph.MeshError, match="wildmeshing failed with status 1: too thin"):
        ph.TetMesh.from_surface(ph.Box(1, 1, 1).mesh())


@pytest.mark.parametrize(
    ("package", "call", "advice"),
    [
        ("wildmeshing", lambda p: ph.TetMesh.from_surface(ph.Box(1, 1, 1).mesh()), r"nablasim-physics\[tets\]"),
        ("yourdfpy", lambda p: ph.io.load_urdf(p / "a.urdf"), r"nablasim-physics\[urdf\]"),
        ("pxr", lambda p: ph.io.save_usd(p / "a.usd", {}, [0.0]), r"nablasim-physics\[usd\]"),
    ],
)
def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch, tmp_path, package, call, advice):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(ph.MissingPackage, match=advice):
        call(tmp_path)
