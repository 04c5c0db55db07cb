"""What is found from a track: a number with its interval, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEVEL = 0.9
WIDTHS = 1.645
"""Standard deviations of half an interval of that level."""


class CannotTell(ValueError):
    """What a clip cannot tell, said before any fit; the message ends with what would help."""


@dataclass(frozen=True)
class Answer:
    """One number from a track.

    `low` and `high` hold the truth with probability `level` where it is `certified`; `why` says what stands against
    that. They hold it too if `given` is so, which nothing shows: then it is no certificate, but an interval on a
    condition.
    """

    name: str
    value: float
    std: float
    unit: str = ""
    why: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    """What was taken for granted."""
    level: float = LEVEL
    given: str = ""
    """What must be so, and rests on a single word."""
    helps: str = ""
    """What would show it."""

    @property
    def low(self) -> float:
        return self.value - WIDTHS * self.std

    @property
    def high(self) -> float:
        return self.value + WIDTHS * self.std

    @property
    def certified(self) -> bool:
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """All that stands against a certificate."""
        return self.why if not self.given else (*self.why, f"it holds if {self.given}. {self.helps}")

    @property
    def interval(self) -> tuple[float, float] | None:
        return (self.low, self.high) if self.certified else None

    def against(self, *reasons: str) -> Answer:
        return replace(self, why=(*self.why, *reasons))

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        said = f"{self.name} = {self.value:.{self.digits}f}{unit}"
        interval = f"{said}, {self.level:.0%} in [{self.low:.{self.digits}f}, {self.high:.{self.digits}f}]"
        if self.certified:
            return interval
        if not self.why:
            return f"{interval} if {self.given}\n  not certified without that. {self.helps}"
        return f"{said}, not certified: {'; '.join(self.why)}"

    @property
    def digits(self) -> int:
        """Decimals that the interval supports: two of its own digits."""
        from math import floor, log10

        return min(8, max(0, 1 - floor(log10(max(self.std, 1e-9)))))
