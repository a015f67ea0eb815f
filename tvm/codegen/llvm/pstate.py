"""Modes of AArch64's matrix extension in which a function runs, as attributes of LLVM.

attr "pragma_aarch64_pstate_sm" = "aarch64_pstate_sm_enabled"   ->   define .. "aarch64_pstate_sm_enabled"
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.expr import StringImm

# value of the pragma -> attributes; those of the matrix registers were renamed in LLVM 18
_ATTRIBUTES = {
    "aarch64_pstate_sm_enabled": ("aarch64_pstate_sm_enabled",),
    "aarch64_pstate_sm_compatible": ("aarch64_pstate_sm_compatible",),
    "aarch64_pstate_za_new": ("aarch64_pstate_za_new", "aarch64_new_za"),
    "aarch64_pstate_za_shared": ("aarch64_pstate_za_shared", "aarch64_inout_za"),
}


def pstate_attributes(mode: StringImm) -> tuple[str, ...]:
    """The attributes of a function that runs in a mode of the processor."""
    found = _ATTRIBUTES.get(mode.value)
    if found is None:
        raise LoweringError(
            f"a pragma of the processor's state requires one of {', '.join(_ATTRIBUTES)}, got {mode.value!r}"
        )
    return found
