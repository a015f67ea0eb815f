"""What the LLVM code generator takes from a target."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.target import CpuInfo, Target, cpu_info

# contraction only joins a multiplication with an addition, which makes results more exact;
# the other flags change results, or their validity for NaN and infinity, and have to be asked for
_FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "reassoc")


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Settings of one module."""

    cpu: CpuInfo
    fast_math: str = "contract"  # flags of floating-point instructions
    opt_level: int = 3
    pointer_bits: int = 64

    @property
    def word(self) -> str:
        """LLVM's integer of the size of a pointer."""
        return f"i{self.pointer_bits}"

    @property
    def word_format(self) -> str:
        """How C's printf writes a word."""
        return "%lld" if self.pointer_bits == 64 else "%ld"

    @staticmethod
    def of(target: Target) -> CodegenOptions:
        """The options that a target asks for."""
        attrs = target.attrs
        if attrs.get("fast-math"):
            flags = "fast"
        else:
            chosen = [f for f in _FLAGS if attrs.get(f"fast-math-{f}", f == "contract")]
            flags = " ".join(chosen)
        return CodegenOptions(cpu_info(target), flags, int(attrs.get("opt-level", 3)))
