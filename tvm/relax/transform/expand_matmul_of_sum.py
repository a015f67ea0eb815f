"""A product with a sum becomes a sum of products.

matmul(x, add(a, b))    ->    add(matmul(x, a), matmul(x, b))

So weights of a model and of its adaptation stay apart. A sum that is computed at compile time stays.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis import computable_at_compile_time
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Constant, Function, Var
from tvm.relax.op.binary import add
from tvm.relax.op.linear_algebra import matmul
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import are_same_dimensions

from .rewrite_calls import Rule, definition, rewriting_pass

_MATMUL, _ADD = Op.get("relax.matmul"), Op.get("relax.add")


def _rule_of(func: Function, mod: IRModule) -> Rule:
    known = {var.vid for var in computable_at_compile_time(func)}

    def is_known(expr: RelayExpr) -> bool:
        return isinstance(expr, Constant) or (isinstance(expr, Var) and expr.vid in known)

    def rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
        total = definition(call.args[1], builder) if call.op is _MATMUL else None
        if not isinstance(total, Call) or total.op is not _ADD:
            return None
        a, b = total.args
        if is_known(a) and is_known(b):
            return None
        infos = [a.struct_info, b.struct_info]
        if not all([isinstance(info, TensorStructInfo) for info in infos]):
            return None
        if not are_same_dimensions(infos[0].dimensions, infos[1].dimensions):
            return None
        kind = call.attrs.out_dtype
        found: RelayExpr = add(matmul(call.args[0], a, kind), matmul(call.args[0], b, kind))
        return found

    return rule


def ExpandMatmulOfSum() -> Pass:
    """Expand products with sums of run-time values."""
    return rewriting_pass("ExpandMatmulOfSum", _rule_of)
