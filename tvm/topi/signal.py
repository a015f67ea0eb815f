"""Discrete Fourier transforms, of rows and of windows that slide along a signal."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .loops import load
from .utils import cast_scalar, dims, prod, unravel_index


def dft(re_data: te.Tensor, im_data: te.Tensor, inverse: Any) -> list[te.Tensor]:
    """The discrete Fourier transform along the last axis.

    Parameters
    ----------
    re_data, im_data : te.Tensor
        The real and the imaginary part.
    inverse : bool
        Transform back.

    Returns
    -------
    list of te.Tensor
        The real and the imaginary part of the result.
    """
    shape = dims(re_data.shape)
    length, rows, dtype = shape[-1], prod(shape[:-1]), re_data.dtype
    is_inverse = bool(inverse)
    count = cast_scalar(_at_least_one(length), dtype)
    scale = tir.const(1, dtype) / count if is_inverse else tir.const(1, dtype)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        table = _Roots(ib, length, dtype, is_inverse)
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            at = unravel_index(row, shape[:-1])
            work = _workspace(ib, length, dtype)
            with ib.for_range(0, length, "i") as i:
                for part in range(2):
                    work[0][part][i] = load(ins[part], [*at, i])
            real, imaginary = _transformed(ib, work, table, length)
            out_re, out_im = [ib.buffer_ptr(x) for x in outs]
            with ib.for_range(0, length, "i") as i:
                position = (*at, i)
                out_re[position], out_im[position] = real[i] * scale, imaginary[i] * scale
        return ib.get()

    return list(
        te.extern([shape, shape], [re_data, im_data], body, dtype=[dtype, dtype], name="dft")
    )


def stft(
    data: te.Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: te.Tensor,
    normalized: Any,
    onesided: Any,
    output_shape: Sequence[Any],
) -> te.Tensor:
    """Fourier transforms of a window that slides along a signal.

    Parameters
    ----------
    data : te.Tensor
        (length,) or (batch, length).
    n_fft : int
        The window's extent.
    hop_length : int
        The window's step.
    win_length : int
        The extent of the part that counts, in the window's middle.
    window : te.Tensor
        A factor for each element, `win_length` or `n_fft` of them.
    normalized : bool
        Divide by the root of `n_fft`.
    onesided : bool
        Give the first half of the frequencies only; the others are their conjugates.
    output_shape : sequence of int
        (batch, frequencies, frames, 2), without the batch for a single signal.
    """
    shape = dims(output_shape)
    frames, dtype = shape[-2], data.dtype
    batch = 1 if len(shape) == 3 else shape[0]
    factors = int(dims(window.shape)[0])
    before = (n_fft - factors) // 2
    scale = tir.const(1.0 / sqrt(n_fft) if normalized else 1.0, dtype)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        table = _Roots(ib, n_fft, dtype, is_inverse=False)
        with ib.for_range(0, batch * frames, "frame", kind="parallel") as frame:
            row, column = tir.indexdiv(frame, frames), tir.indexmod(frame, frames)
            lead = [row] if len(shape) == 4 else []
            work = _workspace(ib, n_fft, dtype)
            real, imaginary = work[0]
            with ib.for_range(0, n_fft, "i") as i:
                inside = tir.all(i >= before, i < before + factors)
                weight = tir.if_then_else(
                    inside, load(ins[1], [i - before]).astype(dtype), tir.const(0, dtype)
                )
                real[i] = load(ins[0], [*lead, column * hop_length + i]) * weight
                imaginary[i] = tir.const(0, dtype)
            found = _transformed(ib, work, table, n_fft)
            out = ib.buffer_ptr(outs[0])
            with ib.for_range(0, shape[-3], "f") as f:
                for part in range(2):
                    position = (*lead, f, column, part)
                    out[position] = found[part][f] * scale
        return ib.get()

    return te.extern([shape], [data, window], body, dtype=dtype, name="stft")


class _Roots:
    """The roots of unity of one order, once for all rows."""

    def __init__(self, ib: IRBuilder, order: Any, dtype: str, is_inverse: bool) -> None:
        self.order, self.dtype = order, dtype
        count = _at_least_one(order)
        self.real = ib.allocate(dtype, count, "root_re")
        self.imaginary = ib.allocate(dtype, count, "root_im")
        whole = tir.const(2 * pi if is_inverse else -2 * pi, "float64")
        part = whole / cast_scalar(count, "float64")
        with ib.for_range(0, order, "k") as k:
            angle = k.astype("float64") * part
            self.real[k] = tir.cos(angle).astype(dtype)
            self.imaginary[k] = tir.sin(angle).astype(dtype)

    def power(self, exponent: PrimExpr) -> PrimExpr:
        """The position of a power in the table."""
        return tir.indexmod(exponent, self.order)


def _at_least_one(extent: Any) -> Any:
    return max(extent, 1) if isinstance(extent, int) else tir.max(extent, 1)


def _workspace(ib: IRBuilder, length: Any, dtype: str) -> list[tuple[BufferVar, BufferVar]]:
    """Two complex rows."""
    count = _at_least_one(length)
    return [
        (ib.allocate(dtype, count, f"re{i}"), ib.allocate(dtype, count, f"im{i}")) for i in range(2)
    ]


def _transformed(
    ib: IRBuilder, work: list[tuple[BufferVar, BufferVar]], roots: _Roots, length: Any
) -> tuple[BufferVar, BufferVar]:
    """Stockham's transform of the first row, one pass for each prime factor; gives the result's row.

    A length that only the run knows counts as prime.

    out[s, r*q + j] = sum over l of in[s, q + m*l] * root**(j*l * length/r + q*j * length/n)
    """
    source, target = work
    n, step = length, 1
    for radix in _prime_factors(length) if isinstance(length, int) else [length]:
        m = _quotient(n, radix)
        with ib.for_range(0, m, "q") as q, ib.for_range(0, radix, "j") as j:
            turn = ib.let("turn", q * j * _quotient(length, n))
            with ib.for_range(0, step, "s") as s:
                position = s + step * (radix * q + j)
                target[0][position] = tir.const(0, roots.dtype)
                target[1][position] = tir.const(0, roots.dtype)
            with ib.for_range(0, radix, "l") as part:
                at = ib.let("at", roots.power(j * part * _quotient(length, radix) + turn))
                real, imaginary = ib.let("wr", roots.real[at]), ib.let("wi", roots.imaginary[at])
                with ib.for_range(0, step, "s") as s:
                    position, origin = s + step * (radix * q + j), s + step * (q + m * part)
                    x, y = source[0][origin], source[1][origin]
                    target[0][position] = target[0][position] + (x * real - y * imaginary)
                    target[1][position] = target[1][position] + (x * imaginary + y * real)
        source, target = target, source
        n, step = m, step * radix
    return source


def _quotient(whole: Any, part: Any) -> Any:
    return 1 if whole is part else whole // part


def _prime_factors(number: int) -> list[int]:
    """Fours first, then primes."""
    found = []
    for divisor in (4, 2, *range(3, number + 1, 2)):
        while number > 1 and number % divisor == 0:
            found.append(divisor)
            number //= divisor
    return found
