"""Who touches whom, where and how hard: the contacts of a state, for study, sensors and drawings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.model import Layout, Model, State, Step, of_real, owner
from nablasim.physics.time.programs import looking

SHOWN = 12
"""How many contacts are printed."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts, one entry per place where two things touch.

    a, b: the names of the two; links of robots are "arm.upper". normal: from b to a. point (m) is in the world.
    force (N): on a, friction included; its opposite acts on b. gap (m): how far they are apart, negative inside.
    """

    a: NDArray[np.str_]
    b: NDArray[np.str_]
    point: NDArray[np.floating[Any]]
    normal: NDArray[np.floating[Any]]
    force: NDArray[np.floating[Any]]
    gap: NDArray[np.floating[Any]]

    def __len__(self) -> int:
        return len(self.gap)

    def of(self, name: str) -> Contacts:
        """Those of one thing, which is then always a."""
        mine, turned = self.a == name, (self.b == name) & (self.a != name)
        both, side = mine | turned, np.where(turned, -1.0, 1.0)[:, None]
        a, b = np.where(turned, self.b, self.a), np.where(turned, self.a, self.b)
        return Contacts(a[both], b[both], self.point[both], (self.normal * side)[both], (self.force * side)[both],
                        self.gap[both])  # fmt: skip

    def __repr__(self) -> str:
        lines = [f"<{len(self)} contacts>"]
        wide = max((len(name) for name in (*self.a[:SHOWN], *self.b[:SHOWN])), default=0)
        for k in range(min(len(self), SHOWN)):
            at, n, f = (" ".join(f"{v:8.3g}" for v in row[k]) for row in (self.point, self.normal, self.force))
            lines.append(f"{self.a[k]:<{wide}} on {self.b[k]:<{wide}} at [{at}]  normal [{n}]  force [{f}] N  "
                         f"gap {self.gap[k]:.2g} m")  # fmt: skip
        if len(self) > SHOWN:
            lines.append(f"... and {len(self) - SHOWN} more")
        return "\n".join(lines)


def contacts_of(model: Model, state: State, dt: float) -> Contacts:
    """The contacts in a state; forces of hard ones, which have no law without a step, are those of a step dt."""
    program = looking(model)

    def look(step: Step) -> list[Any]:
        step.ahead = kc.zeros(1, **of_real(float, step.real))  # Velocities are those of the state.
        for system in program.systems:
            system.place(step)
        return [found for system in program.systems for found in system.contacts(step)]

    with program.lock:
        program.load(None, model.columns, dt)
        found = program.look(state.columns, look)
    names = [[name for touch in found for name in _names(model.layout, *side(touch))]
             for side in (lambda touch: touch.one, lambda touch: touch.other)]  # fmt: skip
    columns = [[np.zeros((0, 3) if q != "gap" else 0), *(getattr(touch, q) for touch in found)]
               for q in ("point", "normal", "force", "gap")]  # fmt: skip
    a, b = (np.array(side, np.str_) for side in names)
    return Contacts(a, b, *(np.concatenate(c) for c in columns))


def _names(layout: Layout, table: str, rows: NDArray[np.int_]) -> list[str]:
    """The names of what owns rows of a table; links of robots have their own."""
    known: dict[int, str] = {}
    for row in np.unique(rows):
        name, within = owner(layout, table, int(row))
        if table == "nodes":
            thing = layout.things[name]
            links = {node: link for link, node in thing.links.items()}
            name = f"{name}.{links.get(within, links.get(int(row), str(within)))}"
        known[int(row)] = name
    return [known[int(row)] for row in rows]
