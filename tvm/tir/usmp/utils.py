"""The values that static memory planning works on."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import IntImm
from tvm.ir.memory_pools import PoolInfo
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.runtime.object import Object

CANDIDATES = "candidate_memory_pools"  # an allocation's annotation: the pools it may be in
CANDIDATE_MEMORY_POOL_ATTR = CANDIDATES  # the classic name
DEFAULT_ALIGNMENT = 1

register_pass_config("tir.usmp.enable", bool)  # place all allocations in pools
register_pass_config("tir.usmp.algorithm", str)  # greedy_by_size, greedy_by_conflicts, hill_climb
register_pass_config("tir.usmp.custom_algorithm", str)  # the name of a global function
register_pass_config("tir.usmp.use_workspace_io", bool)  # inputs and outputs too
INPUT = "input_tensor"  # an allocation's annotation: the model's input of this name
OUTPUT = "output_tensor"


class BufferInfo(Object):
    """One allocation: its size, the pools it may be in, and which others are in use with it."""

    def __init__(
        self,
        name_hint: str,
        size_bytes: int,
        pool_candidates: Sequence[PoolInfo],
        alignment: int | None = None,
    ) -> None:
        self.name_hint = name_hint
        self.size = int(size_bytes)
        self.pool_candidates = tuple(pool_candidates)
        self.alignment = alignment or DEFAULT_ALIGNMENT
        self.conflicts: list[BufferInfo] = []

    @property
    def size_bytes(self) -> IntImm:
        """The size, as a node."""
        return _as_node(self.size)

    def set_conflicts(self, conflicts: Sequence[BufferInfo]) -> None:
        """Set the allocations that are in use at the same time."""
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        return f"BufferInfo({self.name_hint!r}, {self.size})"


class PoolAllocation(Object):
    """A place: a pool and an offset in it."""

    def __init__(self, pool_info: PoolInfo, byte_offset: int) -> None:
        self.pool_info = pool_info
        self.offset = int(byte_offset)

    @property
    def byte_offset(self) -> IntImm:
        """The offset, as a node."""
        return _as_node(self.offset)

    def __repr__(self) -> str:
        return f"PoolAllocation({self.pool_info.pool_name!r}, {self.offset})"


def _as_node(value: int) -> IntImm:
    return IntImm("int32" if value < 2**31 else "int64", value)


def use_workspace_io_is_enabled() -> bool:
    """Whether inputs and outputs are to be placed in pools too."""
    return bool(PassContext.current().get("tir.usmp.use_workspace_io", False))
