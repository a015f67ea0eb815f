"""The graph tuner for every graph."""

from __future__ import annotations

from typing import Any

from .base_graph_tuner import BaseGraphTuner
from .network import solve_by_reduction


class PBQPTuner(BaseGraphTuner):
    """Chooses by reductions, which are exact for chains and for branches that join pairwise."""

    def run(self, **kwargs: Any) -> None:
        self._choose(solve_by_reduction)
