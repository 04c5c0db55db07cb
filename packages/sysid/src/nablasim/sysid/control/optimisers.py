"""Optimisers of a training, by name. Beside torch's own stands a quasi-Newton method that needs one motion per step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

HISTORY = 20
"""Pairs of steps and slopes that are remembered."""
FLAT = 1e-12
"""The least cosine of a step and its change of slope with which they tell a curvature."""


class QuasiNewton(torch.optim.Optimizer):
    """L-BFGS where a step that made the loss larger is taken back by two thirds, and every motion counts as a step.

    For few numbers and smooth losses, such as those of a throw. `lr` is how far any number goes in one step at most.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float):
        super().__init__(params, {"lr": lr})
        self._params = [p for group in self.param_groups for p in group["params"]]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is None:
            raise TypeError("the loss is needed: give a function that says it")
        loss = closure()
        known, most = self.state[self._params[0]], float(self.param_groups[0]["lr"])
        with torch.no_grad():
            x = torch.cat([p.reshape(-1) for p in self._params])
            slope = torch.cat([torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1)
                               for p in self._params])  # fmt: skip
            if "x" in known and float(loss) > known["loss"]:
                known["reach"] /= 2
                self._put(known["x"] + (x - known["x"]) / 3)
                return loss
            if "x" in known:
                _remember(known["pairs"], x - known["x"], slope - known["slope"])
                known["reach"] = min(2 * known["reach"], most)
            else:
                known.update(pairs=[], reach=most)
            known.update(x=x, slope=slope, loss=float(loss))
            way = _newton(known["pairs"], slope)
            largest = float(way.abs().max())
            # A first step has no curvature to go by: it goes as far as it may.
            scale = known["reach"] / max(largest, 1e-300)
            self._put(x + way * (min(1.0, scale) if known["pairs"] else scale))
        return loss

    def _put(self, x: torch.Tensor) -> None:
        for p, value in zip(self._params, x.split([p.numel() for p in self._params])):
            p.copy_(value.reshape(p.shape))


def _remember(pairs: list[Any], step: torch.Tensor, change: torch.Tensor) -> None:
    """Only what curves upwards: the metric stays positive."""
    if float(step @ change) > FLAT * float(step.norm() * change.norm()):
        pairs.append((step, change))
        del pairs[:-HISTORY]


def _newton(pairs: list[Any], slope: torch.Tensor) -> torch.Tensor:
    """Minus the inverse Hessian times the slope, by the two loops of L-BFGS."""
    way, weights = -slope, []
    for s, y in reversed(pairs):
        weights.append(float(s @ way) / float(s @ y))
        way = way - weights[-1] * y
    if pairs:
        s, y = pairs[-1]
        way = way * (float(s @ y) / float(y @ y))
    for (s, y), weight in zip(pairs, reversed(weights)):
        way = way + (weight - float(y @ way) / float(s @ y)) * s
    return way


OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "momentum": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9),
    "quasi-newton": QuasiNewton,
}
