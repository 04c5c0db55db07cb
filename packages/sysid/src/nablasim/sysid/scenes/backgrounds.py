"""What is behind the objects of a video, so that they can be cut out of it.

The scene says where its objects are in the first frame. Around them that frame shows the background; where they are,
later frames show it, as soon as they have left. The median of all frames needs no scene, but takes an object that lies
where it is for half of the time for background.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.problem import balls
from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.video import Video, threshold

MARGIN = 0.02
"""Of the height: how far around an object the first frame is not believed. Cameras are never where they should be."""

CLEARLY = 0.1
"""Of the part that two silhouettes have in common."""

Picture = NDArray[np.floating[Any]]


def background_of(stage: Stage, video: Video) -> Picture:
    """The background (height, width, 3) of a video, as the scene file wants it."""
    given = stage.entries.video.background
    if given == "scene":
        return behind(video.frames[..., :3], first_silhouette(stage, video.size))
    if given == "median":
        return np.asarray(np.median(video.frames[..., :3], axis=0))
    if isinstance(given, tuple):
        return np.broadcast_to(np.array(given), (*video.size, 3))
    return _from_file(stage, str(given), video.size)


def first_silhouette(stage: Stage, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Where the objects of a scene are at its beginning, (height, width)."""
    silhouette = render.Silhouette(stage.camera, mode="hard", near=stage.near)
    seen = np.zeros(size, bool)
    if stage.entries.pendula:
        import torch

        hung, motion = stage.observe(), ph.rollout(stage.model, dt=1e-3, steps=1)
        corners = hung.around(torch.as_tensor(np.asarray(motion["x"]))[None, :1])[0, 0].float()
        return np.asarray(silhouette(corners, balls(hung.bob)[1], size=size).numpy() > 0.5)
    for name, surface in stage.model.surfaces.items():
        if surface.links:
            corners = surface.vertices(*surface.of_links(ph.kinematics(stage.model)[name]))
            corners = corners.numpy() if hasattr(corners, "numpy") else corners
        else:
            rot = None if surface.points is None else np.asarray(stage.model[f"{name}.rot"])
            corners = surface.vertices(np.asarray(stage.model[f"{name}.x"]), rot)
        seen |= silhouette(corners.astype(np.float32), surface.faces, size=size).numpy() > 0.5
    return seen


def behind(frames: Picture, objects: NDArray[np.bool_]) -> Picture:
    """The background of frames (n, height, width, 3), whose first one has its objects at (height, width)."""
    reach = max(1, round(MARGIN * objects.shape[0]))
    covered = ndimage.binary_dilation(objects, iterations=reach)
    inside = ndimage.binary_erosion(objects, iterations=2 * reach)
    inside = inside if inside.any() else ndimage.binary_erosion(objects, iterations=reach)
    first = np.array(frames[0])
    around = first[_nearest(~covered)]
    apart = np.abs(frames - first).max(axis=-1)
    gone = (apart > _least(apart)) & inside
    left = gone.any(axis=0)
    if not left.any():
        return _mean(frames, np.where(covered[..., None], around, first), reach)
    # An object has left a place near its edge when it has left the nearest one well inside: what is seen from then on
    # is the background, whatever edges that has. Where something well inside never changes, what is around it.
    near, nearest = ndimage.binary_dilation(covered, iterations=2 * reach), _nearest(left)
    later = first.copy()
    later[near] = _while(gone[:, nearest[0], nearest[1]][:, near], frames[:, near])
    # Near its edge the object was there at first, or comes to lie there: it is not what looks like it.
    own = first[nearest]
    other = np.abs(first - own).max(axis=-1) > np.abs(later - own).max(axis=-1)
    still = np.where((near & ~other)[..., None], later, first)
    return _mean(frames, np.where((inside & ~left)[..., None], around, still), reach)


def _nearest(places: NDArray[np.bool_]) -> tuple[Any, Any]:
    """Row and column of the nearest of some places, for every pixel."""
    rows, columns = ndimage.distance_transform_edt(~places, return_distances=False, return_indices=True)
    return rows, columns


def _while(when: NDArray[np.bool_], values: Picture) -> Picture:
    """The median over those of the frames (n, pixels, 3) that are marked; at least one is, for every pixel.

    Of the later half of these: at first, the object may still be on its way out.
    """
    when = when & (np.cumsum(when, axis=0) > when.sum(axis=0) / 2)
    return np.asarray(np.nanmedian(np.where(when[..., None], values, np.nan), axis=0))


def level_of(frames: Picture, background: Picture, objects: NDArray[np.bool_]) -> float:
    """How much a pixel of an object differs from the background, at least: Otsu's threshold, unless a lower one is
    clearly more like the objects of the first frame. Bright parts of an object before a bright wall differ little."""
    apart = np.abs(frames - background).max(axis=-1)
    usual = threshold(apart)
    least = _least(apart)

    def alike(level: float) -> float:
        seen = apart[0] > level
        return float((seen & objects).sum() / max(int((seen | objects).sum()), 1))

    best = max((level for level in np.geomspace(least, max(usual, least), 12)), key=alike)
    return float(best if alike(best) > alike(usual) + CLEARLY else usual)


def _least(apart: NDArray[np.floating[Any]]) -> float:
    """What compression and noise make of most pixels stays below."""
    return max(0.03, 3 * float(np.median(apart)))


def _mean(frames: Picture, still: Picture, reach: int) -> Picture:
    """The same from all frames, where they show no object: one frame is noisy."""
    apart = np.abs(frames - still).max(axis=-1)
    seen = np.stack([ndimage.binary_dilation(a, iterations=reach) for a in apart > _least(apart)])
    count = (~seen).sum(axis=0)
    mean = np.where(seen[..., None], 0.0, frames).sum(axis=0) / np.maximum(count, 1)[..., None]
    return np.where((count > 0)[..., None], mean, still)


def _from_file(stage: Stage, name: str, size: tuple[int, int]) -> Picture:
    from nablasim.render.scaling import fit
    from nablasim.render.video import read_picture

    file = stage.script.folder / name
    if not file.is_file():
        raise stage.script.wrong(
            ("video", "background"), f"there is no picture {file}; or write `scene`, `median`, or a colour"
        )
    try:
        picture = fit(read_picture(file), size)  # as the frames are: upright, and not stretched
    except ValueError as error:
        raise stage.script.wrong(("video", "background"), str(error)) from error
    return np.asarray(picture, np.float32) / 255
