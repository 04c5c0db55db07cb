"""What all adders share: the draft of a scene, the names in it, and who is meant by a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import indices, nearest, shaped
from nablasim.physics.model import Draft, Rows

Where = Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike


class Drafting:
    """A scene while it is written."""

    def __init__(self, gravity: ArrayLike) -> None:
        self._gravity = shaped("gravity", gravity, (3,))
        self._draft = Draft()
        self._late: dict[str, Callable[[Draft], None]] = {}
        """What has to see the whole scene, by name: called with the complete draft."""

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """What the scene has written so far, for adders of laws from elsewhere: `with scene.draft() as draft:`.

        `draft.things[name].rows["bodies"]` are the rows of what was added; `draft.rows`, `draft.index`, `draft.constant` and
        `draft.parameter` write more. Where an error is raised inside, nothing of that is left behind.
        """
        with self._whole():
            yield self._draft

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is added inside is added whole, or not at all."""
        before = self._draft.mark()
        try:
            yield
        except Exception:
            self._draft.back_to(before)
            raise

    def _new(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name or name in ("gravity", "wind"):
            raise ValueError(f'a name is a word without dots, and not "gravity" or "wind"; got {name!r}')
        if name in self._draft.things or name in self._late:
            raise ValueError(f"there is an object {name!r} already: names are given once")

    def _body(self, name: str) -> Rows | None:
        thing = self._draft.things.get(name)
        return None if thing is None else thing.rows.get("bodies")

    def _chosen(self, name: str, where: Where | None, what: str) -> NDArray[np.int64]:
        """The rows of particles of an object."""
        thing = self._draft.things.get(name)
        if thing is None or "particles" not in thing.rows:
            known = [t.name for t in self._draft.things.values() if "particles" in t.rows]
            raise KeyError(f"{what}: there is no object {name!r} with particles: {nearest(name, known)}")
        rows = thing.rows["particles"]
        x = self._draft.parameters[f"{name}.x"].value
        chosen = np.arange(rows.count) if where is None else np.asarray(where(x) if callable(where) else where)
        if chosen.dtype == bool:
            if chosen.shape != (rows.count,):
                raise ValueError(f"{what} {name!r}: the mask has shape {chosen.shape}; expected ({rows.count},)")
            chosen = np.flatnonzero(chosen)
        if not chosen.size:
            raise ValueError(f"{what} {name!r}: `where` chooses none of its {rows.count} particles")
        picked = indices(f"{what} {name!r}", chosen.reshape(-1, 1), 1, rows.count, "particle").ravel()
        return rows.start + np.unique(picked).astype(np.int64)
