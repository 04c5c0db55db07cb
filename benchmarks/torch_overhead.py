"""What a call from torch costs: kc.torch.function and kc.torch.op beside a torch.autograd.Function written by hand.

    python -m benchmarks.torch_overhead

Best of many short stretches, in microseconds: one small kernel, a rollout of 100 launches, and a large array.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

import kernelc as kc

STEPS = 100


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def slope(x: kc.Array[float], g: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i] * g[i]


class InTorch(torch.autograd.Function):
    """The same in operations of torch."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * g


class ByHand(torch.autograd.Function):
    """Two kernels, the adjoint written by hand."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        kc.launch(square, x.shape[0], [x], [y])
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        y = torch.empty_like(x)
        kc.launch(slope, x.shape[0], [x, g], [y])
        return y


def squared(x: Any) -> Any:
    y = kc.zeros(x.shape)
    kc.launch(square, x.shape[0], [x], [y])
    return y


def rollout(x: Any) -> Any:
    for _ in range(STEPS):
        x = squared(x)
    return x


def torch_rollout(x: torch.Tensor, f: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    for _ in range(STEPS):
        x = f(x)
    return x


def best(run: Callable[[], Any], stretch: int, seconds: float = 1.0) -> float:
    run()
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter_ns()
        for _ in range(stretch):
            run()
        found = min(found, (time.perf_counter_ns() - begin) / stretch)
    return found / 1e3


def row(name: str, f: Callable[[torch.Tensor], torch.Tensor], n: int, stretch: int) -> None:
    # Ones: squared 100 times, others end among denormals.
    x, seed = torch.ones(n, requires_grad=True), torch.ones(n)
    with torch.no_grad():
        plain = best(lambda: f(x), stretch)
    forward = best(lambda: f(x), stretch)
    both = best(lambda: torch.autograd.grad(f(x), x, seed), stretch)
    print(f"{name:38s}{plain:12.1f}{forward:12.1f}{both:12.1f}")


def main() -> None:
    torch.set_num_threads(1)
    op = kc.torch.op(square, lambda x: x.shape[0], outputs=[lambda x: x.shape[0]])
    single = {"torch.autograd.Function in torch": InTorch.apply, "torch.autograd.Function with kernels": ByHand.apply,
              "kc.torch.op": op, "kc.torch.function": kc.torch.function(squared)}  # fmt: skip
    print(f"{'µs':38s}{'no_grad':>12s}{'forward':>12s}{'+ backward':>12s}")
    for name, f in single.items():
        row(f"{name}, n = 10", f, 10, 20)
    row(f"{STEPS} × torch.autograd.Function, n = 10", lambda x: torch_rollout(x, InTorch.apply), 10, 1)
    row(f"{STEPS} × kc.torch.op, n = 10", lambda x: torch_rollout(x, op), 10, 1)
    row(f"kc.torch.function, {STEPS} launches, n = 10", kc.torch.function(rollout), 10, 1)
    for name, f in single.items():
        row(f"{name}, n = 10⁶", f, 10**6, 1)


if __name__ == "__main__":
    main()
