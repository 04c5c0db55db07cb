"""`ph.rollout`: one interface to run scenes, and the models that stand beside them."""

from __future__ import annotations

from functools import wraps
from typing import Any

from nablasim.physics import simulator
from nablasim.physics.standalone import Standalone


@wraps(simulator.rollout)
def rollout(model: Any, **options: Any) -> Any:
    return model.rollout(**options) if isinstance(model, Standalone) else simulator.rollout(model, **options)
