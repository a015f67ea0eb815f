"""Operators that exchange batch, channels and space: moves of elements, told in simpler operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, const
from tvm.support.docstrings import described_by

from ..attributes import as_ints, as_list
from ..computes import computed_by
from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Attribute, Expr, Ints, operator
from ..registry import OpPattern, Simplify, ops
from ..types import apply, expect, product, shape_of_type, tensor


def _pairs(values: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple([as_ints(pair) for pair in as_list(values, "pairs of integers")])


Pairs = Annotated[Any, Attribute("tuple[tuple[int, ...], ...]", _pairs)]
_MODES = ("DCR", "CRD", "CDR")  # the last two are one


def _check_sub_pixel(attrs: Any, who: str) -> None:
    expect(attrs.block_size > 0, f"{who} requires a positive block size, got {attrs.block_size}")
    expect(attrs.layout in ("NCHW", "NHWC"), f"{who} requires NCHW or NHWC, got {attrs.layout!r}")
    expect(
        attrs.mode in _MODES, f"{who} requires a mode of {', '.join(_MODES)}, got {attrs.mode!r}"
    )


def _depth_to_space_type(attrs: Any, data: TensorType) -> Type:
    """A tensor in the layout of `data`, and of its dtype: channels divided by the block's square,
    height and width multiplied by its side."""
    who = "nn.depth_to_space"
    _check_sub_pixel(attrs, who)
    extents = axes_extents(shape_of_type(data), attrs.layout, who)
    channels, block = extents["C"], attrs.block_size
    expect(
        not isinstance(channels, int) or channels % block**2 == 0,
        f"{who} requires channels divisible by {block**2}, got {channels}",
    )
    extents["C"] = apply(lambda c: c // block**2, channels)
    for axis in "HW":
        extents[axis] = apply(lambda e: e * block, extents[axis])
    return tensor(shape_in_layout(extents, attrs.layout), data.dtype)


def _space_to_depth_type(attrs: Any, data: TensorType) -> Type:
    """A tensor in the layout of `data`, and of its dtype: channels multiplied by the block's
    square, height and width divided by its side."""
    who = "nn.space_to_depth"
    _check_sub_pixel(attrs, who)
    extents, block = axes_extents(shape_of_type(data), attrs.layout, who), attrs.block_size
    for axis in "HW":
        expect(
            not isinstance(extents[axis], int) or extents[axis] % block == 0,
            f"{who} requires extents divisible by {block}, got {axis} = {extents[axis]}",
        )
        extents[axis] = apply(lambda e: e // block, extents[axis])
    extents["C"] = apply(lambda c: c * block**2, extents["C"])
    return tensor(shape_in_layout(extents, attrs.layout), data.dtype)


def _spread_depth(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    """(n, b, b, c, h, w) or (n, c, b, b, h, w) to (n, c, h, b, w, b); channels last alike."""
    block, layout, mode = call.attrs.block_size, call.attrs.layout, call.attrs.mode
    n, *rest = shape_of_type(arg_types[0])
    is_first = layout == "NCHW"
    c, h, w = rest if is_first else (rest[2], rest[0], rest[1])
    depth = apply(lambda v: v // block**2, c)
    parts = (block, block, depth) if mode == "DCR" else (depth, block, block)
    if is_first:
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        split = ops.reshape(call.args[0], newshape=_dims((n, *parts, h, w)))
        shape = (n, depth, apply(lambda v: v * block, h), apply(lambda v: v * block, w))
    else:
        order = (0, 1, 3, 2, 4, 5) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        split = ops.reshape(call.args[0], newshape=_dims((n, h, w, *parts)))
        shape = (n, apply(lambda v: v * block, h), apply(lambda v: v * block, w), depth)
    return ops.reshape(ops.transpose(split, axes=order), newshape=_dims(shape))


def _gather_depth(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    """(n, c, h, b, w, b) to (n, b, b, c, h, w) or (n, c, b, b, h, w); channels last alike."""
    block, layout, mode = call.attrs.block_size, call.attrs.layout, call.attrs.mode
    n, *rest = shape_of_type(arg_types[0])
    is_first = layout == "NCHW"
    c, h, w = rest if is_first else (rest[2], rest[0], rest[1])
    rows, columns = [apply(lambda v: v // block, e) for e in (h, w)]
    depth = apply(lambda v: v * block**2, c)
    if is_first:
        split = ops.reshape(call.args[0], newshape=_dims((n, c, rows, block, columns, block)))
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        shape = (n, depth, rows, columns)
    else:
        split = ops.reshape(call.args[0], newshape=_dims((n, rows, block, columns, block, c)))
        order = (0, 1, 3, 2, 4, 5) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        shape = (n, rows, columns, depth)
    return ops.reshape(ops.transpose(split, axes=order), newshape=_dims(shape))


def _dims(shape: Sequence[object]) -> tuple[int, ...]:
    """A new shape for `reshape`, in which one unknown extent may be left open."""
    return tuple([d if isinstance(d, int) else -1 for d in shape])


def _where_reshape_can_tell(simplify: Simplify) -> Simplify:
    """Other operators only where one extent at most is open; a kernel of its own else."""

    def composed(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
        is_open = [not isinstance(d, int) for d in shape_of_type(arg_types[0])]
        return None if sum(is_open) > 1 else simplify(call, arg_types)

    return composed


def _space_to_batch_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`: the padded spatial extents divided by the blocks', the batch
    multiplied by their product."""
    who = "nn.space_to_batch_nd"
    shape, count = list(shape_of_type(data)), len(attrs.block_shape)
    expect(
        count == len(attrs.paddings) and count < len(shape),
        f"{who} requires a pair of paddings for each of the {count} axes of the block",
    )
    expect(
        all([block > 0 for block in attrs.block_shape]),
        f"{who} requires a block of positive extents, got {attrs.block_shape}",
    )
    for i, (block, pads) in enumerate(zip(attrs.block_shape, attrs.paddings, strict=True)):
        room = apply(lambda e, p: e + p, shape[i + 1], sum(pads))
        expect(
            not isinstance(room, int) or room % block == 0,
            f"{who} requires padded extents divisible by the block, got {room} for {block}",
        )
        shape[i + 1] = apply(lambda e, b: e // b, room, block)
    shape[0] = apply(lambda n: n * product(attrs.block_shape), shape[0])
    return tensor(shape, data.dtype)


def _batch_to_space_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`: the batch divided by the product of the blocks' extents,
    spatial extents multiplied by them and cut by `crops`."""
    who = "nn.batch_to_space_nd"
    shape, count = list(shape_of_type(data)), len(attrs.block_shape)
    expect(
        count == len(attrs.crops) and count < len(shape),
        f"{who} requires a pair of crops for each of the {count} axes of the block",
    )
    for i, (block, crop) in enumerate(zip(attrs.block_shape, attrs.crops, strict=True)):
        shape[i + 1] = apply(lambda e, b, c: e * b - c, shape[i + 1], block, sum(crop))
    blocks = product(attrs.block_shape)
    expect(
        not isinstance(shape[0], int) or shape[0] % blocks == 0,
        f"{who} requires a batch divisible by {blocks}, got {shape[0]}",
    )
    shape[0] = apply(lambda n: n // blocks, shape[0])
    return tensor(shape, data.dtype)


def _blocks_to_batch(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    """(n, h, b, w, b, c) to (b, b, n, h, w, c)"""
    attrs, count = call.attrs, len(call.attrs.block_shape)
    ty = arg_types[0]
    rest = len(ty.shape) - count - 1
    widths = ((0, 0), *attrs.paddings, *((0, 0),) * rest)
    value = const(attrs.pad_value, dtype=ty.dtype)
    padded = ops.nn.pad(call.args[0], value, pad_width=widths, pad_mode="constant")
    shape = shape_of_type(ty)
    split: list[object] = [shape[0]]
    for i, (block, pads) in enumerate(zip(attrs.block_shape, attrs.paddings, strict=True)):
        split += [apply(lambda e, b, p: (e + p) // b, shape[i + 1], block, sum(pads)), block]
    split += shape[count + 1 :]
    inner = [2 * i + 2 for i in range(count)]
    outer = [2 * i + 1 for i in range(count)]
    order = (*inner, 0, *outer, *range(2 * count + 1, len(split)))
    moved = ops.transpose(ops.reshape(padded, newshape=_dims(split)), axes=order)
    return ops.reshape(moved, newshape=_dims(shape_of_type(_space_to_batch_type(attrs, ty))))


def _batch_to_blocks(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    """(b, b, n, h, w, c) to (n, h, b, w, b, c)"""
    attrs, count = call.attrs, len(call.attrs.block_shape)
    shape = shape_of_type(arg_types[0])
    blocks = product(attrs.block_shape)
    batch = apply(lambda n: n // blocks, shape[0])
    split = [*attrs.block_shape, batch, *shape[1:]]
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    moved = ops.transpose(
        ops.reshape(call.args[0], newshape=_dims(split)),
        axes=(*order, *range(2 * count + 1, len(split))),
    )
    grown = [
        apply(lambda e, b: e * b, e, b) for e, b in zip(shape[1:], attrs.block_shape, strict=False)
    ]
    whole = (batch, *grown, *shape[count + 1 :])
    begin = [crop[0] for crop in attrs.crops]
    end = [
        apply(lambda e, c: e - c, e, crop[1]) for e, crop in zip(grown, attrs.crops, strict=True)
    ]
    expect(all(isinstance(e, int) for e in end), "crops of unknown extents are not known")
    return ops.strided_slice(
        ops.reshape(moved, newshape=_dims(whole)), begin=tuple(begin), end=tuple(end),
        strides=(1,) * count, axes=tuple(range(1, count + 1)), slice_mode="end",
    )  # fmt: skip


@operator(
    "nn.depth_to_space",
    "SubPixelAttrs",
    infer_type=_depth_to_space_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.nn.depth_to_space, "block_size", "layout", "mode"),
    simplify=_where_reshape_can_tell(_spread_depth),
)
def depth_to_space(
    data: Expr, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> RelayExpr:
    """Spread channels over blocks of pixels."""


@operator(
    "nn.space_to_depth",
    depth_to_space,
    infer_type=_space_to_depth_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.nn.space_to_depth, "block_size", "layout", "mode"),
    simplify=_where_reshape_can_tell(_gather_depth),
)
def space_to_depth(data: Expr, block_size: int, layout: str = "NCHW") -> RelayExpr:
    """Gather blocks of pixels in channels; the inverse of `depth_to_space`.

    Parameters
    ----------
    data : relay.Expr
        A batch of images, whose extents are multiples of the block.
    block_size : int
        The side of a block, in pixels.
    layout : str
        "NCHW" or "NHWC".
    """


@operator(
    "nn.space_to_batch_nd",
    "SpaceToBatchNDAttrs",
    support_level=2,
    infer_type=_space_to_batch_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.space_to_batch_nd(
            inputs[0],
            attrs.block_shape,
            [before for before, _ in attrs.paddings],
            [behind for _, behind in attrs.paddings],
            attrs.pad_value,
        )
    ],
    simplify=_where_reshape_can_tell(_blocks_to_batch),
)
def space_to_batch_nd(
    data: Expr,
    block_shape: Ints,
    paddings: Pairs,
    pad_value: float = 0,
) -> RelayExpr:
    """Gather blocks of the axes behind the batch in the batch.

    Parameters
    ----------
    data : relay.Expr
        The tensor, the batch first.
    block_shape : sequence of int
        The block's extents, for the axes from the second on.
    paddings : sequence of pairs of int
        The border put around each of these axes first.
    pad_value : float
        What the border holds.
    """


@operator(
    "nn.batch_to_space_nd",
    "BatchToSpaceNDAttrs",
    support_level=2,
    infer_type=_batch_to_space_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.batch_to_space_nd(inputs[0], attrs.block_shape, *zip(*attrs.crops, strict=True))
    ],
    simplify=_where_reshape_can_tell(_batch_to_blocks),
)
@described_by(space_to_batch_nd)
def batch_to_space_nd(data: Expr, block_shape: Ints, crops: Pairs) -> RelayExpr:
    """Spread the batch over blocks of the axes behind it; the inverse of `space_to_batch_nd`.

    Parameters
    ----------
    crops : sequence of pairs of int
        The border taken off each of these axes at last.
    """
