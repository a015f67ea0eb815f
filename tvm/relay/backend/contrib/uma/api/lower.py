"""From the parts of a model that an accelerator takes to loops.

def @part(%x, Compiler="acc") { conv2d(%x, %w) }   ->   @T.prim_func part(x, out)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te
from tvm.driver import lower
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import Pass
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.kernels import compute_graph, with_constants
from tvm.relay.function import Function
from tvm.relay.op.strategy import target_strategies
from tvm.relay.transform import InferType
from tvm.target import Target
from tvm.tir import PrimFunc

from .utils import PassPhase, with_operators_only


class UMALower:
    """The passes on loops of an accelerator, and how its operators are computed.

    Parameters
    ----------
    target_name : str
        The accelerator's target kind.
    """

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self._tir_passes: list[tuple[PassPhase, Any]] = []
        self._operator_strategies: list[tuple[str, Callable[..., Any], int]] = []

    def add_tir_pass(self, phase: PassPhase, tir_pass: Pass) -> None:
        """Add a pass on loops."""
        if phase.loop_phase is None:
            raise ValueError(f"a pass on loops requires a phase TIR_PHASE_0 to 3, got {phase.name}")
        self._tir_passes.append((phase, tir_pass))

    def add_strategy(self, op: str, strategy: Callable[..., Any], plevel: int = 11) -> None:
        """Set the strategy of an operator on this accelerator."""
        self._operator_strategies.append((op, strategy, plevel))

    def register(self) -> None:
        """Make the strategies known."""
        for name, strategy, _ in sorted(self._operator_strategies, key=lambda s: s[2]):
            strategies = target_strategies(Op.get(name))
            strategies.register(strategy, self.target_name, allow_override=True)

    def __call__(self, mod: IRModule) -> IRModule:
        """The module with the accelerator's functions as loops."""
        mod = InferType()(mod)
        made: dict[Any, Any] = dict(mod.functions)
        for gvar, func in mod.functions.items():
            if isinstance(func, Function) and func.attrs.get("Compiler") == self.target_name:
                made[gvar] = self._lower_passes(self._loops(func))
        return mod.with_functions(made)

    def _loops(self, func: Function) -> PrimFunc:
        """The loops of a part, as blocks."""
        target = Target.current() or Target(self.target_name)
        whole = with_operators_only(func)
        infer_type_of(whole)
        graph = compute_graph(whole, target)
        constants = [tensor for tensor, _ in graph.constants]
        loops = te.create_prim_func([*graph.inputs, *constants, *graph.outputs])
        loops = with_constants(loops, len(graph.inputs), [array for _, array in graph.constants])
        return loops.with_attrs(
            {
                "global_symbol": str(func.attrs["global_symbol"]),
                "target": target,
                "relay_attrs": func.attrs,
                "tir.noalias": True,
            }
        )

    def _lower_passes(self, loops: PrimFunc) -> PrimFunc:
        context = PassContext.current()
        own = [(phase.loop_phase, item) for phase, item in self._tir_passes]
        config = {**context.config, "tir.add_lower_pass": own}
        with PassContext(opt_level=max(context.opt_level, 2), config=config):
            mod = lower(loops, name=str(loops.attrs["global_symbol"]))
        (lowered,) = mod.functions.values()
        assert isinstance(lowered, PrimFunc)
        return lowered
