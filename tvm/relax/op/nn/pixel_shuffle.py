"""Channels as blocks of pixels."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import dims_of, fail, is_number, made, simplified, tensors
from tvm.relax.op.operator import Expr, Int, operator
from tvm.tir import floordiv


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data` and shape (..., channels / factor^2, rows * factor,
    columns * factor)."""
    info, factor = tensors(call, 1)[0], call.attrs.upscale_factor
    if factor < 1:
        raise fail(call, f"requires a positive upscale_factor, got {factor}")
    if 0 <= info.ndim < 3:
        raise fail(call, f"requires a tensor of three dimensions or more, got {info}")
    dims = dims_of(info)
    if dims is None:
        return made(None, info.dtype, info.vdevice, info.ndim)
    *lead, channels, rows, columns = dims
    if is_number(channels) and channels.value % factor**2:
        raise fail(call, f"requires channels that {factor**2} divides, got {channels}")
    new = [*lead, floordiv(channels, factor**2), rows * factor, columns * factor]
    return made([simplified(dim) for dim in new], info.dtype, info.vdevice)


def _shuffled(x: Any, factor: int) -> Any:
    *lead, channels, rows, columns = x.shape
    out, rank = floordiv(channels, factor**2), len(lead)
    blocks = topi.reshape(x, [*lead, out, factor, factor, rows, columns])
    order = [*range(rank), *[rank + i for i in (0, 3, 1, 4, 2)]]
    shape = [*lead, out, rows * factor, columns * factor]
    return topi.reshape(topi.transpose(blocks, order), shape)


def _legalize(bb: Any, call: Call) -> Any:
    factor = call.attrs.upscale_factor
    return bb.call_te(_shuffled, call.args[0], factor, primfunc_name_hint="pixel_shuffle")


@operator("relax.nn.pixel_shuffle", "PixelShuffleAttrs", infer=_infer, FLegalize=_legalize)
def pixel_shuffle(data: Expr, upscale_factor: Int) -> Expr:
    """Channels as pixels of an image with more rows and columns.

    Parameters
    ----------
    data : relax.Expr
        The images, whose last axes are channels, rows and columns.
    upscale_factor : int
        How many times as many rows and columns.
    """
