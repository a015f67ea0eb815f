"""Conversions of float16 for processors without instructions for them.

LLVM calls ``__extendhfsf2``, ``__truncsfhf2`` and ``__truncdfhf2`` there, which older compilers' libraries
lack. The module brings them: weak and hidden, so that a library of the system does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.target import CpuInfo

_EXTEND = """\
define weak hidden float @__extendhfsf2(half %x) nounwind {
  %short = bitcast half %x to i16
  %raw = zext i16 %short to i32
  %magnitude = and i32 %raw, 32767
  %placed = shl i32 %magnitude, 13
  %small = bitcast i32 %placed to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %special = or i32 %placed, 2139095040
  %is_special = icmp uge i32 %magnitude, 31744
  %size = select i1 %is_special, i32 %special, i32 %finite
  %sign_bit = and i32 %raw, 32768
  %sign = shl i32 %sign_bit, 16
  %bits = or i32 %size, %sign
  %result = bitcast i32 %bits to float
  ret float %result
}
"""
# Round on bit patterns; for results among the denormals, by adding a number whose last place is theirs.
_TRUNCATE = """\
define weak hidden half @{name}({float} %x) nounwind {{
  %raw = bitcast {float} %x to {int}
  %magnitude = and {int} %raw, {all_but_sign}
  %lowest = lshr {int} %magnitude, {drop}
  %odd = and {int} %lowest, 1
  %up = add {int} %magnitude, {below_half}
  %carried = add {int} %up, %odd
  %rounded = lshr {int} %carried, {drop}
  %normal = sub {int} %rounded, {rebase}
  %size = bitcast {int} %magnitude to {float}
  %total = fadd {float} %size, {adder}
  %total_bits = bitcast {float} %total to {int}
  %denormal = sub {int} %total_bits, {adder_bits}
  %is_small = icmp ult {int} %magnitude, {smallest}
  %kept = select i1 %is_small, {int} %denormal, {int} %normal
  %is_large = icmp uge {int} %magnitude, {too_large}
  %bounded = select i1 %is_large, {int} 31744, {int} %kept
  %is_nan = icmp ugt {int} %magnitude, {infinity}
  %chosen = select i1 %is_nan, {int} 32256, {int} %bounded
  %sign_bit = lshr {int} %raw, {sign_shift}
  %sign = and {int} %sign_bit, 32768
  %whole = or {int} %chosen, %sign
  %short = trunc {int} %whole to i16
  %result = bitcast i16 %short to half
  ret half %result
}}
"""


def half_conversions(cpu: CpuInfo, definitions: Sequence[str]) -> str:
    """Definitions of the conversions that these functions need and the processor cannot do itself."""
    if not any(["half" in text for text in definitions]):
        return ""
    if not cpu.arch.startswith(("x86_64", "riscv")):
        return ""  # an instruction, or a function that comes with the platform's compiler
    features, parts = cpu.features, []
    if not {"f16c", "zfh", "zfhmin"} & features:
        parts += [_EXTEND, _truncation("__truncsfhf2", "float", 32, 23)]
    if "avx512fp16" not in features and any(["double" in text for text in definitions]):
        parts.append(_truncation("__truncdfhf2", "double", 64, 52))
    return "".join(parts)


def _truncation(name: str, kind: str, bits: int, mantissa: int) -> str:
    bias = (1 << (bits - mantissa - 2)) - 1
    drop = mantissa - 10
    # 2**-24 is the unit of denormal halves
    exponent = mantissa - 24
    return _TRUNCATE.format(
        name=name,
        float=kind,
        int=f"i{bits}",
        all_but_sign=(1 << (bits - 1)) - 1,
        drop=drop,
        below_half=(1 << (drop - 1)) - 1,
        rebase=(bias - 15) << 10,
        adder=f"0x{(1023 + exponent) << 52:016X}",  # LLVM writes floats as doubles
        adder_bits=(bias + exponent) << mantissa,
        smallest=(bias - 14) << mantissa,
        too_large=(bias + 16) << mantissa,
        infinity=(2 * bias + 1) << mantissa,
        sign_shift=bits - 16,
    )
