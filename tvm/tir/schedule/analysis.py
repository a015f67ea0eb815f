"""Questions about the blocks of a schedule: whether an intrinsic fits, what is an output."""

from __future__ import annotations

from tvm.arith import Analyzer
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import IntImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BlockRealize, For, Stmt
from tvm.tir.stmt_functor import variables_of

from .analyses.bindings import uses_var
from .analyses.block_kind import output_buffers
from .auto_tensorize import AutoTensorizeMappingInfo, get_auto_tensorize_mapping_info
from .errors import PrimitiveError
from .primitives.get import get_block
from .random_variables import BlockRV
from .schedule import Schedule
from .suggested_layout import suggest_index_map
from .tree import loops_of, realizes_below, scope_of

__all__ = [
    "AutoTensorizeMappingInfo", "TensorizeInfo", "get_auto_tensorize_mapping_info",
    "get_tensorize_loop_mapping", "has_block", "is_output_block", "suggest_index_map",
]  # fmt: skip


class TensorizeInfo(Object):
    """How the loops of a block and those of an intrinsic's description belong together.

    Attributes
    ----------
    loop_map : dict of StmtSRef to For
        The description's loops by the block's.
    desc_loop_indexer : dict of For to int
        The positions of the description's loops.
    block_iter_paddings : list of int or None
        To multiples of what the block's variables would be padded; None if nothing is to be.
    """

    def __init__(
        self,
        loop_map: dict[StmtSRef, For],
        desc_loop_indexer: dict[For, int],
        block_iter_paddings: list[int] | None,
    ) -> None:
        self.loop_map = loop_map
        self.desc_loop_indexer = desc_loop_indexer
        self.block_iter_paddings = block_iter_paddings


def has_block(sch: Schedule, block_name: str) -> bool:
    """Whether the function that is worked on has a block of that name.

    Parameters
    ----------
    sch : Schedule
    block_name : str
    """
    gvar = sch.func_working_on
    if gvar is None:
        raise RuntimeValueError(
            "The schedule does not know which function to be working on; hint: sch.work_on(func_name)"
        )
    try:
        get_block(sch.state, block_name, gvar)
    except PrimitiveError:
        return False
    return True


def is_output_block(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block writes a buffer that outlives its scope.

    Parameters
    ----------
    sch : Schedule
    block : BlockRV
    """
    sref = sch.get_sref(block)
    assert sref is not None
    is_output = output_buffers(sch.state, scope_of(sref))
    return any([is_output(region.buffer) for region in sref.block.writes])


def get_tensorize_loop_mapping(
    sch: Schedule, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """Which loops of a block an intrinsic could take the place of.

    Parameters
    ----------
    sch : Schedule
    block : BlockRV
    desc_func : PrimFunc
        The intrinsic's description.
    allow_padding : bool
        Whether extents that are no multiples of the intrinsic's may be padded.

    Returns
    -------
    TensorizeInfo or None
        None if the loops do not correspond.
    """
    sref = sch.get_sref(block)
    assert sref is not None
    desc_loops, described = _description(desc_func)
    realize = sch.state.realize_of(sref)
    loops = loops_of(sref)
    at = len(realize.iter_values)
    known = {loop.loop.loop_var: loop for loop in loops}
    loop_map: dict[StmtSRef, For] = {}
    paddings = [1] * len(realize.iter_values)
    for position in range(len(described.iter_values) - 1, -1, -1):
        # the last variable before that is of the same kind
        kind = described.block.iter_vars[position].iter_type
        at = max([i for i in range(at) if realize.block.iter_vars[i].iter_type == kind], default=-1)
        if at < 0:
            return None
        found = _matched(
            realize.iter_values[at], described.iter_values[position], known, desc_loops
        )
        if found is None:
            return None
        loop, desc_loop = found
        if not isinstance(desc_loop.extent, IntImm) or not isinstance(loop.loop.extent, IntImm):
            return None
        if loop.loop.extent.value % desc_loop.extent.value:
            if not allow_padding:
                return None
            paddings[at] = desc_loop.extent.value
        if loop_map.get(loop, desc_loop) is not desc_loop:
            return None
        loop_map[loop] = desc_loop
    indexer = {loop: index for index, loop in enumerate(desc_loops)}
    is_padded = any([padding != 1 for padding in paddings])
    return TensorizeInfo(loop_map, indexer, paddings if is_padded else None)


def _description(desc_func: PrimFunc) -> tuple[list[For], BlockRealize]:
    """The loops of a description, and the block inside of them."""
    root = desc_func.body
    assert isinstance(root, BlockRealize), "a description is a block"
    loops: list[For] = []
    stmt: Stmt = root.block.body
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    (realize,) = realizes_below(stmt)
    return loops, realize


def _matched(
    value: PrimExpr, described: PrimExpr, known: dict[Var, StmtSRef], desc_loops: list[For]
) -> tuple[StmtSRef, For] | None:
    """The loop that is the last part of a value, and that of the description."""
    analyzer = Analyzer()
    for desc_loop in desc_loops:
        rest = analyzer.simplify(op.subtract(described, desc_loop.loop_var))
        if uses_var(rest, {loop.loop_var: None for loop in desc_loops}):
            continue
        for var in reversed(list(variables_of(value))):
            if var not in known:
                continue
            left = analyzer.simplify(op.subtract(value, var))
            if not uses_var(left, {var: None}):
                return known[var], desc_loop
    return None
