"""What `backward` is asked for: arrays with weights, from wherever the user has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import NonScalarLoss, TapeError, WrongShape
from ..records import record
from .arrays import Array
from .content import device_memory, plain
from .directions import read_directions
from .elements import gradient_dtype
from .entries import Entry
from .memory import address_of, is_on_gpu, shown
from .reverse import Sweep


@record
class Asked:
    """What `backward` was asked for last, where the sweep reads the weights from the caller's own memory.

    The same question needs no more preparation.
    """

    sweep: Sweep
    loss: Array | None
    arrays: list[Array]
    given: list[Any]
    add: bool
    contents: list[Any]

    @classmethod
    def of(
        cls, sweep: Sweep, loss: Array | None, grads: Mapping[Array, Any] | None, add: bool, contents: list[Any]
    ) -> Asked | None:
        """The question, unless weights had to be copied: then they may be others when it is asked again."""
        given = [None] if grads is None else [_memory(weights) for weights in grads.values()]
        if len(contents) != len(given) or not all(map(_is_read_in_place, given, contents)):
            return None
        return cls(sweep, loss, list(grads or ()), given, add, contents)

    def is_same(self, loss: Any, grads: Any, add: bool) -> bool:
        if add is not self.add or loss is not self.loss:
            return False
        if loss is not None:
            return grads is None
        return grads.__class__ is dict and len(grads) == len(self.arrays) and all(
            a is b and _memory(weights) is known
            for (a, weights), b, known in zip(grads.items(), self.arrays, self.given, strict=True)
        )  # fmt: skip


def _memory(weights: Any) -> Any:
    return weights._data if weights.__class__ is Array else weights


def _is_read_in_place(given: Any, content: np.ndarray[Any, Any]) -> bool:
    """Whether weights were taken without a copy: None are those of a loss, which nobody else has."""
    return given is None or (given.__class__ is np.ndarray and address_of(given) == address_of(content))


def read_seeds(
    loss: Array | None, grads: Mapping[Array, Any] | None, writer: Callable[[Array], Entry | None]
) -> list[tuple[Array, Any]]:
    """Each array with its weights, checked; `writer` finds the step that wrote an array, for errors."""
    if (loss is None) == (grads is None):
        raise TapeError("backward takes either a loss or grads",
                        advice="write tape.backward(loss), or tape.backward(grads={array: weights})")  # fmt: skip
    if loss is not None:
        if not isinstance(loss, Array):
            raise TapeError(f"the loss is an array of one element, not {type(loss).__name__}",
                            advice="let a kernel write it to an array, as in kc.zeros(1)")  # fmt: skip
        if loss._data.size != 1:
            wrote = writer(loss)
            where = wrote.span if wrote else None
            raise NonScalarLoss(f"the loss has shape {loss._data.shape}, not one element", where)
        grads = {loss: np.ones(loss._data.shape)}
    if not isinstance(grads, Mapping):
        raise TapeError(f"grads is a dictionary, not {type(grads).__name__}", advice="write grads={array: weights}")
    result = []
    for a, weights in grads.items():
        if not isinstance(a, Array):
            raise TapeError(f"a key of grads is an array, not {a!r}", advice="write grads={array: weights}")
        content = _weights(a, weights)
        if content.shape != a._data.shape:
            flat = content.ndim == 1 or [n for n in content.shape if n != 1] == [n for n in a._data.shape if n != 1]
            if content.size != a._data.size or not flat:  # (3, 2) for (2, 3) would be in another order
                raise WrongShape(f"the gradient of an array of shape {a._data.shape} has shape {content.shape}")
            content = content.reshape(a._data.shape)
        result.append((a, content))
    return result


def read_turns(
    turns: Mapping[Array, Any], seeds: Mapping[Array, Any], count: int, known: Callable[[Array], Array]
) -> dict[Array, Any]:  # fmt: skip
    """How the weights of some arrays move, `count` directions in front."""
    found, _ = read_directions(turns)
    made = {known(a): content for a, content in found.items()}
    for a, content in made.items():
        if a not in seeds:
            raise TapeError("an array whose weights move has none", advice="give its weights in grads={array: weights}")
        if len(content) != count:
            raise WrongShape(f"weights move along {len(content)} directions, and arrays along {count}",
                             advice="give turns the axis that tangents have")  # fmt: skip
    return made


def _weights(a: Array, given: Any) -> Any:
    """The weights of an array, whatever holds them: in its type, and on its GPU if they are there and dense."""
    if isinstance(given, Array):
        there: Any = given._data
    else:
        there = None if isinstance(given, np.ndarray) else device_memory(given)
    if is_on_gpu(there):
        if is_on_gpu(a._data) and there.flags.c_contiguous and there.dtype == gradient_dtype(a.element):
            return there
        given = there.host()
    try:
        held = np.asarray(plain(given))
        if held.dtype.kind not in "biufV":  # NumPy would leave out imaginary parts, and read texts
            raise TypeError(held.dtype)
        return held.astype(gradient_dtype(a.element), copy=False)
    except (TypeError, ValueError):
        raise TapeError(f"the weights of an array are numbers, not {shown(given)}",
                        advice="give one number for each of its elements") from None  # fmt: skip
