"""Versions of a library's kernels for better processors than the one its target names.

    Target("llvm -mcpu=x86-64-v3 -versions=x86-64-v4")

gives a library with kernels for both: whoever loads it runs the last version listed that its processor can
run, and those of ``-mcpu`` where there is none.
"""

from __future__ import annotations

from .cpu import cpu_info
from .target_node import Target


def version_targets(target: Target) -> tuple[Target, ...]:
    """The targets of the versions, in the order given; empty for most targets."""
    names = target.attrs.get("versions", ())
    config = {key: value for key, value in target.export().items() if key != "versions"}
    return tuple([Target({**config, "mcpu": str(name)}) for name in names])


def layout_target(target: Target) -> Target:
    """The target whose vectors the layouts of a graph suit: all versions share them."""
    return max([target, *version_targets(target)], key=lambda t: cpu_info(t).vector_bits)
