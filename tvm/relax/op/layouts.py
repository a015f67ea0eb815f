"""Operators in other layouts: which layouts of the arguments each takes, and what it gives then.

A tensor's layout is the order of its axes: ``(0, 2, 3, 1)`` holds NCHW as NHWC. A tuple's is a list of
its fields' layouts; what is no tensor of known rank has None and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import Call, PrimValue, Tuple
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tvm.tir.expr import IntImm

Order: TypeAlias = "tuple[int, ...]"
Layout: TypeAlias = "Order | list[Any] | None"


@dataclass(frozen=True)
class LayoutChoice:
    """The layouts of a call's arguments and result, and what changes with them."""

    inputs: Sequence[Layout]
    output: Layout
    changes: dict[str, Any] | None = None  # attributes
    arguments: dict[int, RelayExpr] | None = None  # arguments in the place of others


# from the call, the layouts that the user wants for the operator, and those that its arguments have;
# None: the layouts that a program is written in
LayoutRule: TypeAlias = Callable[[Call, "Sequence[str] | None", list[Any]], "LayoutChoice | None"]


def original_layout(info: StructInfo | None) -> Layout:
    """The layout that a program is written in."""
    if isinstance(info, TupleStructInfo):
        return [original_layout(field) for field in info.fields]
    if isinstance(info, TensorStructInfo) and info.ndim >= 0:
        return tuple(range(info.ndim))
    return None


def _rest(call: Call) -> list[Layout]:
    """The original layouts of all arguments but the first."""
    return [original_layout(arg.struct_info_) for arg in call.args[1:]]


def _place(order: Order, axis: int) -> int:
    """Where an axis is."""
    return order.index(axis % len(order))


def _is_original(order: Order) -> bool:
    return order == tuple(range(len(order)))


# ---- elementwise


