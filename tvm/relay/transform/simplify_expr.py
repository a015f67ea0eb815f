"""Remove operators that cancel each other or do nothing.

reshape(reshape(%x, a), b)              ->    reshape(%x, b)
transpose(transpose(%x, p), q)          ->    transpose(%x, p[q])
cast(%x, its own dtype)                 ->    %x
cast(cast(%x, wider), dtype)            ->    cast(%x, dtype)
multiply(%x, 1f), add(%x, zeros)        ->    %x
add(add(%x, 1f), 2f)                    ->    add(%x, 3f)
divide(%x, sqrt(%y))                    ->    multiply(%x, rsqrt(%y))
reshape to the same shape               ->    %x
reshape(dense(reshape(%x), %w))         ->    dense(%x, %w), leading axes as in %x
conv2d whose window sees borders only   ->    conv2d of a smaller window
zeros_like(%x), broadcast_to_like(..)   ->    zeros(shape), broadcast_to(.., shape)
broadcast_to_like of the same shape     ->    %x
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Tuple, TupleGetItem
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import CONVOLUTIONS, calls
from tvm.relay.transform.padding_only_taps import without_padding_only_taps
from tvm.relay.transform.simplify_rules import REWRITES
from tvm.relay.traverse import rewrite_function


@relay_pass("SimplifyExpr", opt_level=0)
def simplify_expr(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the rewrites bottom up."""
    if is_primitive(func):
        return func
    return rewrite_function(func, _simplify)


def _simplify(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
        return new.tuple_value.fields[new.index]
    if calls(new, *CONVOLUTIONS):
        narrow = without_padding_only_taps(new, tensor_type_of(old))
        return new if narrow is None else narrow
    return REWRITES.rewrite(old, new)


SimplifyExpr = simplify_expr.factory
