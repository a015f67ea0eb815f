"""Fourier transforms of PyTorch, of whole axes and of windows that slide along signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.op.signal import dft
from tvm.relay.op.signal import stft as sliding_transform

from .complexes import Complex, as_complex, conjugate, from_pairs, scaled
from .registry import (
    CONVERTERS,
    Converter,
    Rows,
    as_float,
    as_ints,
    as_number,
    axes_of,
    torch_op,
    torch_ops,
)


def _transform(z: Complex, axis: int, inverse: bool, norm: Any) -> Complex:
    """The transform along an axis; ``norm`` is torch's name for where to divide."""
    rank = len(infer_shape(z.real))
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = z.map(lambda part: _op.transpose(part, order))
    found = Complex(*[dft(moved.real, moved.imag, inverse)[i] for i in range(2)])
    back = np.argsort(order).tolist()
    found = found.map(lambda part: _op.transpose(part, back))
    return scaled(found, _factor(infer_shape(z.real)[axis], inverse, norm))


def _factor(extent: int, inverse: bool, norm: Any) -> float:
    """What is missing: the inverse transform divides by the extent already."""
    power = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}[norm]
    return float(extent**power if inverse else extent**-power)


def _fitted(x: RelayExpr, axis: int, extent: int) -> RelayExpr:
    """Cut, or filled with zeros."""
    have = infer_shape(x)[axis]
    if have > extent:
        return _op.strided_slice(x, [0], [extent], [1], [axis])
    width = [(0, 0)] * len(infer_shape(x))
    width[axis] = (0, extent - have)
    return _op.nn.pad(x, width) if extent > have else x


def _axis(x: Any, dim: Any) -> int:
    return int(as_number(dim)) % len(infer_shape(as_complex(x).real))


def _extent(x: Any, axis: int, wanted: Any) -> int:
    return int(infer_shape(as_complex(x).real)[axis]) if wanted is None else int(as_number(wanted))


def _whole(x: Any, extent: Any, dim: Any, norm: Any, inverse: bool) -> Complex:
    axis = _axis(x, dim)
    count = _extent(x, axis, extent)
    z = as_complex(x).map(lambda part: _fitted(part, axis, count))
    return _transform(z, axis, inverse, norm)


def _fft(x: Any, n: Any = None, dim: Any = -1, norm: Any = None) -> Complex:
    return _whole(x, n, dim, norm, False)


def _ifft(x: Any, n: Any = None, dim: Any = -1, norm: Any = None) -> Complex:
    return _whole(x, n, dim, norm, True)


def _half(z: Complex, axis: int) -> Complex:
    """What the other half mirrors."""
    count = infer_shape(z.real)[axis] // 2 + 1
    return z.map(lambda part: _op.strided_slice(part, [0], [count], [1], [axis]))


def _rfft(x: RelayExpr, n: Any = None, dim: Any = -1, norm: Any = None) -> Complex:
    return _half(_fft(x, n, dim, norm), _axis(x, dim))


def _ihfft(x: RelayExpr, n: Any = None, dim: Any = -1, norm: Any = None) -> Complex:
    return _half(_ifft(x, n, dim, norm), _axis(x, dim))


