"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import TupleWrapper

from .attributes import as_int
from .creation import ones
from .registry import OpPattern, Precision, define_op, ops
from .types import (
    apply,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    shape_of_type,
    tensor,
)


class DFTAttrs(Attrs, key="relay.attrs.DFTAttrs"):
    """The direction."""

    inverse: bool = False


class STFTAttrs(Attrs, key="relay.attrs.STFTAttrs"):
    """The window's extent and step, and the form of the result."""

    n_fft: int
    hop_length: int
    win_length: int
    normalized: bool = False
    onesided: bool = True


_DTYPES = ("float32", "float64")


def _dft_type(attrs: DFTAttrs, arg_types: Sequence[Type]) -> Type:
    real = expect_tensor(arg_types[0], "dft", "re_data")
    imaginary = expect_tensor(arg_types[1], "dft", "im_data")
    expect_same_dtype((real, imaginary), "dft")
    expect(real.dtype in _DTYPES, f"dft requires float32 or float64, got {real.dtype}")
    expect(len(real.shape) == len(imaginary.shape) > 0, "dft requires two tensors of one rank")
    for a, b in zip(shape_of_type(imaginary), shape_of_type(real), strict=True):
        expect_dim(a, b, "dft", "a dimension of im_data")
    return TupleType((real, real))


def _stft_type(attrs: STFTAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "stft")
    window = expect_tensor(arg_types[1], "stft", "window", 1)
    shape = shape_of_type(data)
    expect(len(shape) in (1, 2), f"stft requires data of rank 1 or 2, got {data}")
    expect(data.dtype in _DTYPES, f"stft requires float32 or float64, got {data.dtype}")
    expect(attrs.hop_length > 0, f"stft requires a positive hop_length, got {attrs.hop_length}")
    expect(
        0 < attrs.win_length <= attrs.n_fft,
        f"stft requires a win_length of 1 to {attrs.n_fft}, got {attrs.win_length}",
    )
    factors = shape_of_type(window)[0]
    expect(
        factors in (attrs.win_length, attrs.n_fft),
        f"stft requires a window of {attrs.win_length} elements, got {factors}",
    )
    expect(
        not isinstance(shape[-1], int) or shape[-1] >= attrs.n_fft,
        f"stft requires data of at least n_fft = {attrs.n_fft} elements, got {shape[-1]}",
    )
    frequencies = attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft
    frames = apply(lambda n: (n - attrs.n_fft) // attrs.hop_length + 1, shape[-1])
    return tensor((*shape[:-1], frequencies, frames, 2), data.dtype)


def _fold_dft(attrs: DFTAttrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    function = np.fft.ifft if attrs.inverse else np.fft.fft
    found = function(arrays[0] + 1j * arrays[1], axis=-1)
    return [part.astype(arrays[0].dtype) for part in (found.real, found.imag)]


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


_SCHEDULES = {"generic": _schedule, "cpu": _schedule}

define_op(
    "dft",
    DFTAttrs,
    inputs=("re_data", "im_data"),
    infer_type=_dft_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: topi.dft(*inputs, attrs.inverse),
    schedules=_SCHEDULES,
    fold=_fold_dft,
    precision=Precision.KEEP_FLOAT32,
)
define_op(
    "stft",
    STFTAttrs,
    inputs=("data", "window"),
    infer_type=_stft_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [
        topi.stft(
            inputs[0], attrs.n_fft, attrs.hop_length, attrs.win_length, inputs[1],
            attrs.normalized, attrs.onesided, out_type.shape,
        )
    ],
    schedules=_SCHEDULES,
    precision=Precision.KEEP_FLOAT32,
)  # fmt: skip


def dft(re_data: RelayExpr, im_data: RelayExpr, inverse: bool = False) -> TupleWrapper:
    """The discrete Fourier transform along the last axis.

    Parameters
    ----------
    re_data, im_data : relay.Expr
        The real and the imaginary part.
    inverse : bool
        Transform back.

    Returns
    -------
    tuple of relay.Expr
        The real and the imaginary part of the result.
    """
    return TupleWrapper(ops.dft(re_data, im_data, inverse=bool(inverse)), 2)


def stft(
    data: RelayExpr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: RelayExpr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> RelayExpr:
    """Fourier transforms of a window that slides along a signal.

    Parameters
    ----------
    data : relay.Expr
        (length,) or (batch, length).
    n_fft : int
        The window's extent.
    hop_length : int, optional
        The window's step, by default a quarter of its extent.
    win_length : int, optional
        The extent of the part that counts, in the window's middle.
    window : relay.Expr, optional
        A factor for each element, `win_length` or `n_fft` of them; ones by default.
    normalized : bool
        Divide by the root of `n_fft`.
    onesided : bool
        Give the first half of the frequencies only; the others are their conjugates.

    Returns
    -------
    relay.Expr
        (batch, frequencies, frames, 2), without the batch for a single signal.
    """
    size = as_int(n_fft)
    part = size if win_length is None else as_int(win_length)
    return ops.stft(
        data, ones((part,), "int32") if window is None else window, n_fft=size,
        hop_length=size // 4 if hop_length is None else as_int(hop_length), win_length=part,
        normalized=bool(normalized), onesided=bool(onesided),
    )  # fmt: skip
