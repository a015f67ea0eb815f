"""Reshapes that change nothing go away, and all but the last of several.

reshape(reshape(x, (1, 1001, 1)), (1, 1001))    ->    reshape(x, (1, 1001))
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import are_same_dimensions

from .rewrite_calls import definition, rewriting_pass

_RESHAPE = Op.get("relax.reshape")


def _rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
    if call.op is not _RESHAPE:
        return None
    data, shape = call.args
    before, after = data.struct_info, call.struct_info
    if isinstance(before, TensorStructInfo) and isinstance(after, TensorStructInfo):
        if are_same_dimensions(before.dimensions, after.dimensions):
            return data
    inner = definition(data, builder)
    if isinstance(inner, Call) and inner.op is _RESHAPE:
        return Call(_RESHAPE, [inner.args[0], shape])
    return None


def RemoveRedundantReshape() -> Pass:
    """Remove reshapes that others follow, or that keep the shape."""
    return rewriting_pass("RemoveRedundantReshape", lambda func, mod: _rule)
