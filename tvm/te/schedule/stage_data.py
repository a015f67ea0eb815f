"""What the stages of a schedule hold: where a stage runs, and what is said of its axes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object
from tvm.tir.expr import IterVar, IterVarType, StringImm

from ..tensor import Tensor
from ..tensor_intrin import TensorIntrin


class AttachType(IntEnum):
    """Where a stage is computed."""

    GroupRoot = 1
    Inline = 2
    InlinedAlready = 3
    Scope = 4
    ScanUpdate = 5


@dataclass(frozen=True, eq=False)
class IterVarAttr(Object):
    """What primitives said about an axis."""

    iter_type: IterVarType = IterVarType.DataPar
    bind_thread: IterVar | None = None
    prefetch_data: tuple[Tensor, ...] = ()
    prefetch_offset: tuple[PrimExpr, ...] = ()
    prefetch_over: tuple[IterVar | None, ...] = ()
    dim_align_factor: int = 0
    dim_align_offset: int = 0
    pragma_keys: tuple[StringImm, ...] = ()
    pragma_values: tuple[PrimExpr, ...] = ()
    tensor_intrin: TensorIntrin | None = None


NO_ATTR = IterVarAttr()


class StorageRank(IntEnum):
    """How far a storage scope is shared among threads."""

    GLOBAL = 0
    SHARED = 1
    WARP = 2
    LOCAL = 3


_SCOPE_RANKS = {
    "global": StorageRank.GLOBAL,
    "shared": StorageRank.SHARED,
    "warp": StorageRank.WARP,
    "local": StorageRank.LOCAL,
}


def storage_rank(scope: str) -> int:
    """The rank of a storage scope such as ``shared`` or ``local.accumulator``."""
    return _SCOPE_RANKS.get(scope.split(".", maxsplit=1)[0], StorageRank.LOCAL)


def thread_rank(tag: str) -> int:
    """The rank of a thread tag: 0 for blocks, 1 for threads and virtual threads."""
    return 0 if tag.startswith("blockIdx") else 1
