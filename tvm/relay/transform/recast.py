"""Run some layers in another data type, the rest of the program in its own.

nn.conv2d(%x, %w)    ->    cast(nn.conv2d(cast(%x, "int8"), cast(%w, "int8"),
                                          out_dtype="int32"), "float32")
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.analysis.count_layers import count_layers
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Tuple
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.traverse import rewrite_post_order


class RecastMutator(ExprMutator):
    """Rewrites the calls of some operators, but for layers counted from the first."""

    def __init__(
        self,
        dtype: str,
        out_dtype: str,
        valid_ops: Sequence[Op],
        valid_op_count: int,
        skip_layers: Sequence[int],
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.out_dtype = out_dtype
        self.valid_ops = list(valid_ops)
        self.skip_layers = [i % valid_op_count if valid_op_count else i for i in skip_layers]
        self.layer = 0

    def visit_call(self, call: Call) -> RelayExpr:
        """The call with its operands rewritten, and itself if it is one of those wanted."""
        return self.rewrite(call, super().visit_call(call))

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """The layer `new`, once the one `old`, in the narrow type."""
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if not any([old.op is op for op in self.valid_ops]):
            return new
        self.layer += 1
        if self.layer - 1 in self.skip_layers:
            return new
        args = tuple([self._narrow(arg) for arg in new.args])
        attrs = new.attrs
        if attrs is not None and "out_dtype" in attrs:
            attrs = attrs.replace(out_dtype=self.out_dtype)
        result = new.replace(args=args, attrs=attrs)
        return ops.cast(result, dtype=str(tensor_type_of(old).dtype))

    def _narrow(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            return Tuple([self._narrow(field) for field in arg.fields])
        return ops.cast(arg, dtype=self.dtype)


def recast(
    expr: RelayExpr,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Sequence[int] | None = None,
) -> RelayExpr:
    """`expr` with some layers in another type.

    Parameters
    ----------
    expr : a function or an expression.
    dtype : the type that the layers' arguments are converted to.
    out_dtype : the type that they accumulate in; the results are converted back.
    ops : the operators of these layers, nn.conv2d by default.
    skip_layers : layers to leave as they are, by number; negative ones count from the last.
    """
    names = list(ops) if ops is not None else ["nn.conv2d"]
    infer_type_of(expr)
    count = count_layers(expr, names)
    mutator = RecastMutator(dtype, out_dtype, [Op.get(n) for n in names], count, skip_layers or [])
    result = rewrite_post_order(expr, mutator.rewrite)
    return result.replace(ret_type=None) if isinstance(result, Function) else result
