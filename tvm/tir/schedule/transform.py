"""Schedules of several steps."""

from __future__ import annotations

from tvm.tir.expr import IntImm
from tvm.tir.function import TensorIntrin

from .analysis import get_tensorize_loop_mapping
from .random_variables import BlockRV, LoopRV
from .schedule import Schedule


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Tile a block's loops so that the innermost ones are those of an intrinsic.

    Parameters
    ----------
    sch : Schedule
    block : BlockRV
    intrin_name : str
        The name that the intrinsic was registered by.
    allow_padding : bool
        Whether to pad extents that are no multiples of the intrinsic's.

    Returns
    -------
    LoopRV or None
        The outermost of the loops that the intrinsic can take the place of; None if it does not fit.
    """
    intrin = TensorIntrin.get(intrin_name)
    assert intrin is not None
    info = get_tensorize_loop_mapping(sch, block, intrin.desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings is not None:
        _pad(sch, block, info.block_iter_paddings)
    by_sref = {sch.get_sref(loop): loop for loop in sch.get_loops(block)}
    inner: dict[int, LoopRV] = {}
    for sref, desc_loop in info.loop_map.items():
        total, step = sref.loop.extent, desc_loop.extent
        assert isinstance(total, IntImm) and isinstance(step, IntImm)
        _, tile = sch.split(by_sref[sref], factors=[total.value // step.value, step.value])
        inner[info.desc_loop_indexer[desc_loop]] = tile
    suffix = [inner[index] for index in sorted(inner)]
    tiles = [sch.get(loop) for loop in suffix]
    rest = [
        loop for loop in sch.get_loops(block) if not any([sch.get(loop) is tile for tile in tiles])
    ]
    sch.reorder(*rest, *suffix)
    return suffix[0]


def _pad(sch: Schedule, block: BlockRV, paddings: list[int]) -> None:
    """Pad a block's domains; the copies are joined with the blocks that they are made of and used in."""
    known = [sch.get_sref(b) for b in (*sch.get_producers(block), *sch.get_consumers(block))]
    sch.pad_einsum(block, paddings)
    for fill in sch.get_producers(block):
        if sch.get_sref(fill) not in known:
            for producer in sch.get_producers(fill):
                sch.compute_inline(producer)
    for copy in sch.get_consumers(block):
        if sch.get_sref(copy) not in known and sch.get_consumers(copy):
            sch.compute_inline(copy)
