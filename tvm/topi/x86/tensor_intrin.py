"""Dot-product instructions under their classic names."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.target import Target

from ..cpu.common import processor
from .dot_product import BYTE_PAIRS, VNNI, DotProduct, byte_pairs, dot_product_intrin

_WORDS = 32  # sums of int16 in a register
_REGISTERS = 4  # of sums in one step


def dot_16x1x16_uint8_int8_int32() -> te.tensor_intrin.TensorIntrin:
    """16 sums of 4 products of uint8 data and int8 weights, by the target's instruction."""
    if processor(Target.current(allow_none=True)).has_vnni:
        return dot_16x1x16_uint8_int8_int32_cascadelake()
    return dot_16x1x16_uint8_int8_int32_skylake()


def dot_16x1x16_uint8_int8_int32_cascadelake() -> te.tensor_intrin.TensorIntrin:
    """16 sums of 4 products of uint8 data and int8 weights, by AVX512_VNNI's instruction."""
    return dot_product_intrin(
        DotProduct("uint8", "int8", "int32", 4, 16, f"{VNNI}512"), scope="global"
    )


def dot_16x1x16_uint8_int8_int32_skylake() -> te.tensor_intrin.TensorIntrin:
    """16 sums of 4 products of uint8 data and int8 weights, by two instructions of AVX512BW.

    The sum of two products is held within int16, so large numbers lose their excess.
    """
    return dot_product_intrin(byte_pairs(16), scope="global")


def dot_16x1x16_uint8_int8_int16() -> te.tensor_intrin.TensorIntrin:
    """128 sums of 2 products of uint8 data and int8 weights in int16, by AVX512BW's instruction.

    The sum of two products is held within int16.
    """
    lanes = _REGISTERS * _WORDS
    data = te.placeholder((2,), dtype="uint8", name="data")
    weight = te.placeholder((lanes, 2), dtype="int8", name="weight")
    k = te.reduce_axis((0, 2), name="k")
    sums = te.compute(
        (lanes,),
        lambda i: te.sum(data[k].astype("int16") * weight[i, k].astype("int16"), axis=k),
        name="sums",
    )
    buffers = {
        tensor: tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name, offset_factor=1, strides=strides)
        for tensor, strides in ((data, [1]), (weight, [2, 1]), (sums, [1]))
    }  # fmt: skip
    return te.decl_tensor_intrin(sums.op, _word_sums, "dot_product", buffers)


def _word_sums(
    ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]
) -> tuple[tir.Stmt, tir.Stmt, tir.Stmt]:
    vector, factors = f"int16x{_WORDS}", f"int8x{2 * _WORDS}"

    def statement(is_product: bool, is_update: bool) -> tir.Stmt:
        ib = tir.ir_builder.create()
        word = tir.reinterpret("int16", ins[0].vload([0], "uint8x2"))
        x = tir.reinterpret(f"u{factors}", tir.Broadcast(word, _WORDS))
        for first in range(0, _REGISTERS * _WORDS, _WORDS):
            found = tir.const(0, vector)
            if is_product:
                w = ins[1].vload([first, 0], factors)
                found = tir.call_llvm_pure_intrin(
                    vector, BYTE_PAIRS[16], tir.const(2, "uint32"), x, w
                )
            if is_update:
                found = outs[0].vload([first], vector) + found
            ib.emit(outs[0].vstore([first], found))
        return ib.get()

    return statement(True, False), statement(False, False), statement(True, True)
