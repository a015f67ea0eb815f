"""Replace operators that matter in training only by what they compute in inference.

    %0 = nn.batch_norm(%x, %g, %b, %m, %v);          %0 = multiply(%x, %scale);
    %0.0                                       ->    add(%0, %shift)

Each operator's `simplify` facet tells how.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Tuple, TupleGetItem
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import rewrite_function


@relay_pass("SimplifyInference", opt_level=0)
def simplify_inference(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the `simplify` facets."""
    return rewrite_function(func, _simplify)


def _simplify(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
        return new.tuple_value.fields[new.index]
    if not is_operator_call(old) or old.operator.simplify is None:
        return new
    simpler = old.operator.simplify(new, [infer_type_of(arg) for arg in old.args])
    return new if simpler is None else simpler


SimplifyInference = simplify_inference.factory
