"""Move reshapes behind element-wise operators, so that these fuse with the layer before.

    %0 = nn.dense(%x, %w);                      %0 = nn.dense(%x, %w);
    %1 = reshape(%0, newshape=[1, 8, 4]);  ->   %1 = add(%0, reshape(%y, newshape=[8, 4]));
    add(%1, %y)                                 reshape(%1, newshape=[1, 8, 4])

Only what comes out of a layer is treated: other reshapes cost nothing where they are.
"""

from __future__ import annotations

import math

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of, known_type
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import RESHAPES, calls, is_operator_call
from tvm.relay.traverse import rewrite_function
from tvm.relay.ty import static_shape

Shape = tuple[int, ...]


class _Sinker:
    """Knows which values come out of a layer through element-wise operators alone."""

    def __init__(self) -> None:
        self.from_layer: set[int] = set()
        self._kept: list[RelayExpr] = []  # so that the ids stay valid

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not is_operator_call(new) or new.operator.fuse is None:
            return new
        if new.operator.fuse == OpPattern.OUT_ELEMWISE_FUSABLE:
            return self._record(new)
        if not _is_elementwise(new):
            return new
        sunk = self._sunk(new, known_type(old))
        if sunk is not None:
            return sunk
        return self._record(new) if any(id(a) in self.from_layer for a in new.args) else new

    def _record(self, expr: Call) -> Call:
        self.from_layer.add(id(expr))
        self._kept.append(expr)
        return expr

    def _sunk(self, call: Call, ty: object) -> RelayExpr | None:
        outer = static_shape(ty)
        inner = next((s for a in call.args if (s := self._shape_before(a)) is not None), None)
        if outer is None or inner is None or math.prod(outer) != math.prod(inner):
            return None
        args = [_in_shape(arg, outer, inner) for arg in call.args]
        if any(arg is None for arg in args):
            return None
        moved = self._record(call.replace(args=tuple(args)))
        return ops.reshape(moved, newshape=outer)

    def _shape_before(self, arg: RelayExpr) -> Shape | None:
        """The shape of a layer's result that `arg` reshapes."""
        if calls(arg, *RESHAPES) and id(source := arg.args[0]) in self.from_layer:
            return static_shape(infer_type_of(source))
        return None


def _is_elementwise(call: Call) -> bool:
    """Whether the operator treats all axes alike."""
    has_no_axes = call.attrs is None or call.op is ops.cast
    return call.operator.fuse <= OpPattern.BROADCAST and has_no_axes


def _in_shape(arg: RelayExpr, outer: Shape, inner: Shape) -> RelayExpr | None:
    """What to put in place of `arg` when the operator works on `inner` instead of `outer`."""
    shape = static_shape(infer_type_of(arg))
    if shape is None:
        return None
    if shape == outer:
        if calls(arg, *RESHAPES) and static_shape(infer_type_of(arg.args[0])) == inner:
            return arg.args[0]
        return ops.reshape(arg, newshape=inner)
    # what varies along common last axes only broadcasts to both shapes alike
    leading = next((i for i, dim in enumerate(shape) if dim != 1), len(shape))
    trailing = shape[leading:]
    if len(trailing) > _common_suffix(outer, inner):
        return None
    return arg if len(shape) <= len(inner) else ops.reshape(arg, newshape=trailing)


def _common_suffix(a: Shape, b: Shape) -> int:
    """How many last dimensions agree."""
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x != y:
            break
        count += 1
    return count


@relay_pass("SinkReshapes", opt_level=2)
def sink_reshapes(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Move reshapes of layers' results down."""
    if is_primitive(func):
        return func
    return rewrite_function(func, _Sinker().rewrite)


SinkReshapes = sink_reshapes.factory
