"""Instructions that add the products of several narrow numbers to a wide sum.

    for lane in range(16):                       ->    sums = vpdpbusd(sums, broadcast(x), w)
        for k in range(4):
            sums[lane] += int32(x[k]) * int32(w[lane, k])

A vector of weights holds the group of every lane side by side; the group of the data is one word,
repeated in all lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import te, tir
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ..cpu.common import processor
from ..utils import dims

VNNI = "llvm.x86.avx512.vpdpbusd."
BF16 = "llvm.x86.avx512bf16.dpbf16ps."
VNNI_PAIRS = "llvm.x86.avx512.vpdpwssd."
# products of pairs, to be added by another instruction: those of processors without VNNI
PAIRS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}
# sums of two products of bytes, held within int16, that PAIRS then adds by twos
BYTE_PAIRS = {
    16: "llvm.x86.avx512.pmaddubs.w.512",
    8: "llvm.x86.avx2.pmadd.ub.sw",
    4: "llvm.x86.ssse3.pmadd.ub.sw.128",
}
_BYTE_PAIRS_OF = {16: "avx512bw", 8: "avx2", 4: "ssse3"}
_SMALL = ("int8", "uint8", "int16")  # what int16 holds exactly


@dataclass(frozen=True, slots=True)
class DotProduct:
    """One instruction: `lanes` sums, and `group` products added to each."""

    data: str
    weight: str
    sums: str
    group: int
    lanes: int
    name: str  # LLVM's
    adds: bool = True  # to the sums, by itself
    pairs: str = ""  # the instruction that adds products of bytes by pairs first, held within int16


def find_dot_product(
    data: str, weight: str, columns: int, target: Target | None = None
) -> DotProduct | None:
    """The target's widest instruction for factors of these dtypes whose lanes divide a number."""
    target = target or Target.current(allow_none=True)
    # other code generators have no instructions by name
    if target is not None and target.kind.name != "llvm":
        return None
    info = processor(target)
    if info.arch != "x86_64" or info.vector_bits not in (256, 512):
        return None
    if (data, weight) == ("int16", "int16"):
        return _pair_product(columns, info)
    most = info.vector_bits // 32
    lanes = next((n for n in (16, 8, 4) if n <= most and columns % n == 0), 0)
    if lanes and (data, weight) == ("uint8", "int8") and info.has_vnni:
        return DotProduct(data, weight, "int32", 4, lanes, f"{VNNI}{32 * lanes}")
    if lanes and (data, weight) == ("bfloat16", "bfloat16") and info.has_bf16:
        return DotProduct(data, weight, "float32", 2, lanes, f"{BF16}{32 * lanes}")
    return None


def _pair_product(columns: int, info: CpuInfo) -> DotProduct | None:
    """Pairs of int16: exact for 8-bit numbers of any sign, unlike the saturating pairs of bytes."""
    features = info.features
    widest = 16 if "avx512bw" in features and info.vector_bits == 512 else 8
    if "avx2" not in features:
        return None
    lanes = next((n for n in (16, 8, 4) if n <= widest and columns % n == 0), 0)
    if not lanes:
        return None
    has_vnni = "avxvnni" in features if lanes < 16 else False
    if has_vnni or "avx512vnni" in features:
        return DotProduct("int16", "int16", "int32", 2, lanes, f"{VNNI_PAIRS}{32 * lanes}")
    return DotProduct("int16", "int16", "int32", 2, lanes, PAIRS[lanes], adds=False)


def find_byte_pairs(columns: int, target: Target | None = None) -> DotProduct | None:
    """Pairs of uint8 and int8, where the target has nothing better.

    Sums of two products are held within int16: exact only if the absolute values of neighbouring
    weights add up to 128 at most, which their constants tell.
    """
    target = target or Target.current(allow_none=True)
    info = processor(target)
    is_llvm = target is None or target.kind.name == "llvm"
    if not is_llvm or info.arch != "x86_64" or info.has_vnni:
        return None
    fitting = (
        lanes
        for lanes, feature in _BYTE_PAIRS_OF.items()
        if lanes * 32 <= info.vector_bits and feature in info.features and columns % lanes == 0
    )
    lanes = next(fitting, 0)
    if not lanes:
        return None
    return byte_pairs(lanes)


