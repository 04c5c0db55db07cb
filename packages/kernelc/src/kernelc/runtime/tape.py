"""The tape: launches as a program that can run again, and backwards. Each sweep is one native call.

What is recorded, and how, is in recorder.py; which memory is kept for the way back in versions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from operator import is_not
from sys import is_finalizing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _native
from ..errors import CutGradient, NotRecorded, Overlap, TapeError, public
from ..structs import arrays_in
from . import launches, recording, repeats, reports
from .arrays import Array
from .cuda.data import upload
from .curvature import Curve
from .directions import read_directions, stacked
from .kernels import Plan
from .memory import add_zero, is_on_gpu
from .recorder import Recorder
from .repeats import Kept, Repeat
from .reverse import Sweep
from .seeds import Asked, read_seeds, read_turns
from .storage import clock
from .tangents import Push
from .versions import STATE

Method = TypeVar("Method", bound=Callable[..., Any])


def _in_turn(method: Method) -> Method:
    """Decorator: threads that share a tape take turns. Each tells its programs where its weights are, and runs them."""

    @wraps(method)
    def call(self: Tape, *args: Any, **named: Any) -> Any:
        with self._turn:
            return method(self, *args, **named)

    return call  # type: ignore[return-value]


class Tape(Recorder):
    """Records launches while it is open: `with kc.Tape() as tape: …`, then `tape.backward(loss)`.

    on_overwrite: "copy" keeps a copy of what a later launch overwrites and the reverse sweep needs; "error" raises.
    """

    _again: Repeat | None = None
    """What this tape goes along, while it launches what another one has launched."""
    _kept: Kept | None = None
    """Keeps what it knows when it goes."""
    _sweeps_are_old = False
    """Whether they were made before what it knows was recorded again."""
    _opened = 0
    """How often."""

    def __enter__(self) -> Tape:
        self._opened += 1
        self._sweeps.clear()  # what is recorded from here on belongs to the way back, too
        self._last = None
        recording.start(self)
        return self

    def __exit__(self, *error: object) -> None:
        recording.stop(self)
        if self.__class__ is not Tape:
            return
        again = self._again
        if again is None:
            repeats.look(self)
        elif not again.finish():
            again.give_up()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What a tape knows that goes along another one: from here on it has to know by itself."""
            again = self.__dict__.get("_again")
            if again is None or name not in STATE:
                raise AttributeError(f"a kc.Tape has no attribute {name!r}")
            again.give_up()
            return self.__dict__[name]

    def __del__(self) -> None:
        if self._kept is not None and not is_finalizing():
            repeats.keep(self, self._kept)

    # -- recording
    def _launch(
        self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1,
        block: bytes | None = None,
    ) -> None:  # fmt: skip
        again = self._again
        if again is None and plan.repeats and block is not None and self._may_repeat():
            again = self._again = repeats.find(self, plan, parts, block)
        if again is not None:
            if self._goes_along(again, plan, args, dim, parts, block):
                return
            again.give_up()
        self._record_launch(plan, args, dim, device, parts, block)

    def _may_repeat(self) -> bool:
        return self.__class__ is Tape and self._opened == 1 and not self.entries and not recording.outer(self)

    def _goes_along(
        self, again: Repeat, plan: Plan, args: list[Any], dim: tuple[int, ...], parts: int, block: bytes | None
    ) -> bool:  # fmt: skip
        if block is None:
            return False
        try:
            return again.launch(plan, args, dim, parts, block)
        except BaseException:
            again.give_up()
            self._record_failed(plan, args, dim, parts, block)
            raise

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        again = self._again
        if again is not None:
            if again.write(target, kind, source):
                return True
            again.give_up()
        return super()._write(target, kind, source)

    @staticmethod
    def current() -> Tape | None:
        """The tape that records this thread's launches, the innermost one that is open; None if there is none."""
        tape = recording.current()
        return tape if isinstance(tape, Tape) else None

    def __repr__(self) -> str:
        return f"<kc.Tape of {len(self.entries)} steps, {self.memory()} bytes kept>"

    # -- running again
    @public
    @_in_turn
    def replay(self) -> None:
        """Run the recorded program again, with what the arrays hold now."""
        if recording.records(self):
            raise TapeError("a tape cannot be replayed while it records", advice="leave its `with` block first")
        if not self._replayable:
            raise TapeError("an operation on the tape has no forward function, so it cannot be replayed",
                            advice="give it: tape.record(backward, …, forward=function)")  # fmt: skip
        launches.apply_settings()
        done = False
        try:
            # What its operations launch is part of them: a tape around the replay sees what was written, no more.
            with recording.paused():
                failure = _run(self._forward)
            done = True
        finally:
            now = clock.tick()
            for storage in self._written:
                storage.wrote(now)
            if done:  # what was left in the middle is no state that backward could start from
                self._replayed = self._seen = now
        self._report(failure, self._codes)

    def _report(self, failure: Any, codes: dict[int, Any]) -> None:
        prints = _native.take_prints()
        if prints:
            reports.show_prints(prints, codes)
        if failure is not None:
            code = codes[failure.step]
            raise reports.error_of(code, failure, code.kernel)

    # -- going back
    @public
    @_in_turn
    def backward(
        self, loss: Array | None = None, grads: Mapping[Array, Any] | None = None, *, add: bool = True
    ) -> None:
        """Add the gradients of a one-element `loss`, or of Σ grads[a]·a, to those of the leaves.

        `add=False`: to zero, whatever the leaves had. That is faster than `tape.zero()` first.
        """
        if recording.records(self):
            raise TapeError("a tape cannot go back while it records", advice="leave its `with` block first")
        last = self._last
        if last is not None and last.is_same(loss, grads, add):
            self._check_versions()
            sweep, weights = last.sweep, last.contents
        else:
            sweep, weights = self._prepare(loss, grads, add)
        launches.apply_settings()
        failure = _run(sweep.program)
        del weights  # their memory was read until here
        self._report(failure, sweep.codes)

    # -- going along
    @public
    @_in_turn
    def jvp(self, tangents: Mapping[Array, Any], outputs: Sequence[Array] | None = None) -> dict[Array, Array]:
        """The derivatives of `outputs` along directions of arrays: `tape.jvp({x: dx}) -> {y: dy}`.

        tangents: a direction in the shape of each array, or k of them along an axis in front, which the results then
            have, too. All other arrays that the tape began with stay as they were.
        outputs: arrays that the tape wrote; default: all of them that hold reals.
        """
        if recording.records(self):
            raise TapeError("a tape cannot push tangents while it records", advice="leave its `with` block first")
        given, count = read_directions(tangents)
        directions = {self._known(a): content for a, content in given.items()}
        asked = self._reals_written() if outputs is None else arrays_in(outputs)
        results = [self._known(a) for a in asked]
        self._check_versions()
        number = len(next(iter(directions.values()))) if directions else 1
        push = self._push(list(directions), results, number)
        push.give(directions)
        launches.apply_settings()
        self._report(_run(push.program), push.codes)
        return {a: _result(a, stacked(push.take(k), count)) for a, k in zip(asked, results, strict=True)}

    @public
    @_in_turn
    def hvp(
        self, loss: Array | None = None, tangents: Mapping[Array, Any] = MappingProxyType({}), *,
        grads: Mapping[Array, Any] | None = None, turns: Mapping[Array, Any] = MappingProxyType({}),
    ) -> dict[Array, Array]:  # fmt: skip
        """Products of the Hessian of a one-element loss with directions: `tape.hvp(loss, {x: v}) -> {x: Hv}`.

        tangents: a direction in the shape of each array, or k of them along an axis in front, as for `jvp`. With
            several arrays the Hessian is that by all of them together. Gradients are left as they are.
        grads: instead of a loss, that of Σ grads[a]·a, as for `backward`
        turns: how these weights move along the directions, with their axis in front; they stay, unless told otherwise
        """
        if recording.records(self):
            raise TapeError("a tape cannot go back while it records", advice="leave its `with` block first")
        seeds = {self._known(a): content for a, content in read_seeds(loss, grads, self._writer)}
        for a in seeds:
            self._check_path(a)
        given, count = read_directions(tangents)
        directions = {self._known(a): content for a, content in given.items()}
        for a in directions:
            if not self._carries(a):
                raise CutGradient("an array that has a direction does not require a gradient", self._entry_span(a),
                                  advice="mark it before it is launched with: requires_grad=True")  # fmt: skip
        number = len(next(iter(directions.values()))) if directions else 1
        turned = read_turns(turns, seeds, number, self._known)
        self._check_versions()
        key = ("hvp", number, *[tuple(_place(a) for a in arrays) for arrays in (seeds, turned, directions)])
        curve = self._sweeps.get(key)
        if curve is None or not curve.weigh(seeds, turned):
            curve = self._sweeps[key] = Curve.of(self, seeds, list(directions), number, turned)
        curve.give(directions)
        launches.apply_settings()
        self._report(_run(curve.program), curve.codes)
        return {a: _result(a, stacked(curve.take(self._known(a)), count)) for a in given}

    def _entry_span(self, a: Array) -> Any:
        entry = self._reader(a._storage)
        return entry.span if entry is not None else None

    def __contains__(self, a: object) -> bool:
        """Whether a recorded launch has to do with the memory of an array."""
        return isinstance(a, Array) and self._ledger.canonical(a)._storage in self._versions

    def _push(self, inputs: list[Array], outputs: list[Array], count: int) -> Push:
        """The program for these arrays; the same question needs no more preparation."""
        key = ("push", count, *[tuple(_place(a) for a in arrays) for arrays in (inputs, outputs)])
        if key not in self._sweeps:
            self._sweeps[key] = Push(self, inputs, outputs, count)
        push: Push = self._sweeps[key]
        return push

    def _known(self, a: Array) -> Array:
        """The array under which the tape knows this memory; raises if it does not know it."""
        if not isinstance(a, Array):
            raise TapeError(f"an output is an array, not {a!r}", advice="write outputs=[array, …]")
        known = self._ledger.canonical(a)
        if known._storage not in self._versions:
            if any(s in self._versions for s in known._storage.relatives()):
                raise Overlap("an array shares memory with another one, which this tape has recorded",
                              advice="give the array that was launched with, or a view of it")  # fmt: skip
            raise NotRecorded("no launch that this tape recorded has to do with an array that jvp was given")
        return known

    def _reals_written(self) -> list[Array]:
        found = {a._storage: a.root for entry in self.entries for a in entry.written if a.real is not None}
        return list(found.values())

    def _prepare(self, loss: Array | None, grads: Mapping[Array, Any] | None, add: bool) -> tuple[Sweep, list[Any]]:
        """The sweep for these seeds, told where their weights are; these must live until it has run."""
        self._last = None
        seeds = read_seeds(loss, grads, self._writer)
        for a, _ in seeds:
            self._check_path(a)
        self._check_versions()
        # By memory, not by object: a view that is made anew for each call is the same seed.
        key = (add, *[_place(a) for a, _ in seeds])
        if self._sweeps_are_old:
            self._sweeps = {key: sweep for key, sweep in self._sweeps.items() if sweep.holds()}
            self._sweeps_are_old = False
        sweep = self._sweeps.get(key)
        if sweep is None:
            sweep = self._sweeps[key] = Sweep(self, seeds, add=add)
        contents = sweep.give(seeds)
        self._last = Asked.of(sweep, loss, grads, add, contents)
        return sweep, contents

    def _check_path(self, a: Array) -> None:
        if a._storage not in self._versions:
            last = self.entries[-1].span if self.entries else None
            raise NotRecorded("the loss was not written by a launch that this tape recorded", last)
        if not self._carries(a):
            self._refuse_cut(a)

    def _refuse_cut(self, a: Array) -> None:
        """Say why no gradient reaches the loss: an operation that ends it, or no leaf that requires one."""
        leading = {a._storage}
        for entry in reversed(self.entries):
            if not any(x._storage in leading for x in entry.written):
                continue
            leading.update(x._storage for x in entry.read)
            if entry.plan is not None and entry.seeds:
                for span, operation in entry.plan.variant.adjoint(entry.seeds).activity.cuts:
                    raise CutGradient(
                        f"{operation} ends the gradient on the way to the loss: its derivative is zero", span,
                        advice="use a smooth function here, or mark a leaf that comes after it")  # fmt: skip
        writer = self._writer(a)
        raise CutGradient(
            "no array that requires a gradient leads to the loss", writer.span if writer else None,
            advice="mark the leaves: kc.array(…, requires_grad=True); kc.explain(kernel) shows cuts")  # fmt: skip

    # -- housekeeping
    @_in_turn
    def zero(self) -> None:
        """Clear the gradients of every array on the tape."""
        grads = [storage.grad for storage in self._active if storage.grad is not None]
        if len(grads) != len(self._cleared) or any(map(is_not, grads, self._cleared)):
            self._cleared, self._clearing = grads, _native.Program()
            for grad in grads:
                add_zero(self._clearing, grad)
        self._clearing.run()

    def memory(self) -> int:
        """Bytes that the tape keeps for the reverse sweep: copies of overwritten arrays, states of checkpoints."""
        return sum(c.nbytes for c in self._copies.values()) + sum(bytes() for bytes in self._keepers)


def _run(program: Any) -> Any:
    """Run a program of the tape; what failed in it, or None."""
    try:
        return program.run()
    except RuntimeError as error:
        if str(error) != "the program is running":  # it is the user's
            raise
        raise TapeError("a tape is asked to run by an operation that it runs",
                        advice="record what the operation needs on a tape of its own") from None  # fmt: skip


def _place(a: Array) -> tuple[Any, ...]:
    """What an array is to a program: its memory. A view that is made anew for each call is the same."""
    return (id(a._storage), a._address, a._data.shape, a._data.strides)


def _result(a: Array, data: np.ndarray[Any, Any]) -> Array:
    """Tangents of an array, where it is."""
    return Array(upload(data).as_array() if is_on_gpu(a._data) else data, a.element)
