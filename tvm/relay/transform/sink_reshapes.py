"""Move reshapes behind element-wise operators, so that these fuse with the layer before.

    %0 = nn.dense(%x, %w);                      %0 = nn.dense(%x, %w);
    %1 = reshape(%0, newshape=[1, 8, 4]);  ->   %1 = add(%0, reshape(%y, newshape=[8, 4]));
    add(%1, %y)                                 reshape(%1, newshape=[1, 8, 4])

Only what comes out of a layer is treated: other reshapes cost nothing where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of, known_type
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.new_shape import find_new_shape
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.op.types import Dim, is_any, product, same_dim, shape_of_type
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import RESHAPES, calls, is_operator_call
from tvm.relay.traverse import rewrite_function

Shape = tuple[Dim, ...]


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
        outer = _known_shape(ty)
        reshape = next((r for a in call.args if (r := self._reshaped_layer(a)) is not None), None)
        if outer is None or reshape is None:
            return None
        inner = _known_shape(infer_type_of(reshape.args[0]))
        if inner is None or not same_dim(product(outer), product(inner)):
            return None
        args = [_in_shape(arg, outer, inner) for arg in call.args]
        if any(arg is None for arg in args):
            return None
        new_shape = find_new_shape(inner, outer)
        if new_shape is None and not _are_same(_known_shape(infer_type_of(reshape)), outer):
            return None
        moved = self._record(call.replace(args=tuple(args)))
        if new_shape is None:
            return reshape.replace(args=(moved, *reshape.args[1:]))
        return ops.reshape(moved, newshape=new_shape)

    def _reshaped_layer(self, arg: RelayExpr) -> Call | None:
        """The reshape, if it is one of a layer's result."""
        if not isinstance(arg, Call) or not calls(arg, *RESHAPES):
            return None
        return arg if id(arg.args[0]) in self.from_layer else None


def _known_shape(ty: object) -> Shape | None:
    """The shape of a tensor type, of numbers and symbolic extents."""
    shape = shape_of_type(ty) if type(ty) is TensorType else None
    return None if shape is None or any(is_any(dim) for dim in shape) else shape


def _are_same(a: Shape | None, b: Shape | None) -> bool:
    return a is not None and b is not None and len(a) == len(b) and all(map(same_dim, a, b))


def _is_elementwise(call: Call) -> bool:
    """Whether the operator treats all axes alike."""
    has_no_axes = call.attrs is None or call.op is ops.cast
    return call.operator.fuse <= OpPattern.BROADCAST and has_no_axes


def _in_shape(arg: RelayExpr, outer: Shape, inner: Shape) -> RelayExpr | None:
    """What to put in place of `arg` when the operator works on `inner` instead of `outer`."""
    shape = _known_shape(infer_type_of(arg))
    if shape is None:
        return None
    if _are_same(shape, outer):
        if calls(arg, *RESHAPES) and _are_same(_known_shape(infer_type_of(arg.args[0])), inner):
            return arg.args[0]
        return _reshaped(arg, shape, inner)
    # what varies along common last axes only broadcasts to both shapes alike
    leading = next((i for i, dim in enumerate(shape) if not same_dim(dim, 1)), len(shape))
    trailing = shape[leading:]
    if len(trailing) > _common_suffix(outer, inner):
        return None
    return arg if len(shape) <= len(inner) else _reshaped(arg, shape, trailing)


def _reshaped(arg: RelayExpr, shape: Shape, wanted: Sequence[Dim]) -> RelayExpr | None:
    new_shape = find_new_shape(shape, wanted)
    return None if new_shape is None else ops.reshape(arg, newshape=new_shape)


def _common_suffix(a: Shape, b: Shape) -> int:
    """How many last dimensions agree."""
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if not same_dim(x, y):
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
