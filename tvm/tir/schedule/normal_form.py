"""The form that schedule rules work on: a block's loops are its iteration variables, one by one.

for i, j, k in grid(8, 1, 4):          ->    for i, k in grid(8, 4):
    with block("C"):                             with block("C"):
        vi, vj, vk = remap("SSR", ...)               vi, vk = remap("SR", ...)
"""

from __future__ import annotations

from tvm._ffi.registry import register_func
from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import IntImm, IterVar, Var, const
from tvm.tir.index_map import IndexMap

from .analyses.block_kind import is_reduction
from .random_variables import BlockRV, LoopRV
from .schedule import Schedule
from .tree import loops_of, root_of

# blocks, and for each its loops, its iteration variables and whether it is a reduction
NormalForm = tuple[list[BlockRV], list[list[LoopRV]], list[tuple[IterVar, ...]], list[bool]]


@register_func("tir.schedule.NormalizePrimFunc", override=True)
def normalize_prim_func(sch: Schedule) -> NormalForm | None:
    """Give each block below the root one loop for each iteration variable, and none of extent 1.

    Parameters
    ----------
    sch : Schedule

    Returns
    -------
    tuple of list or None
        The blocks, and for each its loops, its iteration variables and whether it is a reduction;
        None, and nothing is changed, if some loop is not the value of its variable.
    """
    blocks = sch.get_child_blocks(sch.get_block("root"))
    srefs = [_sref_of(sch, block) for block in blocks]
    if not all([_is_bound_to_loops(sch, sref) for sref in srefs]):
        return None
    for block in blocks:
        sch.transform_block_layout(block, _without_units(sch.get(block).iter_vars))
    srefs = [_sref_of(sch, block) for block in blocks]
    return (
        blocks,
        [sch.get_loops(block) for block in blocks],
        [sref.block.iter_vars for sref in srefs],
        [is_reduction(sch.state, sref, root_of(sref)) for sref in srefs],
    )


def _sref_of(sch: Schedule, block: BlockRV) -> StmtSRef:
    sref = sch.get_sref(block)
    assert sref is not None
    return sref


def _is_bound_to_loops(sch: Schedule, sref: StmtSRef) -> bool:
    """Whether a block's variables are the loops around it in their order, or there is no loop."""
    loops = [loop.loop for loop in loops_of(sref)]
    values = sch.state.realize_of(sref).iter_values
    if not loops:
        return True
    return len(loops) == len(values) and all(
        [
            value is loop.loop_var and isinstance(loop.min, IntImm) and loop.min.value == 0
            for loop, value in zip(loops, values, strict=True)
        ]
    )


def _without_units(axes: tuple[IterVar, ...]) -> IndexMap:
    """Leaves out the variables of extent 1; a 0 stands in where no spatial variable is left."""
    variables = tuple([Var(axis.var.name, axis.var.dtype) for axis in axes])
    kept = [(var, axis) for var, axis in zip(variables, axes, strict=True) if not _is_unit(axis)]
    is_spatial = any([axis.iter_type == IterVar.DataPar for _, axis in kept])
    unit = () if is_spatial else (const(0, axes[0].var.dtype if axes else "int32"),)
    return IndexMap(variables, (*unit, *[var for var, _ in kept]))


def _is_unit(axis: IterVar) -> bool:
    assert axis.dom is not None
    extent = axis.dom.extent
    return isinstance(extent, IntImm) and extent.value == 1
