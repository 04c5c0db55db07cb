"""The interface of a physical system: what a module must bring to take part in every rollout.

A system is one stateless object; its data are rows of tables in the model's `Layout`. To add one, write a pair of
files here, one with a subclass of `System` and an adder that `Scene` calls, one with its kernels; name it in `SYSTEMS`.
One from another package is passed to `register`.

    columns, indices   the arrays of its tables (`Column`, `Index`); a table is what stands before the dot
    touches            whether it is about contacts: what refuses a step then does not blame the elements
    setup(a)           launches, once per rollout: derived columns from given ones (density -> mass, inertia ...)
    finish(a)          the same, after every `setup`: for what depends on other systems (1 / mass)
    place(s)           launches, every step, before all forces: where things are that others carry along
    forces(s)          launches, every step: reads s["table.state"], adds to s["table.sum"]
    advance(s)         launches, every step, of systems that own state columns: writes s.next("table.state")
    check(a)           refuses values that cannot work, such as masses below zero, once they are derived
    contacts(s)        what touches in a state, one by one (`Touches`), of laws of contact; for study
    energy(s)          an array of energies (J), one per row of any of its tables, or None; for study
    watch(s)           launches, every step, when all state columns are written: leave a number in a row of
                       s.alarm(name) where something happened that must not
    alarmed(a, ...)    the error for such a row
    stiffness(a, b)    launches, once per rollout, that add to bounds of stiffness and damping of each particle, which
                       say what step is stable: b.k, b.c, b.contact_k, b.contact_c
    limits(a)          the same of what is not said by such launches: a list of `Limit`s, computed with NumPy

`a` is `Arrays`, `s` a `Step`, both in `model/arrays.py`: s["springs.ke"] is the array of a column or an index for all
copies of the scene, s.rows("springs") how many threads to launch, s.has("tets.damping") whether an optional column is
in use; s.bundle(Springs, KE, KD) passes columns as one argument of kernels, a struct that is defined beside them. All
launches are recorded on tapes and differentiated by kernelc: nothing else is to be done for gradients. A launch must
write memory of its own: derived columns, sums, `s.scratch(...)`, `s.next(...)`; never state or given ones.
Where threads touch rows of other tables, it says parts=s.parts: copies of a scene share nothing, and each then has the
bits that it has alone. That it was forgotten shows only in batches of 8,192 rows and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from nablasim.physics.model import Column, Index, Layout

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds, Limit
    from nablasim.physics.model import Arrays, Step


class System:
    """Base of all systems; see the top of this file. Every method may be left out."""

    name: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]] = ()
    indices: ClassVar[tuple[Index, ...]] = ()
    touches: ClassVar[bool] = False
    """Whether its forces are those of contacts, which come and go."""

    def setup(self, a: Arrays) -> None:
        """Launch what computes derived columns."""

    def finish(self, a: Arrays) -> None:
        """Launch what needs the derived columns of other systems."""

    def place(self, s: Step) -> None:
        """Launch what says where things are that others carry along, and let that stand in for their state."""

    def forces(self, s: Step) -> None:
        """Launch what adds forces to the sums."""

    def advance(self, s: Step) -> None:
        """Launch one step of semi-implicit Euler for the state columns of this system."""

    def watch(self, s: Step) -> None:
        """Launch what looks at a step when it is done, and writes to `s.alarm(name)` what must not be."""

    def contacts(self, s: Step) -> list[Any]:
        """What touches in this state: a list of `contact.reports.Touches`."""
        return []

    def energy(self, s: Step) -> Any | None:
        """Launch what computes the energy of each row, and return that array."""
        return None

    def alarmed(self, a: Arrays, row: int, said: list[int], dt: float) -> Exception:
        """What to raise where a row of `s.alarm(name)` begins with a number other than zero after some steps."""
        return RuntimeError(f"{self.name}: row {row} raised the alarm {said} in a step of {dt:g} s")

    def check(self, a: Arrays) -> None:
        """Raise `ValueError` if derived columns are not such that anything could move."""

    def step_bytes(self, layout: Layout) -> int:
        """Memory that one recorded step takes beside columns: `s.scratch(...)` that the gradient needs."""
        return 0

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        """Launch what adds upper bounds of stiffness (N/m) and damping (N s/m) per particle."""

    def limits(self, a: Arrays) -> list[Limit]:
        """Longest stable steps of rows of a table, where `stiffness` does not say it."""
        return []
