"""What gradients of poolings are made of: simpler operators, and the matrices of their axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, const

from ..known_shapes import known_shape, sliced
from ..registry import Simplify, ops
from ..shaping import in_order


def channels_first(compose: Callable[[Call, RelayExpr], RelayExpr]) -> Simplify:
    """A composition of data with channels first, for every unblocked layout."""

    def composed(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
        layout = call.attrs.layout
        out_layout = call.attrs.out_layout or layout
        if not (layout + out_layout).isupper():
            raise OpNotImplemented(
                f"the gradient of {call.operator.name} requires unblocked layouts, got {layout} and "
                f"{out_layout}"
            )
        plain = "NC" + "".join([axis for axis in layout if axis not in "NC"])
        data = in_order(call.args[0], layout, plain)
        infer_type_of(data)
        found = compose(call, data)
        return in_order(found, plain, out_layout)

    return composed


def _pooled_rows(call: Call, data: RelayExpr, which: Sequence[int]) -> RelayExpr:
    """The greatest elements along two of the spatial axes; the last two are pooled."""
    attrs = call.attrs
    rank = len(attrs.pool_size)

    def of(values: Sequence[int], other: int) -> tuple[int, ...]:
        return tuple([values[k] if k >= 0 else other for k in which])

    before, after = of(attrs.padding[:rank], 0), of(attrs.padding[rank:], 0)
    found = ops.nn.max_pool2d(
        data, pool_size=of(attrs.pool_size, 1), strides=of(attrs.strides, 1),
        padding=(*before, *after), dilation=of(attrs.dilation, 1), ceil_mode=attrs.ceil_mode,
    )  # fmt: skip
    infer_type_of(found)
    return found


def composed_max_pool1d(call: Call, data: RelayExpr) -> RelayExpr:
    n, c, w = known_shape(data, "nn.max_pool1d")
    found = _pooled_rows(call, ops.reshape(data, newshape=(n, c, 1, w)), (-1, 0))
    return ops.reshape(found, newshape=(n, c, -1))


def composed_max_pool3d(call: Call, data: RelayExpr) -> RelayExpr:
    """Over height and width, then over depth."""
    n, c, depth, h, w = known_shape(data, "nn.max_pool3d")
    planes = _pooled_rows(call, ops.reshape(data, newshape=(n, c * depth, h, w)), (1, 2))
    _, _, rows, columns = known_shape(planes, "nn.max_pool3d")
    lines = ops.reshape(planes, newshape=(n, c, depth, rows * columns))
    found = _pooled_rows(call, lines, (0, -1))
    return ops.reshape(found, newshape=(n, c, -1, rows, columns))


def composed_adaptive_max_pool(call: Call, data: RelayExpr) -> RelayExpr:
    sizes = call.attrs.output_size
    rank = len(known_shape(data, call.operator.name)) - 2
    for k in range(rank if sizes is not None else 0):
        have = known_shape(data, call.operator.name)[2 + k]
        want = sizes[k] if len(sizes) > 1 else sizes[0]
        bins = [
            ops.max(sliced(data, 2 + k, i * have // want, -(-(i + 1) * have // want)), axis=(2 + k,), keepdims=True)
            for i in range(want)
        ]  # fmt: skip
        data = ops.concatenate(Tuple(bins), axis=2 + k)
        infer_type_of(data)
    return data


def global_avg_pool2d_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, layout = call.args[0], call.attrs.layout
    extents = known_shape(data, "nn.global_avg_pool2d")
    count = extents[layout.index("H")] * extents[layout.index("W")]
    share = ops.divide(grad, ops.cast_like(const(count), grad))
    return [ops.broadcast_to_like(share, data)]


def averaged_axis(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    """The average pooling of one axis, on the identity."""
    attrs = call.attrs
    rank = len(attrs.pool_size)
    return ops.nn.avg_pool1d(
        identity, pool_size=(attrs.pool_size[which],), strides=(attrs.strides[which],),
        padding=(attrs.padding[which], attrs.padding[rank + which]),
        dilation=(attrs.dilation[which],), ceil_mode=attrs.ceil_mode,
        count_include_pad=attrs.count_include_pad, layout="NCW",
    )  # fmt: skip


def adapted_axis(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    """The average pooling of one axis to its size, on the identity."""
    size = call.attrs.output_size
    own = None if size is None else (size[which] if len(size) > 1 else size[0],)
    return ops.nn.adaptive_avg_pool1d(identity, output_size=own, layout="NCW")
