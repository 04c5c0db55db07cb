"""Meshes from files, with their textures and materials: obj, gltf and glb, ply and whatever else trimesh reads.

trimesh finds vertices, faces and pictures; what they mean for our pictures is said here. A file that is broken is
refused with its name and the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from nablasim.render.lights import Material
from nablasim.render.mesh import Mesh

KINDS = ("glb", "gltf", "obj", "off", "ply", "stl")
BLEND, MASK = "BLEND", "MASK"
ROUGHEST = 1e-2
"""Smoother than this is a mirror, of which Phong's model knows nothing."""


def load(path: str | Path) -> Mesh:
    """A mesh from a file: .obj (with its .mtl), .gltf or .glb, .ply, .stl or .off, in the file's own units and axes.

    Several parts become one mesh, in which `objects` numbers them, placed as the file says. Textures repeat, as
    these formats mean it (samplers of glTF that say otherwise are not read). Materials become Phong's: of obj files as
    they are; of glTF the base colour, and a highlight as sharp as the roughness says; other maps and lights are left
    out. What has no colour is white. Normals of the file are kept where all parts have some.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if kind not in KINDS:
        raise ValueError(f"{path} is none of the kinds that are read, {', '.join(f'.{k}' for k in KINDS)}: convert it, "
                         "for instance with Blender to .glb")  # fmt: skip
    scene, said = _read(path)
    parts = [_part(path, name, mesh) for name, mesh in _placed(scene)]
    parts = [part for part in parts if len(part.faces)]
    if not parts:
        why = f": {said[0]}" if said else ""
        raise ValueError(f"{path} has no triangles{why}. A cloud of points or lines is no mesh")
    return parts[0] if len(parts) == 1 else Mesh.join(parts)


# -- reading
def _read(path: Path) -> tuple[Any, list[str]]:
    """What trimesh finds, and what it complained about."""
    import trimesh

    with _listening() as said:
        try:
            scene = trimesh.load_scene(path, process=False)
        except Exception as reason:
            # Broken files make readers fail in every way there is.
            raise ValueError(f"{path} cannot be read: {type(reason).__name__}: {reason}") from reason
    _check_pictures(path)
    return scene, said


@contextmanager
def _listening() -> Iterator[list[str]]:
    """The warnings of trimesh: it goes on without what it cannot find."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, ear = logging.getLogger("trimesh"), Ear(logging.WARNING)
    logger.addHandler(ear)
    try:
        yield said
    finally:
        logger.removeHandler(ear)


def _check_pictures(path: Path) -> None:
    """Files that an obj names, and that are not there or broken: trimesh goes on without them."""
    if path.suffix.lower() != ".obj":
        return
    for name in _named(path, "mtllib"):
        library = path.parent / name
        if not library.is_file():
            raise ValueError(f"{path} names the materials {name}, which are not beside it. Put the file there, or take "
                             "its line mtllib out")  # fmt: skip
        for picture in _named(library, "map_Kd"):
            file = path.parent / picture
            if not file.is_file():
                raise ValueError(f"{path}: {name} names the texture {picture}, which is not beside it")
            try:
                Image.open(file).load()
            except (OSError, ValueError, SyntaxError) as reason:
                raise ValueError(f"{path}: the texture {picture} cannot be read: {reason}") from None


