"""Fourier transforms of PyTorch, of axes and of windows that slide along signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.indexing import move_axis
from tvm.relay.op.signal import dft
from tvm.relay.op.signal import stft as sliding_transform

from .complex_tensors import Complex, as_complex, conjugate, from_pairs, scaled
from .registry import CONVERTERS, as_float, as_ints, as_number, axes_of, torch_op


def _transform(z: Complex, axis: int, inverse: bool, division: int) -> Complex:
    """The transform along an axis, over its extent to the power of 0, 1/2 or 1."""
    extent = infer_shape(z.real)[axis]
    moved = z.map(lambda part: move_axis(part, axis, -1))
    found = Complex(*[dft(moved.real, moved.imag, inverse)[i] for i in range(2)])
    found = found.map(lambda part: move_axis(part, -1, axis))
    # the inverse transform divides by the extent already
    return scaled(found, float(extent ** (inverse - division / 2)))


def _each(z: Complex, axes: Sequence[int], inverse: bool, division: int) -> Complex:
    for axis in axes:
        z = _transform(z, axis, inverse, division)
    return z


def _axes(z: Complex, dims: Any) -> list[int]:
    return axes_of(as_ints(dims), len(infer_shape(z.real)))


# the operators that torch's functions come down to; its numbers say what to divide by


@torch_op("_fft_r2c")
def _fft_r2c(x: RelayExpr, dims: Any, division: int, onesided: bool) -> Complex:
    z = as_complex(x)
    axes = _axes(z, dims)
    found = _each(z, axes, False, division)
    if not onesided:
        return found
    count = infer_shape(x)[axes[-1]] // 2 + 1  # the other half mirrors it
    return found.map(lambda part: _op.strided_slice(part, [0], [count], [1], axes[-1:]))


@torch_op("_fft_c2c")
def _fft_c2c(x: Any, dims: Any, division: int, forward: bool) -> Complex:
    z = as_complex(x)
    return _each(z, _axes(z, dims), not forward, division)


@torch_op("_fft_c2r")
def _fft_c2r(x: Any, dims: Any, division: int, last: Any) -> RelayExpr:
    z = as_complex(x)
    *others, axis = _axes(z, dims)
    spectrum = _mirrored(_each(z, others, True, division), int(as_number(last)), axis)
    return _transform(spectrum, axis, True, division).real


def _mirrored(z: Complex, count: int, axis: int) -> Complex:
    """All ``count`` elements of what has conjugate halves."""
    half = z.map(lambda part: _fitted(part, axis, count // 2 + 1))
    index = constant(np.arange((count - 1) // 2, 0, -1), "int64")
    rest = conjugate(half.map(lambda part: _op.take(part, index, axis)))
    if count < 3:
        return half.map(lambda part: _fitted(part, axis, count))
    return Complex(*[
        _op.concatenate([a, b], axis) for a, b in zip(half.parts, rest.parts, strict=True)
    ])  # fmt: skip


def _fitted(x: RelayExpr, axis: int, extent: int) -> RelayExpr:
    """Cut, or filled with zeros."""
    have = infer_shape(x)[axis]
    if have > extent:
        return _op.strided_slice(x, [0], [extent], [1], [axis])
    width = [(0, 0)] * len(infer_shape(x))
    width[axis] = (0, extent - have)
    return _op.nn.pad(x, width) if extent > have else x


# ---- windows that slide along signals


def _frames(n_fft: Any, hop: Any) -> tuple[int, int]:
    """The size of frames, and the step from one to the next."""
    size = int(as_number(n_fft))
    return size, size // 4 if hop is None else int(as_number(hop))


def _window(window: Any, length: Any, size: int, dtype: str) -> RelayExpr:
    """The window, of the frame's size by default, in the middle of a frame."""
    width = size if length is None else int(as_number(length))
    given = constant(np.ones(width), dtype) if window is None else as_float(window)
    before = (size - width) // 2
    return _op.nn.pad(given, [(before, size - width - before)]) if width < size else given


@torch_op("stft")
def _stft(
    x: RelayExpr, n_fft: Any, hop: Any = None, length: Any = None, window: Any = None,
    normalized: Any = False, onesided: Any = None, as_complex_tensor: Any = None, *_: Any,
) -> Any:  # fmt: skip
    if isinstance(x, Complex) or isinstance(window, Complex):
        raise OpAttributeUnImplemented("stft requires a real signal and window")
    size, step = _frames(n_fft, hop)
    found = sliding_transform(
        x, size, step, size, _window(window, length, size, infer_dtype(x)), bool(normalized),
        onesided is None or bool(onesided),
    )  # fmt: skip
    return from_pairs(found) if as_complex_tensor else found


@torch_op("stft.center")
def _stft_centred(
    x: RelayExpr, n_fft: Any, hop: Any = None, length: Any = None, window: Any = None,
    center: Any = True, mode: Any = "reflect", normalized: Any = False, *rest: Any,
) -> Any:  # fmt: skip
    if center:
        side = int(as_number(n_fft)) // 2
        x = CONVERTERS["aten::pad"](x, [side, side], mode)
    return _stft(x, n_fft, hop, length, window, normalized, *rest)


@torch_op("istft")
def _istft(
    z: Any, n_fft: Any, hop: Any = None, length: Any = None, window: Any = None,
    center: Any = True, normalized: Any = False, onesided: Any = None, total: Any = None,
    as_complex_tensor: Any = False,
) -> RelayExpr:  # fmt: skip
    """Frames transformed back, weighed, added where they overlap, and the weights divided out."""
    spectrum = z if isinstance(z, Complex) else from_pairs(z)
    if as_complex_tensor:
        raise OpAttributeUnImplemented("istft is supported for real signals")
    size, step = _frames(n_fft, hop)
    *batch, _, frames = infer_shape(spectrum.real)
    division, rank = 1 if normalized else 2, len(batch)
    if onesided is None or onesided:
        rows = _fft_c2r(spectrum, [rank], division, size)
    else:
        rows = _transform(spectrum, rank, True, division).real
    weights = _window(window, length, size, infer_dtype(rows))
    rows = _op.transpose(rows, [*range(rank), rank + 1, rank]) * weights
    total_length = size + step * (frames - 1)
    count = math.prod(batch)
    signal = _overlapped(
        _op.reshape(rows, (count, frames * size)), frames, size, step, total_length
    )
    squares = _op.broadcast_to(weights * weights, (1, frames, size))
    envelope = _overlapped(
        _op.reshape(squares, (1, frames * size)), frames, size, step, total_length
    )
    first = size // 2 if center else 0
    last = (
        total_length - first if total is None else min(first + int(as_number(total)), total_length)
    )
    kept = _op.strided_slice(signal / envelope, [first], [last], [1], [1])
    if total is not None:
        kept = _fitted(kept, 1, int(as_number(total)))
    return _op.reshape(kept, (*batch, infer_shape(kept)[1]))


def _overlapped(rows: RelayExpr, frames: int, size: int, step: int, total_length: int) -> RelayExpr:
    """Frames at their positions, added up."""
    positions = (np.arange(frames)[:, None] * step + np.arange(size)).reshape(1, -1)
    count = infer_shape(rows)[0]
    zeros = constant(np.zeros((count, total_length)), infer_dtype(rows))
    index = constant(np.repeat(positions, count, 0), "int64")
    return _op.scatter_elements(zeros, index, rows, 1, "add")
