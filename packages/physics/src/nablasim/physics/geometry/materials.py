"""Materials of solids: numbers with a meaning, turned into the constants of an energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False, init=False)
class NeoHookean:
    """The stable neo-Hookean material of Smith et al. (2018), from Young's modulus E (Pa) and Poisson's ratio nu.

    Psi = mu/2 (Ic - 3) + lam/2 (J - alpha)² - mu/2 log(Ic + 1), alpha = 1 + 3 mu / (4 lam). Its (mu, lam) are not
    the Lamé parameters of small strain: mu_L = 3/4 mu and lam_L = lam - 5/8 mu. `NeoHookean.paper` takes them as the
    paper does. Each may be one number, or one for each element.
    """

    mu: NDArray[np.float64]
    lam: NDArray[np.float64]

    def __init__(self, E: ArrayLike, nu: ArrayLike) -> None:
        young, poisson = np.asarray(E, np.float64), np.asarray(nu, np.float64)
        if not (young > 0).all():
            raise ValueError(f"E must be positive, and is {young.min():g}")
        if not ((poisson >= 0) & (poisson < 0.5)).all():
            wrong = poisson[(poisson < 0) | (poisson >= 0.5)].flat[0]
            raise ValueError(f"nu is at least 0 and below 0.5, and is {wrong:g}; near 0.5 a solid keeps its volume")
        shear, first = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        self._set(4 / 3 * shear, first + 5 / 6 * shear)

    @classmethod
    def paper(cls, mu: ArrayLike, lam: ArrayLike) -> NeoHookean:
        """The material from the constants of the energy itself (Pa), as the gradSim paper gives them."""
        made = cls.__new__(cls)
        made._set(np.asarray(mu, np.float64), np.asarray(lam, np.float64))
        return made

    def _set(self, mu: NDArray[np.float64], lam: NDArray[np.float64]) -> None:
        for name, value in (("mu", mu), ("lam", lam)):
            if not (value > 0).all() or not np.isfinite(value).all():
                raise ValueError(f"{name} must be positive and finite, and is {value.min():g}")
            object.__setattr__(self, name, value)

    @property
    def lame(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(mu, lambda) of small strain."""
        return 0.75 * self.mu, self.lam - 0.625 * self.mu

    @property
    def E(self) -> NDArray[np.float64]:
        """Young's modulus of small strain, Pa."""
        mu, lam = self.lame
        return mu * (3 * lam + 2 * mu) / (lam + mu)

    @property
    def nu(self) -> NDArray[np.float64]:
        """Poisson's ratio of small strain."""
        mu, lam = self.lame
        return lam / (2 * (lam + mu))

    def __repr__(self) -> str:
        return f"NeoHookean(E={self.E}, nu={self.nu})"
