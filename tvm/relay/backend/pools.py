"""Memory pools of a model: its allocations get offsets in them, before code is generated."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tvm._ffi import get_global_func
from tvm.codegen.model_metadata import ConstantInfo as ConstantRecord
from tvm.codegen.model_metadata import TensorInfo
from tvm.error import TVMError, suggest
from tvm.ir.memory_pools import (
    AllocatedPoolInfo,
    ConstantMemoryPools,
    ConstantPoolInfo,
    PoolInfo,
    WorkspaceMemoryPools,
    WorkspacePoolInfo,
)
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relay.backend.c_interface import PoolArgument, PoolOffset
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.tir.stmt import AllocateConst, Stmt
from tvm.tir.transform.lower_tvm_builtin import MAX_STACK_BYTES
from tvm.tir.usmp.algorithms import ALGORITHMS, Placement
from tvm.tir.usmp.analysis import BufferInfoAnalysis, extract_buffer_info
from tvm.tir.usmp.transform import (
    POOLS,
    assign_pools,
    assign_statement_places,
    pass_used_pools,
)
from tvm.tir.usmp.utils import INPUT, OUTPUT, PoolAllocation, use_workspace_io_is_enabled

DEFAULT_POOL = "global_workspace"
P = TypeVar("P", bound=PoolInfo)
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_UINT8 = as_dtype("uint8")


@dataclass(frozen=True)
class MemoryPools:
    """The pools that a build was given."""

    workspace: WorkspaceMemoryPools | None = None
    constants: ConstantMemoryPools | None = None

    def __post_init__(self) -> None:
        for given, wanted in (
            (self.workspace, WorkspaceMemoryPools),
            (self.constants, ConstantMemoryPools),
        ):
            if given is not None and not isinstance(given, wanted):
                raise TypeError(
                    f"relay.build needs tvm.ir.memory_pools.{wanted.__name__}, got "
                    f"{type(given).__name__}"
                )

    @property
    def are_used(self) -> bool:
        """Whether allocations are to be placed in pools."""
        enabled = PassContext.current().get("tir.usmp.enable", False)
        return bool(enabled or self.workspace or self.constants)

    @property
    def hold_arguments(self) -> bool:
        """Whether the model's inputs and outputs are to be placed there, too."""
        return self.are_used and use_workspace_io_is_enabled()

    def workspace_for(self, target: Target) -> list[WorkspacePoolInfo]:
        """The workspace pools that code for a target reaches; the library's own if none are given."""
        if self.workspace is None:
            return [WorkspacePoolInfo(DEFAULT_POOL, [target], is_internal=True)]
        return _reached(self.workspace.pools, target)

    def constants_for(self, target: Target) -> list[ConstantPoolInfo]:
        """The pools for constants that code for a target reaches."""
        return [] if self.constants is None else _reached(self.constants.pools, target)


def _reached(pools: Sequence[P], target: Target) -> list[P]:
    found = [
        pool
        for pool in pools
        if any([Target(t).kind.name == target.kind.name for t in pool.targets])
    ]
    if not found:
        names = ", ".join([pool.pool_name for pool in pools]) or "none"
        raise TVMError(
            f"no memory pool can be reached from target {target.kind}; the pools are {names}"
        )
    return found


@dataclass(frozen=True)
class PooledModel:
    """A model whose allocations have offsets in pools."""

    mod: IRModule
    pools: tuple[AllocatedPoolInfo, ...]
    constants: tuple[ConstantRecord, ...]
    contents: dict[str, bytes]  # of pools of constants, by name
    # by kind and name of an input or output that is in a pool: the pool and the offset
    arguments_in_pools: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def offsets(
        self, kind: str, tensors: Sequence[TensorInfo], pools: Sequence[PoolArgument]
    ) -> tuple[PoolOffset, ...]:
        """Where inputs or outputs are that are in pools."""
        by_name = {pool.name: pool for pool in pools}
        found = [self.arguments_in_pools[kind, tensor.name] for tensor in tensors]
        return tuple([PoolOffset(by_name[pool], offset) for pool, offset in found])

    def arguments(self, alignment: int) -> tuple[PoolArgument, ...]:
        """The pools as programs in C see them."""
        return tuple(
            [
                PoolArgument(
                    p.pool.pool_name,
                    p.allocated_size,
                    alignment,
                    p.pool.is_internal,
                    self.contents.get(p.pool.pool_name),
                )
                for p in self.pools
            ]
        )

    @property
    def workspace(self) -> tuple[TensorInfo, ...]:
        """The pools that the AOT executor allocates."""
        return tuple(
            [
                TensorInfo(p.pool.pool_name, (p.allocated_size,), _UINT8)
                for p in self.pools
                if not isinstance(p.pool, ConstantPoolInfo)
            ]
        )


