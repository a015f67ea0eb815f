"""Dot-product instructions under their classic names."""

from __future__ import annotations

from tvm import te

from .dot_product import VNNI, DotProduct, dot_product_intrin


def dot_16x1x16_uint8_int8_int32() -> te.tensor_intrin.TensorIntrin:
    """16 sums of 4 products of uint8 data and int8 weights, by the target's instruction."""
    return dot_16x1x16_uint8_int8_int32_cascadelake()


def dot_16x1x16_uint8_int8_int32_cascadelake() -> te.tensor_intrin.TensorIntrin:
    """16 sums of 4 products of uint8 data and int8 weights, by AVX512_VNNI's instruction."""
    return dot_product_intrin(
        DotProduct("uint8", "int8", "int32", 4, 16, f"{VNNI}512"), scope="global"
    )
