"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, TupleGetItem, TupleWrapper, const, fields_of

from .attributes import as_int
from .computes import computed_by
from .creation import ones
from .known_shapes import known_shape
from .operator import Expr, Operand, operator
from .registry import Precision, ops
from .schedules import EXTERN_SCHEDULES
from .types import Tensor1, apply, expect, expect_dim, expect_same_dtype, shape_of_type, tensor

_DTYPES = ("float32", "float64")


def _dft_type(attrs: Any, re_data: TensorType, im_data: TensorType) -> Type:
    expect_same_dtype((re_data, im_data), "dft")
    expect(re_data.dtype in _DTYPES, f"dft requires float32 or float64, got {re_data.dtype}")
    expect(len(re_data.shape) == len(im_data.shape) > 0, "dft requires two tensors of one rank")
    for a, b in zip(shape_of_type(im_data), shape_of_type(re_data), strict=True):
        expect_dim(a, b, "dft", "a dimension of im_data")
    return TupleType((re_data, re_data))


def _fold_dft(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    function = np.fft.ifft if attrs.inverse else np.fft.fft
    found = function(arrays[0] + 1j * arrays[1], axis=-1)
    return [part.astype(arrays[0].dtype) for part in (found.real, found.imag)]


def _dft_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The adjoint of a transform is the other one, but for the factor of the inverse."""
    count = known_shape(call.args[0], "dft")[-1]
    is_inverse = call.attrs.inverse
    back = Call(ops.dft, tuple(fields_of(grad, 2)), call.attrs.replace(inverse=not is_inverse))
    factor = const(1 / max(count, 1) if is_inverse else count, tensor_type_of(call.args[0]).dtype)
    return [ops.multiply(TupleGetItem(back, i), factor) for i in range(2)]


_COMMON: dict[str, Any] = {
    "schedules": EXTERN_SCHEDULES, "precision": Precision.KEEP_FLOAT32
}  # fmt: skip


@operator(
    "dft",
    "DFTAttrs",
    results=2,
    infer_type=_dft_type,
    compute=computed_by(topi.dft, "inverse"),
    fold=_fold_dft,
    gradient=_dft_gradient,
    **_COMMON,
)
def dft(re_data: Expr, im_data: Expr, inverse: bool = False) -> TupleWrapper:
    """The discrete Fourier transform along the last axis.

    Returns
    -------
    tuple of relay.Expr
        The real and the imaginary part of the result.
    """


class STFTAttrs(Attrs, key="relay.attrs.STFTAttrs"):
    """The window's extent and step, and the form of the result."""

    n_fft: int
    hop_length: int
    win_length: int
    normalized: bool = False
    onesided: bool = True


def _stft_type(attrs: Any, data: TensorType, window: Tensor1) -> Type:
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


@operator(
    "stft",
    STFTAttrs,
    infer_type=_stft_type,
    compute=lambda attrs, inputs, out_type: [
        topi.stft(
            inputs[0], attrs.n_fft, attrs.hop_length, attrs.win_length, inputs[1],
            attrs.normalized, attrs.onesided, out_type.shape,
        )
    ],
    **_COMMON,
)  # fmt: skip
def stft(
    data: Expr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Annotated[Any, Operand()] = None,
    normalized: bool = False,
    onesided: bool = True,
) -> RelayExpr | None:
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
    if None not in (hop_length, win_length) and window is not None:
        return None
    size = as_int(n_fft)
    step = size // 4 if hop_length is None else hop_length
    part = size if win_length is None else as_int(win_length)
    factors = ones((part,), "int32") if window is None else window
    found: RelayExpr = stft(data, size, step, part, factors, normalized, onesided)
    return found