def assign_pool_offsets(
    mod: IRModule, main: str, target: Target, pools: MemoryPools, alignments: tuple[int, int]
) -> PooledModel:
    """Give the allocations of a model offsets in pools.

    Parameters
    ----------
    main : the name of the model's function.
    alignments : of workspace and of constants, in bytes.
    """
    workspace, constants = pools.workspace_for(target), pools.constants_for(target)
    annotated = mod.with_functions(
        {
            gvar: assign_pools(
                func, workspace, constants, 0 if gvar.name_hint == main else MAX_STACK_BYTES + 1
            )
            if isinstance(func, PrimFunc)
            else func
            for gvar, func in mod.functions.items()
        }
    )
    analysis = extract_buffer_info(annotated[main], annotated, keep_arguments=True)
    for info, statement in analysis.buffer_info_stmts.items():
        info.alignment = alignments[isinstance(statement, AllocateConst)]
    offsets = assign_statement_places(analysis.buffer_info_stmts, _choose_offsets(analysis))
    order = [*constants, *workspace]
    offsets = dict(sorted(offsets.items(), key=lambda item: order.index(item[1].pool_info)))
    pooled = pass_used_pools(annotated, offsets)
    model = _pooled_model(pooled, pooled[main])
    return replace(model, arguments_in_pools=_argument_offsets(offsets))


def _argument_offsets(
    offsets: Mapping[Stmt, PoolAllocation],
) -> dict[tuple[str, str], tuple[str, int]]:
    return {
        (kind, str(name)): (allocation.pool_info.pool_name, allocation.offset)
        for statement, allocation in offsets.items()
        for kind, name in (getattr(statement, "annotations", None) or {}).items()
        if kind in (INPUT, OUTPUT)
    }


def _choose_offsets(analysis: BufferInfoAnalysis) -> Placement:
    context = PassContext.current()
    custom = context.get("tir.usmp.custom_algorithm", "")
    name = context.get("tir.usmp.algorithm", "greedy_by_size")
    algorithm = get_global_func(custom, True) if custom else ALGORITHMS.get(name)
    if algorithm is None:
        raise TVMError(
            f"static memory planning has no algorithm {custom or name!r}",
            hint=suggest(name, ALGORITHMS) or f"algorithms: {', '.join(ALGORITHMS)}",
        )
    statements = analysis.buffer_info_stmts.items()
    constants = sum([info.size for info, stmt in statements if isinstance(stmt, AllocateConst)])
    least = analysis.memory_pressure + constants
    return dict(algorithm(list(analysis.buffer_info_stmts), least))


def _pooled_model(mod: IRModule, main: PrimFunc) -> PooledModel:
    allocated: list[AllocatedPoolInfo] = list(main.get_attr(POOLS) or [])
    pools = [p for p in allocated if isinstance(p.pool, ConstantPoolInfo)]
    if len(pools) > 1:
        names = ", ".join([p.pool.pool_name for p in pools])
        raise TVMError(f"a model has one pool of constants, got {names}")
    contents, records = {}, []
    for allocation in pools:
        assert isinstance(allocation.pool, ConstantPoolInfo)
        content = bytearray(allocation.allocated_size)
        for info in allocation.pool.constant_info_arr:
            data = info.data.numpy().tobytes()
            content[info.byte_offset : info.byte_offset + len(data)] = data
            records.append(ConstantRecord(info.name_hint, info.byte_offset, array_bytes(info.data)))
        contents[allocation.pool.pool_name] = bytes(content)
    return PooledModel(mod, tuple(allocated), tuple(records), contents)


def array_bytes(array: NDArray) -> bytes:
    """An array in the form of parameter files."""
    dtype, data = as_dtype(str(array.dtype)), array.numpy().tobytes()
    header = struct.pack(
        "<QQiiiBBH",
        _ARRAY_MAGIC,
        0,
        1,
        0,
        len(array.shape),
        dtype.type_code,
        dtype.bits,
        dtype.lanes,
    )
    return header + struct.pack(f"<{len(array.shape)}qq", *array.shape, len(data)) + data
