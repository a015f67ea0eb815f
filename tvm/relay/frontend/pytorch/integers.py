"""Arithmetic of integers: common divisors, and products that weights of 8 bits take part in."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, scalar_like

from .nn import matrix_product
from .registry import as_dtype, promoted, torch_op


@torch_op("gcd", "prims::gcd")
def _gcd(a: Any, b: Any) -> RelayExpr:
    """Euclid's algorithm, in the most steps that numbers of the type take: one a bit and a half."""
    left, right = [_op.abs(x) for x in promoted(a, b)]
    zero = scalar_like(0, left)
    bits = np.dtype(infer_dtype(left)).itemsize * 8
    # Fibonacci's numbers take the most: about 1.44 steps for each bit
    for _ in range(bits * 36 // 25 + 1):
        is_done = _op.equal(right, zero)
        rest = _op.mod(left, _op.where(is_done, scalar_like(1, left), right))
        left, right = _op.where(is_done, left, right), _op.where(is_done, zero, rest)
    return left


@torch_op("lcm")
def _lcm(a: Any, b: Any) -> RelayExpr:
    left, right = promoted(a, b)
    divisor = _gcd(left, right)
    is_zero = _op.equal(divisor, scalar_like(0, divisor))
    safe = _op.where(is_zero, scalar_like(1, divisor), divisor)
    return _op.abs(_op.divide(left, safe) * right)


@torch_op("_int_mm")
def _int_mm(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    return _op.nn.matmul(a, b, out_dtype="int32")


@torch_op("_weight_int8pack_mm")
def _weight_int8pack_mm(x: RelayExpr, weight: RelayExpr, scales: RelayExpr) -> RelayExpr:
    """Real numbers times weights of 8 bits, each row in steps of its own."""
    product = matrix_product(x, _op.transpose(as_dtype(weight, infer_dtype(x)), [1, 0]))
    return product * as_dtype(scales, infer_dtype(x))
