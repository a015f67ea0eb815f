"""Take weights that a program transposes before a dense layer as transposed parameters.

nn.dense(%x, transpose(%w))    ->    nn.dense(%x, %w.T)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType
from tvm.relay.analysis.fc_transpose import transposed_weight
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Var
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import free_vars, on_calls, rewrite_post_order


def SimplifyFCTranspose(target_weight_name: Sequence[str]) -> Pass:
    """The pass for the weights of these names; `relay.analysis.search_fc_transpose` lists them."""
    names = [str(name) for name in target_weight_name]

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        made: dict[int, Var] = {}

        def rewrite(old: Call, new: Call) -> RelayExpr:
            weight = transposed_weight(old)
            if weight is None or weight.name_hint not in names:
                return new
            return new.replace(args=(new.args[0], made.setdefault(id(weight), _turned(weight))))

        body = rewrite_post_order(func.body, on_calls(rewrite))
        if not made:
            return func
        used = {id(v) for v in free_vars(body)}
        params = [
            p
            for old in func.params
            for p in (old, made.get(id(old)))
            if (p is not None and id(p) in used) or (p is old and id(old) not in made)
        ]
        return Function(params, body, None, func.type_params, func.attrs)

    return FunctionPass(run, PassInfo(0, "SimplifyFCTranspose"))


def _turned(weight: Var) -> Var:
    ty = infer_type_of(weight)
    assert isinstance(ty, TensorType)
    return Var(f"{weight.name_hint}.T", TensorType(tuple(reversed(ty.shape)), ty.dtype))
