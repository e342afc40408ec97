"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60) -> bool:
    """Whether a condition comes to hold within so many seconds."""
    end = time.monotonic() + seconds
    while not (held := bool(holds())) and time.monotonic() < end:
        time.sleep(0.02)
    return held
