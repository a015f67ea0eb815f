"""Gather operators that an external compiler takes as one into functions.

%0 = nn.dense(%x, %w);        %0 = fn (%a, %b, Composite="c.dense_relu") {
nn.relu(%0)              ->     nn.relu(nn.dense(%a, %b)) };
                              %0(%x, %w)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.typed_module import with_written_types
from tvm.relay.dataflow_pattern import DFPattern, partition
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass

Check: TypeAlias = Callable[[RelayExpr], bool]
# (name, pattern) or (name, pattern, check of each match)
Entry: TypeAlias = "tuple[str, DFPattern] | tuple[str, DFPattern, Check]"


def MergeComposite(pattern_table: Sequence[Entry]) -> Pass:
    """The pass; the entries are tried in order."""

    def run(func: Function, mod: IRModule, _: PassContext) -> Function:
        result: RelayExpr = func
        for name, pattern, *check in pattern_table:
            extra: dict[str, Any] = {"check": check[0]} if check else {}
            merged = partition(pattern, result, {"Composite": name}, **extra)
            if merged is not result:
                infer_type_of(merged, mod)  # the next check may ask for types
            result = merged
        assert isinstance(result, Function)
        # composite functions say of what types their parameters are
        return func if result is func else with_written_types(result, has_bare_variables=True)

    return FunctionPass(run, PassInfo(0, "MergeComposite"))