def _follow(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """The layout of the first argument, whatever it is."""
    if not isinstance(layouts[0], tuple):
        return None
    return LayoutChoice([layouts[0], *_rest(call)], layouts[0])


def _broadcast(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """The layout of the first argument that is not in its original one, if all are of one rank or scalars."""
    orders = [layout for layout in layouts if layout is not None]
    infos = [arg.struct_info_ for arg in call.args]
    if any([isinstance(i, TensorStructInfo) and i.ndim < 0 for i in infos]) or not orders:
        return None
    ranks = {len(order) for order in orders if order != ()}
    if len(ranks) != 1:
        return None
    chosen = next((o for o in orders if o != () and not _is_original(o)), None)
    if chosen is None:
        return None
    return LayoutChoice([chosen if layout else layout for layout in layouts], chosen)


def _same(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """The layout that all arguments have."""
    first = layouts[0]
    if not isinstance(first, tuple) or any([layout != first for layout in layouts[1:]]):
        return None
    return LayoutChoice(layouts, first)


# ---- axes


def _along(name: str, *, outputs: Callable[[Order, Call], Layout] | None = None) -> LayoutRule:
    """An operator along one axis, an attribute."""

    def rule(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
        order, axis = layouts[0], getattr(call.attrs, name)
        if not isinstance(order, tuple) or axis is None:
            return None
        output = order if outputs is None else outputs(order, call)
        return LayoutChoice([order, *_rest(call)], output, {name: _place(order, axis)})

    return rule


def _each_part(order: Order, call: Call) -> Layout:
    info = call.struct_info
    return [order] * len(info.fields) if isinstance(info, TupleStructInfo) else None


def _with_statistics(order: Order, call: Call) -> Layout:
    return [order, *_rest(call)[2:]]


def _both(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """Two results like the argument."""
    order = layouts[0]
    return LayoutChoice([order], [order, order]) if isinstance(order, tuple) else None


def _without(order: Order, places: Sequence[int]) -> Order:
    """An order without some places, the axes counted anew."""
    kept = [axis for place, axis in enumerate(order) if place not in places]
    return tuple([sorted(kept).index(axis) for axis in kept])


def _reduction(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order, attrs = layouts[0], call.attrs
    if not isinstance(order, tuple):
        return None
    if attrs.axis is None:
        return LayoutChoice([order], order if attrs.keepdims else ())
    axes = (attrs.axis,) if isinstance(attrs.axis, int) else attrs.axis
    places = sorted([_place(order, axis) for axis in axes])
    output = order if attrs.keepdims else _without(order, places)
    axis = places[0] if isinstance(attrs.axis, int) else tuple(places)
    return LayoutChoice([order], output, {"axis": axis})


def _normalization(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """Along several axes, whose order is that of the scales' axes."""
    order = layouts[0]
    if not isinstance(order, tuple):
        return None
    places = [_place(order, axis) for axis in call.attrs.axes]
    if places != sorted(places):
        return None
    return LayoutChoice([order, *_rest(call)], order, {"axes": tuple(places)})


def _group_norm(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order, attrs = layouts[0], call.attrs
    if not isinstance(order, tuple):
        return None
    changes = {
        "channel_axis": _place(order, attrs.channel_axis),
        "axes": tuple([_place(order, axis) for axis in attrs.axes]),
    }
    return LayoutChoice([order, *_rest(call)], order, changes)


# ---- shapes


def _permute_dims(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order = layouts[0]
    if not isinstance(order, tuple):
        return None
    rank = len(order)
    axes = range(rank)[::-1] if call.attrs.axes is None else call.attrs.axes
    changes = {"axes": tuple([_place(order, axis) for axis in axes])}
    return LayoutChoice([order], tuple(range(rank)), changes)


def _expand_dims(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    """New axes are where the program says, the others around them in their order."""
    order = layouts[0]
    if not isinstance(order, tuple):
        return None
    rank = len(order) + len(call.attrs.axis)
    new = [axis % rank for axis in call.attrs.axis]
    kept = [axis for axis in range(rank) if axis not in new]
    output = list(range(rank))
    for place, axis in zip(kept, order, strict=True):
        output[place] = kept[axis]
    return LayoutChoice([order], tuple(output))


def _squeeze(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order, axes = layouts[0], call.attrs.axis
    if not isinstance(order, tuple):
        return None
    if axes is None:
        info = call.args[0].struct_info
        dims = info.dimensions if isinstance(info, TensorStructInfo) else None
        if dims is None or not all([isinstance(d, IntImm) for d in dims]):
            return None
        axes = [i for i, d in enumerate(dims) if isinstance(d, IntImm) and d.value == 1]
    places = sorted([_place(order, axis) for axis in axes])
    return LayoutChoice([order], _without(order, places), {"axis": tuple(places)})


def _concat(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    orders, axis = layouts[0], call.attrs.axis
    is_known = isinstance(orders, list) and all([isinstance(order, tuple) for order in orders])
    if not is_known or axis is None or not orders:
        return None
    chosen = next((order for order in orders if not _is_original(order)), orders[0])
    return LayoutChoice([[chosen] * len(orders)], chosen, {"axis": _place(chosen, axis)})


def _strided_slice(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order, axes = layouts[0], call.args[1]
    if not isinstance(order, tuple) or not isinstance(axes, Tuple):
        return None
    values = [field.value if isinstance(field, PrimValue) else None for field in axes.fields]
    if not all([isinstance(value, IntImm) for value in values]):
        return None
    places = [_place(order, v.value) for v in values if isinstance(v, IntImm)]
    moved = Tuple([PrimValue(IntImm("int64", place)) for place in places])
    return LayoutChoice([order, *[None] * (len(call.args) - 1)], order, arguments={1: moved})


def _pad(call: Call, wanted: Any, layouts: list[Any]) -> LayoutChoice | None:
    order, widths = layouts[0], call.attrs.pad_width
    if not isinstance(order, tuple):
        return None
    moved = [width for axis in order for width in widths[2 * axis : 2 * axis + 2]]
    return LayoutChoice([order], order, {"pad_width": tuple(moved)})


# ---- windows


def _order_of(wanted: str, own: str) -> Order:
    """The order of axes that brings one layout's letters into another's."""
    if sorted(wanted) != sorted(own):
        raise TVMError(
            f"ConvertLayout requires layouts with the axes of {own}, got {wanted}",
            hint="blocked layouts such as NCHW4c come from layout_transform",
        )
    return tuple([own.index(letter) for letter in wanted])


def _letters(own: str, order: Order) -> str:
    return "".join([own[axis] for axis in order])


def _convolution(
    call: Call, wanted: Sequence[str] | None, layouts: list[Any]
) -> LayoutChoice | None:
    """The layouts that are wanted, otherwise that of the data."""
    attrs = call.attrs
    data, kernel, out = attrs.data_layout, attrs.kernel_layout, attrs.out_layout
    if not (data + kernel + out).isalpha():
        return None
    if wanted is not None:
        if len(wanted) not in (2, 3):
            raise TVMError(
                f"{call.op} requires the wanted layouts of data, kernel and, if it differs, of the "
                f"result, got {list(wanted)}"
            )
        orders = [_order_of(wanted[0], data), _order_of(wanted[1], kernel)]
        output = _order_of(wanted[-1] if len(wanted) == 3 else wanted[0], out)
    else:
        if not all([isinstance(layout, tuple) for layout in layouts]):
            return None
        orders = layouts
        output = _order_of(_letters(data, orders[0]), out)
    changes = {
        "data_layout": _letters(data, orders[0]),
        "kernel_layout": _letters(kernel, orders[1]),
        "out_layout": _letters(out, output),
    }
    return LayoutChoice(orders, output, changes)


def _window(call: Call, wanted: Sequence[str] | None, layouts: list[Any]) -> LayoutChoice | None:
    """Pooling and resizing: the wanted layout, otherwise that of the data."""
    attrs, order = call.attrs, layouts[0]
    own = attrs.layout
    if not own.isalpha():
        return None
    if wanted is not None:
        order = _order_of(wanted[0], own)
    if not isinstance(order, tuple):
        return None
    changes = {"layout": _letters(own, order)}
    output = order
    if "out_layout" in attrs:
        output = _order_of(changes["layout"], attrs.out_layout)
        changes["out_layout"] = _letters(attrs.out_layout, output)
    return LayoutChoice([order, *_rest(call)], output, changes)


_RULES: dict[str, LayoutRule] = {
    **dict.fromkeys(
        (
            "abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "bitwise_not",
            "ceil", "clip", "cos", "cosh", "erf", "exp", "floor", "full_like", "isfinite", "isinf",
            "isnan", "log", "logical_not", "negative", "ones_like", "round", "rsqrt", "sigmoid",
            "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "zeros_like",
            "nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.relu6", "nn.selu", "nn.silu",
            "nn.softplus",
        ),
        _follow,
    ),
    **dict.fromkeys(
        (
            "add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide",
            "floor_mod", "greater", "greater_equal", "left_shift", "less", "less_equal",
            "log_add_exp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod",
            "multiply", "not_equal", "power", "right_shift", "subtract",
        ),
        _broadcast,
    ),
    **dict.fromkeys(("ewise_fma", "where"), _same),
    **dict.fromkeys(
        ("argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "variance"), _reduction
    ),
    **dict.fromkeys(
        (
            "cumprod", "cumsum", "dequantize", "flip", "quantize", "repeat", "sort",
            "nn.log_softmax", "nn.softmax",
        ),
        _along("axis"),
    ),
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm"), _normalization),
    **dict.fromkeys(
        (
            "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose",
        ),
        _convolution,
    ),
    **dict.fromkeys(
        (
            "image.resize2d",
            *[f"nn.{kind}_pool{rank}d" for kind in ("max", "avg", "adaptive_avg") for rank in (1, 2, 3)],
        ),
        _window,
    ),
    "concat": _concat, "expand_dims": _expand_dims, "permute_dims": _permute_dims,
    "split": _along("axis", outputs=_each_part), "squeeze": _squeeze,
    "strided_slice": _strided_slice, "nn.batch_norm": _along("axis", outputs=_with_statistics),
    "nn.dropout": _both, "nn.group_norm": _group_norm, "nn.pad": _pad,
}  # fmt: skip


def set_layout_rules() -> None:
    """Give each operator its rule, when all are declared."""
    for name, rule in _RULES.items():
        Op.get(f"relax.{name}").set_facets(infer_layout=rule)
