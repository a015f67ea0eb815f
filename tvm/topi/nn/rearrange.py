"""Blocks of space moved into channels or batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from .. import tag
from ..utils import dims
from .pad import pad


def depth_to_space(
    data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> te.Tensor:
    """Channels to blocks of space.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    block_size : int
        The side of a block.
    layout : str
        "NCHW" or "NHWC".
    mode : str
        "DCR": the position in the block comes before the channel; "CRD": behind it.
    """
    have = dict(zip(layout, dims(data.shape), strict=True))
    _require_mode("depth_to_space", mode)
    _require_multiple("depth_to_space", have["C"], block_size * block_size)
    divide = int.__floordiv__ if isinstance(have["C"], int) else tir.indexdiv
    channels = divide(have["C"], block_size * block_size)

    def element(*i: Any) -> Any:
        at = dict(zip(layout, i, strict=True))
        position = tir.indexmod(at["H"], block_size) * block_size + tir.indexmod(
            at["W"], block_size
        )
        first = position * channels + at["C"]
        last = at["C"] * (block_size * block_size) + position
        source = {
            "N": at["N"],
            "C": first if mode == "DCR" else last,
            "H": tir.indexdiv(at["H"], block_size),
            "W": tir.indexdiv(at["W"], block_size),
        }
        return data(*[source[axis] for axis in layout])

    shape = {
        "N": have["N"], "C": channels, "H": have["H"] * block_size, "W": have["W"] * block_size,
    }  # fmt: skip
    return te.compute(
        [shape[axis] for axis in layout], element, name="depth_to_space", tag=tag.INJECTIVE
    )


def space_to_depth(
    data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> te.Tensor:
    """Blocks of space to channels; parameters as in `depth_to_space`."""
    have = dict(zip(layout, dims(data.shape), strict=True))
    _require_mode("space_to_depth", mode)
    for axis in "HW":
        _require_multiple("space_to_depth", have[axis], block_size)

    def element(*i: Any) -> Any:
        at = dict(zip(layout, i, strict=True))
        step = have["C"] if mode == "DCR" else block_size * block_size
        first, last = tir.indexdiv(at["C"], step), tir.indexmod(at["C"], step)
        position, channel = (first, last) if mode == "DCR" else (last, first)
        source = {
            "N": at["N"],
            "C": channel,
            "H": at["H"] * block_size + tir.indexdiv(position, block_size),
            "W": at["W"] * block_size + tir.indexmod(position, block_size),
        }
        return data(*[source[axis] for axis in layout])

    shape = {
        "N": have["N"],
        "C": have["C"] * (block_size * block_size),
        "H": have["H"] // block_size,
        "W": have["W"] // block_size,
    }
    return te.compute(
        [shape[axis] for axis in layout], element, name="space_to_depth", tag=tag.INJECTIVE
    )


def space_to_batch_nd(
    data: te.Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> te.Tensor:
    """Blocks of space to batches.

    Parameters
    ----------
    data : te.Tensor
        The tensor, spatial axes behind the batch.
    block_shape : sequence of int
        The extents of a block.
    pad_before, pad_after : sequence of int
        The border around the spatial axes.
    pad_value : float
        The border's value.
    """
    rank, blocks = len(data.shape), list(block_shape)
    rest = [0] * (rank - 1 - len(blocks))
    padded = pad(data, [0, *pad_before, *rest], [0, *pad_after, *rest], pad_value)
    have = dims(padded.shape)
    shape = list(have)
    for axis, block in enumerate(blocks, start=1):
        shape[0] *= block
        shape[axis] //= block

    def element(*i: Any) -> Any:
        at, position = list(i), tir.indexdiv(i[0], have[0])
        at[0] = tir.indexmod(i[0], have[0])
        for axis in reversed(range(1, 1 + len(blocks))):
            at[axis] = i[axis] * blocks[axis - 1] + tir.indexmod(position, blocks[axis - 1])
            position = tir.indexdiv(position, blocks[axis - 1])
        return padded(*at)

    return te.compute(shape, element, name="space_to_batch_nd", tag=tag.INJECTIVE)


def batch_to_space_nd(
    data: te.Tensor,
    block_shape: Sequence[int],
    crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> te.Tensor:
    """Batches to blocks of space, the reverse of `space_to_batch_nd`; crops are its borders."""
    blocks, shape = list(block_shape), list(dims(data.shape))
    for axis, block in enumerate(blocks, start=1):
        shape[0] //= block
        shape[axis] = shape[axis] * block - crop_begin_list[axis - 1] - crop_end_list[axis - 1]

    def element(*i: Any) -> Any:
        at = list(i)
        position: Any = 0
        for axis, block in enumerate(blocks, start=1):
            whole = i[axis] + crop_begin_list[axis - 1]
            position = position * block + tir.indexmod(whole, block)
            at[axis] = tir.indexdiv(whole, block)
        at[0] = position * shape[0] + i[0]
        return data(*at)

    return te.compute(shape, element, name="batch_to_space_nd", tag=tag.INJECTIVE)


def _require_mode(name: str, mode: str) -> None:
    if mode not in ("DCR", "CRD", "CDR"):
        raise RuntimeValueError(f"{name} requires a mode of DCR or CRD, got {mode!r}")


def _require_multiple(name: str, extent: Any, unit: int) -> None:
    if isinstance(extent, int) and extent % unit:
        raise RuntimeValueError(f"{name} requires an extent that {unit} divides, got {extent}")
