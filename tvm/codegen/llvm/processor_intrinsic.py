"""Calls of LLVM intrinsics by name or number, rejected before LLVM would end the process.

call_llvm_pure_intrin("float32x8", "llvm.x86.avx.rsqrt.ps.256", 1, x)
    ->    call <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float> %v1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.error import LoweringError
from tvm.target import CpuInfo
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tir.expr import Call, IntImm, StringImm

from .types import TYPES, quoted

if TYPE_CHECKING:
    from tvm.ir.expr import PrimExpr

    from .statements import FunctionWriter

# the first part of a name after "llvm.", where it stands for a processor, and architectures that have it
_ARCHITECTURES = {
    "x86": ("x86_64", "i386", "i486", "i586", "i686"),
    "aarch64": ("aarch64", "arm64"),
    "arm": ("arm", "thumb"),
    "riscv": ("riscv",),
    "wasm": ("wasm",),
    "hexagon": ("hexagon",),
    "ppc": ("ppc", "powerpc"),
    "mips": ("mips",),
    "s390": ("s390",),
    "nvvm": ("nvptx",),
    "amdgcn": ("amdgcn",),
    "r600": ("r600",),
}
# what the beginning of a name asks of the processor; the longest that fits counts
_FEATURES = {
    "llvm.x86.ssse3.": "ssse3",
    "llvm.x86.sse41.": "sse4.1",
    "llvm.x86.sse42.": "sse4.2",
    "llvm.x86.avx.": "avx",
    "llvm.x86.avx2.": "avx2",
    "llvm.x86.fma.": "fma",
    "llvm.x86.bmi.": "bmi",
    "llvm.x86.avx512.": "avx512f",
    "llvm.x86.avx512.vpdp": "avx512vnni avxvnni",  # either
    "llvm.x86.avx512bf16.": "avx512bf16",
    "llvm.x86.avx512fp16.": "avx512fp16",
    "llvm.aarch64.sve.": "sve",
    "llvm.aarch64.neon.sdot": "dotprod",
    "llvm.aarch64.neon.udot": "dotprod",
    "llvm.aarch64.neon.smmla": "i8mm",
    "llvm.aarch64.neon.ummla": "i8mm",
}
# factors of dot products: classic programs give words of several, bfloat16 is carried as i16
_ELEMENTS = {
    "llvm.x86.avx512.vpdpbusd": ("i8", 8),
    "llvm.x86.avx512.vpdpwssd": ("i16", 16),
    "llvm.x86.avx512bf16.dpbf16ps": ("bfloat", 16),
}


def llvm_intrinsic(w: FunctionWriter, call: Call) -> str:
    """The call as LLVM text; LLVM's parser appends the types to the name."""
    first, *rest = call.args
    name = first.value if isinstance(first, StringImm) else _name_of_number(first, call)
    check_intrinsic(name, w.module.options.cpu, call)
    # the classic form counts its signature arguments first
    if rest and isinstance(rest[0], IntImm) and rest[0].dtype == "uint32":
        if rest[0].value <= len(rest) - 1:
            rest = rest[1:]
    arguments = ", ".join([_argument(w, name, i, a) for i, a in enumerate(rest)])
    result = TYPES[call.dtype].text
    text = f"call {result} @{quoted(name)}({arguments})"
    if result == "void":
        w.code.do(text)
        return "0"
    return w.code.value(text)


def _argument(w: FunctionWriter, name: str, position: int, value: PrimExpr) -> str:
    """The value with its type, as the elements that this LLVM wants."""
    have, text = TYPES[value.dtype], w.visit(value)
    prefix = next((p for p in _ELEMENTS if name.startswith(p)), None)
    if prefix is None or position == 0:
        return f"{have.text} {text}"
    element, bits = _ELEMENTS[prefix]
    wanted = f"<{have.bits * have.lanes // bits} x {element}>"
    if wanted == have.text:
        return f"{have.text} {text}"
    return f"{wanted} {w.code.pure(f'bitcast {have.text} {text} to {wanted}')}"


def _name_of_number(number: object, call: Call) -> str:
    if not isinstance(number, IntImm):
        raise LoweringError("call_llvm_intrin requires a name or number of an intrinsic", at=call)
    return llvm_get_intrinsic_name(number.value)


def check_intrinsic(name: str, cpu: CpuInfo, call: Call) -> None:
    """Reject what is not an intrinsic, or one of another processor."""
    if not name.startswith("llvm."):
        raise LoweringError(
            f"call_llvm_intrin requires a name that starts with 'llvm.', got {name!r}",
            at=call,
            hint="call_pure_extern calls a C function",
        )
    owner = _ARCHITECTURES.get(name.split(".")[1])
    if owner is not None and not cpu.arch.startswith(owner):
        raise LoweringError(f"the intrinsic {name} is not one of {cpu.arch}", at=call)
    prefix = max([p for p in _FEATURES if name.startswith(p)], key=len, default="")
    wanted = _FEATURES.get(prefix, "").split()
    if wanted and cpu.features.isdisjoint(wanted):
        raise LoweringError(
            f"the intrinsic {name} requires a processor with {' or '.join(wanted)}",
            at=call,
            hint=f"name one by -mcpu, or add -mattr=+{wanted[0]}",
        )
