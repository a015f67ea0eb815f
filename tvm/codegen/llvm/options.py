"""What the LLVM code generator takes from a target."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.target import CpuInfo, Target, cpu_info
from tvm.target.cpu import llvm_features, machine_cpu, machine_features
from tvm.target.kind import TargetError

from .worker_process import command_line_option

# contraction only joins a multiplication with an addition, which makes results more exact;
# the other flags change results, or their validity for NaN and infinity, and have to be asked for
_FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "reassoc")
JITS = ("orcjit", "mcjit")  # LLVM's loaders of code into this process, the usual one first


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Settings of one module."""

    cpu: CpuInfo
    fast_math: str = "contract"  # flags of floating-point instructions
    opt_level: int = 3
    pointer_bits: int = 64
    jit: str = JITS[0]
    llvm_options: tuple[str, ...] = ()  # LLVM's own, for a whole process
    processor: str = ""  # attributes of functions that name the processor

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
        cpu = cpu_info(target)
        processor = _processor_attributes(target, cpu)
        return CodegenOptions(
            cpu, flags, opt_level, jit=jit, llvm_options=options, processor=processor
        )


def _processor_attributes(target: Target, cpu: CpuInfo) -> str:
    """What each function says of the processor that it is for, so that the text says it by itself."""
    name, features = machine_cpu(target) or "generic", machine_features(target)
    found = [f'"target-cpu"="{name}"']
    if features:
        found.append(f'"target-features"="{features}"')
    if cpu.arch.startswith(("aarch64", "arm64")) and llvm_features(target) & {"sve", "sme"}:
        found.append("vscale_range(1,16)")  # what the architecture allows
    return " ".join(found)
