"""What parts of a program cost on a target, for the choice among compilers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm._ffi import get_global_func
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import post_order
from tvm.target import Target

MEASURE = "tvm.relay.collage.estimate_seconds"


class CostEstimator:
    """The seconds that a program takes, measured."""

    def estimate(self, mod: IRModule, target: Target) -> float:
        """What `main` of a module costs on a target."""
        return float(get_global_func(MEASURE)(mod, target))


class CustomCostEstimator(CostEstimator):
    """What a registered function says.

    Parameters
    ----------
    py_fn_estimator : str
        The global function, of a module and a target.
    """

    def __init__(self, py_fn_estimator: str = "tvm.relay.collage.estimate_seconds_custom") -> None:
        self.py_fn_estimator = py_fn_estimator

    def estimate(self, mod: IRModule, target: Target) -> float:
        return float(get_global_func(self.py_fn_estimator)(mod, target))


class MockCostEstimator(CostEstimator):
    """A cost for each operator, which falls by a tenth with every one in the same part.

    Parameters
    ----------
    target_costs : mapping
        The cost of the first operator, by the name of the target's kind.
    max_estimates : int
        How many estimates are allowed; 0 for any number.
    """

    def __init__(self, target_costs: Mapping[str, Any], max_estimates: int = 0) -> None:
        self.target_costs = {str(kind): float(cost) for kind, cost in target_costs.items()}
        self.max_estimates = max_estimates
        self.count = 0

    def estimate(self, mod: IRModule, target: Target) -> float:
        self.count += 1
        if self.max_estimates and self.count > self.max_estimates:
            raise TVMError(f"at most {self.max_estimates} estimates were expected")
        cost = self.target_costs.get(target.kind.name)
        if cost is None:
            raise TVMError(
                f"no cost for the target kind {target.kind} was given, there are "
                f"{list(self.target_costs)}"
            )
        return sum([cost * 0.9 ** (place + 1) for place in range(_operators(mod["main"]))])


def _operators(root: RelayExpr) -> int:
    """How many operators are called, those inside composite functions too."""
    nodes = post_order(root.body) if isinstance(root, Function) else []
    return sum([is_operator_call(n) for n in nodes])
