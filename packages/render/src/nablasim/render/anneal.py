"""Schedules that make soft edges sharper while something is optimised."""

from __future__ import annotations

from collections.abc import Iterator


def anneal(start: float, stop: float, steps: int, *, hold: int = 0) -> Iterator[float]:
    """`steps` values from start to stop in equal ratios, then `stop` `hold` times more.

    For `sigma_pixels`: begin with edges as soft as shapes are apart, so that they pull on each other before they
    overlap; end with a pixel or less. For sigma the same in squares.

        for silhouette.renderer.sigma_pixels in anneal(30, 1, 200): ...
    """
    if not (start > 0 and stop > 0):
        raise ValueError(f"equal ratios need values above zero, not start={start}, stop={stop}")
    if steps < 1 or hold < 0:
        raise ValueError(f"there is at least one step and no negative hold, not steps={steps}, hold={hold}")
    for k in range(steps):
        yield start * (stop / start) ** (k / max(steps - 1, 1))
    for _ in range(hold):
        yield stop
