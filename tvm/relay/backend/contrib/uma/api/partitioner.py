"""Find the parts of a model that an accelerator takes.

%0 = conv2d(%x, %w)   ->   def @tvmgen_default_acc_main_0(%x, %w, Compiler="acc") { .. }
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, Sequential
from tvm.relay import transform
from tvm.relay.contrib.register import get_pattern_table, register_pattern_table
from tvm.relay.dataflow_pattern import DFPattern
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.program import Params, as_module

from .utils import PassPhase, with_operators_only


class UMAPartitioner:
    """The patterns of an accelerator, and the passes around the partition.

    Parameters
    ----------
    target_name : str
        The accelerator's target kind.
    merge_compiler_region : bool
        Whether neighbouring matches become one function.
    """

    def __init__(self, target_name: str, merge_compiler_region: bool = True) -> None:
        self.target_name = target_name
        self.merge_compiler_region = merge_compiler_region
        self._passes: list[tuple[PassPhase, Pass]] = []
        self._patterns: list[tuple[str, DFPattern, Callable[[Call], bool]]] = []

    def add_pattern(
        self, name: str, pattern: DFPattern, predicate: Callable[[Call], bool] | None = None
    ) -> None:
        """Add what the accelerator computes, under a name."""
        accepts = predicate or _accept_all
        self._patterns.append((f"{self.target_name}.{name}", pattern, accepts))

    def add_relay_pass(self, phase: PassPhase, relay_pass: Pass) -> None:
        """Add a pass on modules."""
        self._passes.append((phase, relay_pass))

    def register(self) -> None:
        """Make the patterns known under the accelerator's name."""
        register_pattern_table(self.target_name, list(self._patterns))

    def partition(self, mod: IRModule, params: Params | None = None) -> IRModule:
        """The model with the accelerator's parts as functions of their own.

        Parameters
        ----------
        params : values of parameters of `main`, by name.
        """
        found = Sequential(
            [
                *self._of(PassPhase.PRE_PARTITIONING),
                transform.InferType(),
                transform.MergeComposite(get_pattern_table(self.target_name) or []),
                transform.AnnotateTarget(self.target_name),
                *([transform.MergeCompilerRegions()] if self.merge_compiler_region else []),
                transform.PartitionGraph(),
                *self._of(PassPhase.POST_PARTITIONING_0),
            ],
            name="uma.partition",
        )(as_module(mod, params))
        for gvar, func in list(found.functions.items()):
            if isinstance(func, Function) and func.attrs.get("Compiler") == self.target_name:
                found.update_func(gvar, with_operators_only(func))
        return Sequential([transform.InferType(), *self._of(PassPhase.POST_PARTITIONING_1)])(found)

    def _of(self, phase: PassPhase) -> list[Pass]:
        return [item for wanted, item in self._passes if wanted is phase]


def _accept_all(_: Any) -> bool:
    return True
