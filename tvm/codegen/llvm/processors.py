"""The processors and features LLVM knows for a triple; code for another name would end the process."""

from __future__ import annotations

from tvm.error import suggest
from tvm.target.cpu import named_processors
from tvm.target.cpu_features import KNOWN_FEATURES
from tvm.target.host import host_features, host_name
from tvm.target.kind import TargetError
from tvm.target.llvm_tables import known_features, known_processors
from tvm.target.triple import runs_here

_ABIS = {
    "riscv32": ("ilp32", "ilp32f", "ilp32d", "ilp32e"),
    "riscv64": ("lp64", "lp64f", "lp64d", "lp64e"),
    "arm": ("aapcs", "aapcs-vfp", "aapcs16", "apcs-gnu", "aapcs-linux"),
    "mips": ("o32", "n32", "n64"),
    "powerpc": ("elfv1", "elfv2"),
    "ppc": ("elfv1", "elfv2"),
    "aarch64": ("aapcs", "darwinpcs"),
}


def check_processor(name: str, triple: str) -> None:
    """Reject a processor that LLVM does not know."""
    if not name or name == host_name() or name in named_processors():
        return
    known = known_processors(triple)
    if known and name not in known:
        raise TargetError(
            f"-mcpu requires a processor of {triple}, got {name!r}", hint=suggest(name, known)
        )


def check_attributes(mattr: list[str], triple: str) -> None:
    """Reject features that LLVM does not know; it would leave them out."""
    for item in mattr:
        if item[:1] not in ("+", "-"):
            raise TargetError(
                f"-mattr requires features with + or - before them, got {item!r}", hint=f"+{item}"
            )
    # those of this machine need not be looked up either
    ours = {feature[1:] for feature in host_features()} if runs_here(triple) else set()
    names = [item[1:] for item in mattr if item[1:] not in KNOWN_FEATURES | ours]
    if not names:
        return
    known = known_features(triple)
    for name in names:
        if known and name not in known:
            raise TargetError(
                f"-mattr requires features of {triple}, got {name!r}", hint=suggest(name, known)
            )


def check_abi(abi: str, triple: str) -> None:
    """Reject an ABI that the architecture has not."""
    arch = triple.split("-")[0]
    known = next((names for prefix, names in _ABIS.items() if arch.startswith(prefix)), ())
    if abi and abi not in known:
        raise TargetError(
            f"-mabi requires an ABI of {arch}, got {abi!r}",
            hint=f"ABIs: {', '.join(known)}" if known else "leave -mabi out",
        )
