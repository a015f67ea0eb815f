"""Sorting and scans become loop programs of topi, ahead of other operators.

argsort(x, axis=1)    ->    call_tir(argsort, (x,))

topi has one definition for all targets: the schedule of the target's kind comes with lowering.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import Call
from tvm.relax.op.legalize import has_known_shape
from tvm.relax.transform.pass_kinds import whole_module_pass

from .utils import BackendDispatcher

_OPERATORS = frozenset(
    [f"relax.{name}" for name in ["sort", "argsort", "topk", "cumsum", "cumprod"]]
)


class SortScanDispatcher(BackendDispatcher):
    """Replaces calls of operators that sort or scan by what the target runs."""

    def visit_call_(self, call: Call) -> Any:
        call = super().visit_call_(call)
        if not isinstance(call.op, Op) or call.op.name not in _OPERATORS:
            return call
        infos = [call.struct_info_, *[arg.struct_info_ for arg in call.args]]
        if not all([has_known_shape(info) for info in infos]):
            return call
        with self._get_target(call.struct_info):
            return call.op.get_attr("FLegalize")(self.builder_, call)


def DispatchSortScan() -> Pass:
    """Let operators that sort or scan be what the target runs.

    The target is that of the device where the result lives, or the current one.

    Returns
    -------
    Pass
    """
    return whole_module_pass("DispatchSortScan", lambda mod: SortScanDispatcher(mod).transformed())
