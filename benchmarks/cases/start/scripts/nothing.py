"""Nothing but the import."""

import numpy  # noqa: F401
