"""Leave out the rounding to bfloat16 of what is only read in float32.

%0 = cast(%x, "bfloat16"); %1 = multiply(%0, 0.125)         %0 = multiply(%x, 0.125f)
nn.softmax(cast(%1, "float32"))                       ->    nn.softmax(%0)

Processors compute in float32 whatever is not a dot product, and so they do attention: batched
products of bfloat16 become products of float32. What a convolution or a dense layer reads is
rounded as before.

The roundings are those that ToMixedPrecision has put in; a cast of the program rounds.
"""

from __future__ import annotations

from collections import Counter

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import OpPattern, Precision, ops
from tvm.relay.rounding import is_free_rounding, with_free_rounding
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import RESHAPES, calls
from tvm.relay.traverse import operands, post_order, rewrite_calls
from tvm.target import Target

_NARROW, _WIDE = "bfloat16", "float32"
_MOVES = (*RESHAPES, ops.transpose)


class RoundingSkipper:
    """Rebuilds a function; a wide node has a value in float32, and a rounded one if it is wanted."""

    def __init__(self, func: Function) -> None:
        self.order = post_order(func)
        self.uses = Counter([id(o) for node in self.order for o in operands(node)])
        self.wide = self._wide_nodes(func)
        self._values: dict[int, RelayExpr] = {}  # float32, by the new expression
        self._kept: list[RelayExpr] = []  # so that ids stay valid

    def _wide_nodes(self, func: Function) -> set[int]:
        """Narrow values that are only read in float32, and the readers."""
        narrow_use = {id(func.body)}
        found: set[int] = set()
        for node in reversed(self.order):
            if isinstance(node, Call) and (_reads_wide(node) or self._is_wide(node, narrow_use)):
                found.add(id(node))
            else:
                narrow_use.update([id(o) for o in operands(node)])
        return found

    def _is_wide(self, call: Call, narrow_use: set[int]) -> bool:
        return id(call) not in narrow_use and _dtype(call) == _NARROW and _follows(call)

    def rewrite(self, old: Call, new: Call) -> RelayExpr:
        if id(old) not in self.wide:
            return self._sunk(old, new)
        value = self._wide_value(old, new)
        if _dtype(old) == _WIDE:
            return value
        narrow = self._kept_alive(_rounded(value))
        self._values[id(narrow)] = value
        return narrow

    def _sunk(self, old: Call, new: Call) -> RelayExpr:
        """Heads of an attention are put together before they are rounded."""
        if _is_rounding(old) and calls(old.args[0], ops.nn.batch_matmul):
            self._values[id(self._kept_alive(new))] = new.args[0]
            return new
        value = self._values.get(id(new.args[0])) if new.args else None
        if value is None or new.op not in _MOVES or self.uses[id(old.args[0])] > 1:
            return new
        moved = new.replace(args=(value,))
        narrow = self._kept_alive(_rounded(moved))
        self._values[id(narrow)] = moved
        return narrow

    def _wide_value(self, old: Call, new: Call) -> RelayExpr:
        args = [self._widened(o, n) for o, n in zip(old.args, new.args, strict=True)]
        if new.op is ops.cast:
            return args[0]
        attrs = new.attrs
        if new.op is ops.nn.batch_matmul:
            attrs = attrs.replace(out_dtype=_WIDE)
        return new.replace(args=tuple(args), attrs=attrs)

    def _widened(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        found = self._values.get(id(new))
        if found is not None:
            return found
        if _dtype(old) != _NARROW:
            return new
        if isinstance(new, Constant):
            return const(new.data.numpy().astype(_WIDE))
        return self._kept_alive(ops.cast(new, dtype=_WIDE))

    def _kept_alive(self, expr: RelayExpr) -> RelayExpr:
        self._kept.append(expr)
        return expr


def _rounded(value: RelayExpr) -> Call:
    return with_free_rounding(ops.cast(value, dtype=_NARROW))


def _is_rounding(call: Call) -> bool:
    """Whether a call is a rounding that may be left out."""
    return call.op is ops.cast and _dtype(call) == _NARROW and is_free_rounding(call)


def _dtype(expr: RelayExpr) -> str:
    kind = infer_type_of(expr)
    return str(kind.dtype) if isinstance(kind, TensorType) else ""


def _reads_wide(call: Call) -> bool:
    """Whether a call reads bfloat16 in float32 itself."""
    if call.op is ops.nn.batch_matmul:
        return _NARROW in [_dtype(arg) for arg in call.args]
    return call.op is ops.cast and _dtype(call) == _WIDE and _dtype(call.args[0]) == _NARROW


def _follows(call: Call) -> bool:
    """Whether a call gives float32 if it gets that, element for element."""
    op = call.op
    if op is ops.cast:
        return _is_rounding(call) and _dtype(call.args[0]) == _WIDE
    if not isinstance(op, Op) or op.fuse is None or op.fuse > OpPattern.INJECTIVE:
        return False
    if op.precision is not Precision.FOLLOW or not all(_dtype(arg) for arg in call.args):
        return False
    return call.attrs is None or not {"dtype", "out_dtype"} & set(call.attrs.keys())


@relay_pass("SkipRounding", opt_level=2)
def skip_rounding(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Leave out roundings to bfloat16 that nobody needs."""
    target = Target.current(allow_none=True)
    if is_primitive(func) or target is None or "cpu" not in target.keys:
        return func
    if not any([calls(node, ops.cast) and _dtype(node) == _NARROW for node in post_order(func)]):
        return func
    return rewrite_calls(func, RoundingSkipper(func).rewrite)


SkipRounding = skip_rounding.factory