def _mirrored(x: Any, n: Any, axis: int) -> Complex:
    """The whole of what has conjugate halves; ``n`` elements, an even number by default."""
    z = as_complex(x)
    count = 2 * (infer_shape(z.real)[axis] - 1) if n is None else int(as_number(n))
    half = z.map(lambda part: _fitted(part, axis, count // 2 + 1))
    index = constant(np.arange((count - 1) // 2, 0, -1), "int64")
    rest = conjugate(half.map(lambda part: _op.take(part, index, axis)))
    if count < 3:
        return half.map(lambda part: _fitted(part, axis, count))
    return Complex(*[
        _op.concatenate([a, b], axis) for a, b in zip(half.parts, rest.parts, strict=True)
    ])  # fmt: skip


def _real(inverse: bool) -> Converter:
    """The real signal of a spectrum with conjugate halves, or the spectrum of such a signal."""

    def convert(x: Any, n: Any = None, dim: Any = -1, norm: Any = None) -> RelayExpr:
        axis = _axis(x, dim)
        return _transform(_mirrored(x, n, axis), axis, inverse, norm).real

    return convert


_irfft, _hfft = _real(inverse=True), _real(inverse=False)
_ONE_AXIS: Rows = {
    "fft_fft": _fft, "fft_ifft": _ifft, "fft_rfft": _rfft, "fft_ihfft": _ihfft,
    "fft_irfft": _irfft, "fft_hfft": _hfft,
}  # fmt: skip
torch_ops(_ONE_AXIS)


# ---- several axes


def _axes(x: Any, sizes: Any, dims: Any) -> tuple[list[int], list[Any]]:
    """Axes, and how long to make each; None leaves it."""
    rank = len(infer_shape(as_complex(x).real))
    wanted = None if sizes is None else as_ints(sizes)
    if dims is None:
        axes = list(range(0 if wanted is None else rank - len(wanted), rank))
    else:
        axes = axes_of(dims, rank)
    return axes, [None if n == -1 else n for n in wanted or [-1] * len(axes)]


def _each(x: Any, axes: Sequence[int], sizes: Sequence[Any], norm: Any, inverse: bool) -> Any:
    for axis, size in zip(axes, sizes, strict=True):
        x = _whole(x, size, axis, norm, inverse)
    return x


def _all_axes(inverse: bool, default: Any) -> Converter:
    return lambda x, s=None, dim=default, norm=None: _each(
        as_complex(x), *_axes(x, s, dim), norm, inverse
    )


def _last_first(last: Converter, inverse: bool, default: Any) -> Converter:
    """A half transform of the last axis, then whole ones of the others."""

    def convert(x: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        axes, sizes = _axes(x, s, dim)
        return _each(last(x, sizes[-1], axes[-1], norm), axes[:-1], sizes[:-1], norm, inverse)

    return convert


def _last_behind(last: Converter, inverse: bool, default: Any) -> Converter:
    def convert(x: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        axes, sizes = _axes(x, s, dim)
        rest = _each(as_complex(x), axes[:-1], sizes[:-1], norm, inverse)
        return last(rest, sizes[-1], axes[-1], norm)

    return convert


for _suffix, _default in (("2", (-2, -1)), ("n", None)):
    torch_ops({
        f"fft_fft{_suffix}": _all_axes(False, _default),
        f"fft_ifft{_suffix}": _all_axes(True, _default),
        f"fft_rfft{_suffix}": _last_first(_rfft, False, _default),
        f"fft_ihfft{_suffix}": _last_first(_ihfft, True, _default),
        f"fft_irfft{_suffix}": _last_behind(_irfft, True, _default),
        f"fft_hfft{_suffix}": _last_behind(_hfft, False, _default),
    })  # fmt: skip


# ---- what torch's functions come down to; the numbers name what to divide by

_NORMS = {False: (None, "ortho", "forward"), True: ("forward", "ortho", None)}


@torch_op("_fft_r2c")
def _fft_r2c(x: RelayExpr, dims: Any, norm: int, onesided: bool) -> Complex:
    axes, name = as_ints(dims), _NORMS[False][norm]
    z = _each(as_complex(x), axes, [None] * len(axes), name, False)
    return _half(z, _axis(x, axes[-1])) if onesided else z


@torch_op("_fft_c2c")
def _fft_c2c(x: Any, dims: Any, norm: int, forward: bool) -> Complex:
    axes = as_ints(dims)
    name = _NORMS[not forward][norm]
    return _each(as_complex(x), axes, [None] * len(axes), name, not forward)


@torch_op("_fft_c2r")
def _fft_c2r(x: Any, dims: Any, norm: int, last: Any) -> RelayExpr:
    axes, name = as_ints(dims), _NORMS[True][norm]
    rest = _each(as_complex(x), axes[:-1], [None] * (len(axes) - 1), name, True)
    return _irfft(rest, last, axes[-1], name)


def _shift(x: RelayExpr, dims: Any, back: bool) -> RelayExpr:
    shape = infer_shape(x)
    axes = axes_of(dims, len(shape))
    steps = [(shape[axis] + back) // 2 for axis in axes]
    return CONVERTERS["aten::roll"](x, steps, axes)


_SHIFTS: Rows = {
    "fft_fftshift": lambda x, dims=None: _shift(x, dims, False),
    "fft_ifftshift": lambda x, dims=None: _shift(x, dims, True),
}
torch_ops(_SHIFTS)


# ---- windows that slide along signals


def _window(window: Any, length: int, n_fft: int, dtype: str) -> RelayExpr:
    """The window in the middle of a frame."""
    given = constant(np.ones(length), dtype) if window is None else as_float(window)
    before = (n_fft - length) // 2
    return _op.nn.pad(given, [(before, n_fft - length - before)]) if length < n_fft else given


@torch_op("stft")
def _stft(
    x: RelayExpr, n_fft: Any, hop: Any = None, length: Any = None, window: Any = None,
    normalized: Any = False, onesided: Any = None, as_complex_tensor: Any = None, *_: Any,
) -> Any:  # fmt: skip
    if isinstance(x, Complex) or isinstance(window, Complex):
        raise OpAttributeUnImplemented("stft requires a real signal and window")
    size = int(as_number(n_fft))
    step = size // 4 if hop is None else int(as_number(hop))
    width = size if length is None else int(as_number(length))
    found = sliding_transform(
        x, size, step, size, _window(window, width, size, infer_dtype(x)), bool(normalized),
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
    size = int(as_number(n_fft))
    step = size // 4 if hop is None else int(as_number(hop))
    width = size if length is None else int(as_number(length))
    *batch, _, frames = infer_shape(spectrum.real)
    norm = "ortho" if normalized else None
    if onesided is None or onesided:
        rows = _irfft(spectrum, size, -2, norm)
    else:
        rows = _ifft(spectrum, size, -2, norm).real
    weights = _window(window, width, size, infer_dtype(rows))
    rank = len(batch)
    rows = _op.transpose(rows, [*range(rank), rank + 1, rank]) * weights
    whole = size + step * (frames - 1)
    count = math.prod(batch)
    signal = _overlapped(_op.reshape(rows, (count, frames * size)), frames, size, step, whole)
    squares = _op.broadcast_to(weights * weights, (1, frames, size))
    envelope = _overlapped(_op.reshape(squares, (1, frames * size)), frames, size, step, whole)
    first = size // 2 if center else 0
    last = whole - first if total is None else min(first + int(as_number(total)), whole)
    kept = _op.strided_slice(signal / envelope, [first], [last], [1], [1])
    if total is not None:
        kept = _fitted(kept, 1, int(as_number(total)))
    return _op.reshape(kept, (*batch, infer_shape(kept)[1]))


def _overlapped(rows: RelayExpr, frames: int, size: int, step: int, whole: int) -> RelayExpr:
    """Frames at their places, added up."""
    places = (np.arange(frames)[:, None] * step + np.arange(size)).reshape(1, -1)
    count = infer_shape(rows)[0]
    zeros = constant(np.zeros((count, whole)), infer_dtype(rows))
    index = constant(np.repeat(places, count, 0), "int64")
    return _op.scatter_elements(zeros, index, rows, 1, "add")