def byte_pairs(lanes: int) -> DotProduct:
    """Two instructions for sums of 4 products of uint8 and int8, two of which are held in int16."""
    names = {"name": PAIRS[lanes], "pairs": BYTE_PAIRS[lanes]}
    return DotProduct("uint8", "int8", "int32", 4, lanes, adds=False, **names)


def dot_dtypes(
    data: str, weight: str, sums: str, target: Target | None = None
) -> tuple[str, str] | None:
    """The dtypes in which the target has dot products of factors: their own, or int16 for both."""
    if find_dot_product(data, weight, 16, target) is not None:
        return data, weight
    fits = data in _SMALL and weight in _SMALL and sums == "int32"
    has_pairs = fits and find_dot_product("int16", "int16", 16, target) is not None
    return ("int16", "int16") if has_pairs else None


def instruction_of(product: te.tensor.Operation) -> DotProduct | None:
    """The instruction for a product whose weight ends in lanes and groups, if there is one."""
    data, weight = product.input_tensors
    *_, block, group = dims(weight.shape)
    if product.attrs.get("has_small_weights"):
        dot = find_byte_pairs(block)
    else:
        dot = find_dot_product(data.dtype, weight.dtype, block)
    if dot is None or dot.group != group:
        return None
    return dot if dot.sums == product.output(0).dtype else None


def dot_product_intrin(dot: DotProduct, scope: str = "local") -> te.tensor_intrin.TensorIntrin:
    """The instruction as what a loop over lanes and groups becomes.

    Parameters
    ----------
    dot : DotProduct
        The instruction.
    scope : str
        Where the sums are.
    """
    data = te.placeholder((dot.group,), dtype=dot.data, name="data")
    weight = te.placeholder((dot.lanes, dot.group), dtype=dot.weight, name="weight")
    k = te.reduce_axis((0, dot.group), name="k")
    sums = te.compute(
        (dot.lanes,),
        lambda i: te.sum(data[k].astype(dot.sums) * weight[i, k].astype(dot.sums), axis=k),
        name="sums",
    )
    declare: Callable[..., tir.Buffer] = partial(tir.decl_buffer, offset_factor=1)
    buffers = {
        data: declare(data.shape, dot.data, "data", strides=[1]),
        weight: declare(weight.shape, dot.weight, "weight", strides=[dot.group, 1]),
        sums: declare(sums.shape, dot.sums, "sums", strides=[1], scope=scope),
    }
    return te.decl_tensor_intrin(sums.op, partial(_statements, dot), "dot_product", buffers)


def _statements(
    dot: DotProduct, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]
) -> tuple[tir.Stmt, tir.Stmt, tir.Stmt]:
    out, vector = outs[0], f"{dot.sums}x{dot.lanes}"
    word = tir.reinterpret("int32", ins[0].vload([0], f"{dot.data}x{dot.group}"))
    factors = f"{dot.data}x{dot.lanes * dot.group}"
    x = tir.reinterpret(factors, tir.Broadcast(word, dot.lanes))
    w: tir.PrimExpr = ins[1].vload([0, 0], f"{dot.weight}x{dot.lanes * dot.group}")
    if dot.pairs:
        words = f"int16x{dot.lanes * dot.group // 2}"
        x = tir.call_llvm_pure_intrin(words, dot.pairs, tir.const(2, "uint32"), x, w)
        w = tir.const(1, words)
    zeros = tir.const(0, vector)

    def added(sums: tir.PrimExpr) -> tir.Stmt:
        if not dot.adds:
            pairs = tir.call_llvm_pure_intrin(vector, dot.name, tir.const(2, "uint32"), x, w)
            return out.vstore([0], sums + pairs)
        call = tir.call_llvm_pure_intrin(vector, dot.name, tir.const(3, "uint32"), sums, x, w)
        return out.vstore([0], call)

    return added(zeros), out.vstore([0], zeros), added(out.vload([0], vector))
