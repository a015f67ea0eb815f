"""Memory that a model is given: pools for intermediate values, and pools for constants.

pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [target], PoolInfoProperties(65536))])
relay.build(mod, target, executor=..., workspace_memory_pools=pools)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .node import Node, leaf

UNLIMITED = -1
UNKNOWN = -1


def _tuple(items: Any) -> tuple[Any, ...]:
    return () if items is None else tuple(items)


class PoolInfoProperties(Node, key="ir.PoolInfoProperties"):
    """What is known of a pool; -1 stands for no limit, or for what is not known."""

    size_hint_bytes: int = UNLIMITED
    clock_frequency_hz: int = UNKNOWN
    read_bandwidth_bytes_per_cycle: int = UNKNOWN
    write_bandwidth_bytes_per_cycle: int = UNKNOWN
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    target_burst_bytes: Mapping[Any, int] | None = leaf(default=None)


class PoolInfo(Node, key="ir.PoolInfo"):
    """What both kinds of pools have: a name, the targets that reach them, properties."""

    pool_name: str
    targets: tuple[Any, ...]
    properties: PoolInfoProperties
    is_internal: bool

    @property
    def size_hint_bytes(self) -> int:
        """How large the pool may become; -1 for no limit."""
        return self.properties.size_hint_bytes

    @property
    def clock_frequency_hz(self) -> int:
        return self.properties.clock_frequency_hz

    @property
    def read_bandwidth_bytes_per_cycle(self) -> int:
        return self.properties.read_bandwidth_bytes_per_cycle

    @property
    def write_bandwidth_bytes_per_cycle(self) -> int:
        return self.properties.write_bandwidth_bytes_per_cycle

    @property
    def read_latency_cycles(self) -> int:
        return self.properties.read_latency_cycles

    @property
    def write_latency_cycles(self) -> int:
        return self.properties.write_latency_cycles

    @property
    def target_burst_bytes(self) -> Mapping[Any, int]:
        return self.properties.target_burst_bytes or {}


class WorkspacePoolInfo(PoolInfo, key="ir.WorkspacePoolInfo"):
    """A pool for intermediate values.

    Parameters
    ----------
    pool_name : str
        Its name; programs in C give the memory under this name.
    targets : list of Target
        Whose code reaches it.
    pool_info_properties : PoolInfoProperties, optional
        Its size, and what is known of its speed.
    is_internal : bool
        Whether the library brings the memory itself.
    """

    def __init__(
        self,
        pool_name: str,
        targets: Sequence[Any],
        pool_info_properties: PoolInfoProperties | None = None,
        is_internal: bool = False,
    ) -> None:
        properties = pool_info_properties or PoolInfoProperties()
        self._init(str(pool_name), _tuple(targets), properties, is_internal)


class ConstantInfo(Node, key="ir.ConstantInfo"):
    """A constant at its place in a pool."""

    name_hint: str
    byte_offset: int
    data: Any = leaf()


class ConstantPoolInfo(PoolInfo, key="ir.ConstantPoolInfo"):
    """A pool for constants.

    Parameters
    ----------
    pool_name, targets, pool_info_properties, is_internal
        As for :class:`WorkspacePoolInfo`.
    constant_info_arr : list of ConstantInfo, optional
        What it holds, once constants have places.
    """

    constant_info_arr: tuple[ConstantInfo, ...]

    def __init__(
        self,
        pool_name: str,
        targets: Sequence[Any],
        constant_info_arr: Sequence[ConstantInfo] | None = None,
        pool_info_properties: PoolInfoProperties | None = None,
        is_internal: bool = False,
    ) -> None:
        properties = pool_info_properties or PoolInfoProperties()
        self._init(
            str(pool_name), _tuple(targets), properties, is_internal, _tuple(constant_info_arr)
        )


class WorkspaceMemoryPools(Node, key="ir.WorkspaceMemoryPools"):
    """The pools for intermediate values, the preferred ones first."""

    pools: tuple[WorkspacePoolInfo, ...] = leaf(convert=_tuple)


class ConstantMemoryPools(Node, key="ir.ConstantMemoryPools"):
    """The pools for constants, the preferred ones first."""

    pools: tuple[ConstantPoolInfo, ...] = leaf(convert=_tuple)


class AllocatedPoolInfo(Node, key="ir.AllocatedPoolInfo"):
    """A pool that a function takes: its size in the end, and which parameter it is."""

    pool: PoolInfo
    allocated_size: int
    pool_var_idx: int = 0