def _named(path: Path, key: str) -> Iterator[str]:
    """What lines of a text file that begin with a word name."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split(maxsplit=1)
        if len(words) == 2 and words[0].lower() == key.lower():
            yield words[1].strip()


def _placed(scene: Any) -> Iterator[tuple[str, Any]]:
    """The meshes of a scene, each where its node puts it."""
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        if hasattr(mesh, "faces"):
            yield name, mesh.copy(include_cache=True).apply_transform(transform)


# -- what it means
def _part(path: Path, name: str, mesh: Any) -> Mesh:
    """One mesh of trimesh as ours."""
    vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int32).reshape(-1, 3)
    values: dict[str, Any] = {}
    if "vertex_normals" in mesh._cache.cache and len(mesh.vertex_normals) == len(vertices):
        normals = np.asarray(mesh.vertex_normals, float)
        values["normals"] = normals if np.isfinite(normals).all() else None
    visual = mesh.visual
    if visual.kind == "texture":
        values |= _textured(path, name, visual, len(vertices))
    elif visual.kind == "vertex":
        values["colors"] = np.asarray(visual.vertex_colors, float)[:, :3] / 255
    elif visual.kind == "face":
        values["face_colors"] = np.asarray(visual.face_colors, float)[:, :3] / 255
    try:
        return Mesh(vertices, faces, **values)
    except ValueError as reason:
        raise ValueError(f"{path}: the part {name!r} cannot be drawn: {reason}") from None


def _textured(path: Path, name: str, visual: Any, count: int) -> dict[str, Any]:
    """Texture or colour, and material, of what trimesh calls a texture visual: materials without a picture are, too."""
    material = visual.material
    picture, factor, clear = _look(material)
    values: dict[str, Any] = {"material": _reflection(material, factor)}
    uv = visual.uv
    if picture is None or uv is None:
        if picture is not None:
            raise ValueError(f"{path}: the part {name!r} has a texture, but no uvs that say where it lies")
        paint = getattr(visual, "vertex_attributes", {}).get("color")
        tint = 1.0 if paint is None else np.asarray(paint, float)[:, :3] / 255
        values["colors"] = tint * np.broadcast_to(factor[:3], (count, 3))
        return values
    try:
        texels = np.asarray(picture.convert("RGBA"), float) / 255
    except Exception as reason:  # pictures are read here, and fail in every way
        raise ValueError(f"{path}: a texture of the part {name!r} cannot be read: {reason}") from reason
    texels = texels * factor
    if clear == MASK:
        texels[..., 3] = texels[..., 3] >= _cutoff(material)
    return {**values, "uvs": np.asarray(uv, float)[:, :2], "wrap": "wrap",
            "texture": np.ascontiguousarray(texels if clear else texels[..., :3])}  # fmt: skip


def _look(material: Any) -> tuple[Any, Any, str | None]:
    """The picture of a material, the colour it is multiplied with, and how opacity is meant."""
    if hasattr(material, "baseColorFactor"):
        picture, color, mode = material.baseColorTexture, material.baseColorFactor, material.alphaMode
        clear = mode if mode in (BLEND, MASK) else None
    else:
        picture, color = getattr(material, "image", None), getattr(material, "diffuse", None)
        clear = BLEND if picture is not None and picture.mode in ("RGBA", "LA", "PA") else None
        # A picture is what is seen; exporters write any Kd beside it.
        color = None if picture is not None else color
    return picture, _rgba(color), clear


def _rgba(color: Any) -> Any:
    """Four numbers in [0, 1]; white for nothing."""
    if color is None:
        return np.ones(4)
    found = np.asarray(color)
    found = found / 255 if found.dtype.kind in "iu" else found.astype(float)
    return np.concatenate([found, np.ones(1)])[:4] if found.size == 3 else found[:4]


def _cutoff(material: Any) -> float:
    return 0.5 if material.alphaCutoff is None else float(material.alphaCutoff)


def _reflection(material: Any, factor: Any) -> Material:
    """Phong's numbers. Those of glTF: four percent of highlights for what is no metal, and the exponent for which
    Phong's lobe is as wide as that of the roughness, 2 / roughness⁴ - 2."""
    if hasattr(material, "baseColorFactor"):
        metal = 1.0 if material.metallicFactor is None else float(material.metallicFactor)
        rough = max(1.0 if material.roughnessFactor is None else float(material.roughnessFactor), ROUGHEST)
        shine = 0.04 * (1 - metal) + metal * float(np.mean(factor[:3]))
        return Material(
            kd=1 - 0.5 * metal, ks=shine * (1 - rough), shininess=float(np.clip(2 / rough**4 - 2, 1.0, 1e4))
        )
    specular, shininess = getattr(material, "specular", None), getattr(material, "glossiness", None)
    ks = 0.0 if specular is None or not _has(material, "Ks") else float(np.mean(_rgba(specular)[:3]))
    return Material(ks=ks, shininess=32.0 if shininess is None else max(float(shininess), 1.0))


def _has(material: Any, name: str) -> bool:
    """Whether an obj's material says so itself: trimesh fills in what is missing."""
    kept = {str(key).lower() for key in (getattr(material, "kwargs", None) or {})}
    return name.lower() in kept
