"""Derivatives beyond the tape: tangents of one launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import Overlap, TapeError, public
from . import launches, recording
from .arrays import Array
from .directions import read_directions
from .entries import Entry
from .kernels import Kernel, check_device
from .tape import Tape


@public
def jvp(
    kernel: Kernel, dim: int | Sequence[int], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *,
    tangents: Mapping[Array, Any], device: str | None = None,
) -> dict[Array, Array]:  # fmt: skip
    """Forward mode: run a launch, and return the derivative of every array that it writes in the given direction.

    `tangents` maps arguments to their directions, or to k of them along an axis in front, which the results then have,
    too. An output that was given a tangent starts from it.
    """
    plan, args = kernel.plan([*inputs, *outputs])
    given = kernel.spread([*inputs, *outputs])
    directions, _ = read_directions(tangents)
    launches.check_dims(plan, dim)
    launches.check_overlap(plan, args)
    for i in plan.arrays:
        if any(a._storage in args[i]._storage.relatives() for a in directions):
            name = list(kernel.params)[i]
            raise Overlap(f"{kernel.name}: {name!r} shares memory with another array, which has a tangent",
                          advice="launch with that array, or a view of it")  # fmt: skip
    moving = {a: tangents[a] for a in directions if any(args[i]._storage is a._storage for i in plan.arrays)}
    if not moving:
        raise TapeError("none of the tangents belongs to an argument of the launch",
                        advice="the keys of tangents are the arrays that are launched with")  # fmt: skip
    tape = Along(moving)
    with recording.paused():
        tape._launch(plan, args, launches._shape(dim), check_device(device, plan, args))
    written = [i for i in plan.variant.written if args[i].real is not None]
    found = tape.jvp(moving, [args[i] for i in written])
    return {given[i] if isinstance(given[i], Array) else args[i]: found[args[i]] for i in written}


class Along(Tape):
    """A tape that is only asked for tangents: it keeps what they need, and nothing for the way back."""

    _by_leaves = False

    def __init__(self, moving: Iterable[Array]):
        super().__init__()
        self._moving = {a._storage for a in moving}

    def _carries(self, array: Array) -> bool:
        return array._storage in self._moving

    def _activate(self, carriers: Sequence[Array]) -> None:
        self._moving.update(a._storage for a in carriers)

    def _plan_adjoint(self, entry: Entry, seeds: frozenset[int]) -> None:
        assert entry.plan is not None
        made = entry.plan.variant.tangent("tangent", seeds)
        self._moving.update(entry.args[i]._storage for i in made.arrays)
        for i in made.reads:
            self._needed.setdefault(entry.found[i], entry)
