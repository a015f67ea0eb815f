"""What the LLVM code generator takes from a target."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.target import CpuInfo, Target, cpu_info
from tvm.target.kind import TargetError

from .worker_process import command_line_option

# contraction only joins a multiplication with an addition, which makes results more exact;
# the other flags change results, or their validity for NaN and infinity, and have to be asked for
_FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "reassoc")
JITS = ("mcjit", "orcjit")  # LLVM's loaders of code into this process


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Settings of one module."""

    cpu: CpuInfo
    fast_math: str = "contract"  # flags of floating-point instructions
    opt_level: int = 3
    pointer_bits: int = 64
    jit: str = "mcjit"
    llvm_options: tuple[str, ...] = ()  # LLVM's own, for a whole process

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
        opt_level, jit = int(attrs.get("opt-level", 3)), str(attrs.get("jit", JITS[0]))
        if not 0 <= opt_level <= 3:
            raise TargetError(f"-opt-level requires 0 to 3, got {opt_level}")
        if jit not in JITS:
            raise TargetError(f"-jit requires {' or '.join(JITS)}, got {jit!r}")
        options = tuple([command_line_option(text) for text in attrs.get("cl-opt", ())])
        return CodegenOptions(cpu_info(target), flags, opt_level, jit=jit, llvm_options=options)
