"""The graph tuner whose choice is the best there is."""

from __future__ import annotations

from typing import Any

from .base_graph_tuner import BaseGraphTuner
from .network import solve_exactly


class DPTuner(BaseGraphTuner):
    """Chooses by dynamic programming; graphs of many branches that join late are too much for it."""

    def run(self, **kwargs: Any) -> None:
        self._choose(solve_exactly)
