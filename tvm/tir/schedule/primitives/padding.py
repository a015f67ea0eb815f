"""A block that pads becomes one that fills with the padding's value, and one that copies what is inside.

P[i] = if_then_else(3 <= i and i < 11, X[i - 3], 0)    ->    for i in range(14): P[i] = 0
                                                             for i in range(8): P[i + 3] = X[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tvm.arith import Analyzer, deduce_bound
from tvm.arith.pattern import conjuncts
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import Call, IntImm, IterVar, Range, Select, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, point_region, seq
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.bindings import uses_var
from ..analyses.block_kind import require_complete
from ..errors import PrimitiveError
from ..rewriting import Reuse
from ..state import ScheduleState
from ..tree import domain_of, exchanged, loops_of, only_child, scope_of


def decompose_padding(state: ScheduleState, block_sref: StmtSRef, loop_sref: StmtSRef) -> StmtSRef:
    """The block that fills, before a loop; in the loop, the block that copies."""
    block, realize = block_sref.block, state.realize_of(block_sref)
    require_complete(state, block_sref, scope_of(block_sref))
    loops = loops_of(block_sref)
    if not any([loop is loop_sref for loop in loops]):
        raise PrimitiveError(
            "ScheduleError: The input loop is required to be an ancestor of block",
            "The loop {0} is required to be around the block {1}",
            loop_sref.loop, block,
        )  # fmt: skip
    inside = [sref.loop for sref in loops[[s is loop_sref for s in loops].index(True) :]]
    outside = loops[: len(loops) - len(inside)]
    # a loop of one iteration is its value
    single = {
        sref.loop.loop_var: sref.loop.min
        for sref in outside
        if isinstance(sref.loop.extent, IntImm) and sref.loop.extent.value == 1
    }
    values = tuple([substitute(value, single) for value in realize.iter_values])
    realize = realize.replace(iter_values=values)
    condition, value, filler = padding_of(block)
    bounds = _bounds(block, condition)
    if not bounds:
        _reject(block, "its condition always holds")
    fill, fill_block = _filling(block, realize, inside, filler)
    own = _own_loops(inside, block)
    copy, copy_block = _copying(block, realize, own, value, bounds, domain_of(loops))
    old: Stmt = own[0] if own else realize
    for loop in reversed(inside[: len(inside) - len(own)]):
        copy, old = loop.replace(body=exchanged(loop.body, old, copy)), loop
    parent = loop_sref.parent
    assert parent is not None and parent.stmt is not None
    body = exchanged(parent.stmt.body, loop_sref.loop, seq([fill, copy]))
    reuse: Reuse = {block: copy_block}
    state.replace_body(parent, body, reuse)
    return state.sref_of(fill_block)


def padding_of(block: Block) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """The condition under which a block copies, what it copies then, and the constant otherwise."""
    body = block.body
    value: Any = body.value if isinstance(body, BufferStore) else None
    if isinstance(value, Select):
        found = (value.condition, value.true_value, value.false_value)
    elif isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else":
        found = (value.args[0], value.args[1], value.args[2])
    else:
        _reject(block, "it does not store a choice of two values")
    if variables_of(found[2]) or not isinstance(Analyzer().simplify(found[2]), type(found[2])):
        _reject(block, "the value of the padding is not constant")
    return found


def _reject(block: Block, reason: str) -> NoReturn:
    raise PrimitiveError(
        "ScheduleError: The block is not recognised as a padding operation",
        f"The block {{0}} is not recognised as a padding: {reason}",
        block,
    )


def _bounds(block: Block, condition: PrimExpr) -> dict[Var, Range]:
    """The values of variables inside of the padding, for those that the condition bounds."""
    axes = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    lows: dict[Var, PrimExpr] = {}
    highs: dict[Var, PrimExpr] = {}
    analyzer = Analyzer()
    for part in conjuncts(condition):
        used = [var for var in variables_of(part) if var in axes]
        if not used and isinstance(part, IntImm) and part.value:
            continue
        if len(used) != 1:
            _reject(block, f"the condition {part} is no bound of one variable")
        (var,) = used
        found = deduce_bound(var, part, {}, {})
        if found is None or found.is_nothing() or found.is_everything():
            _reject(block, f"the condition {part} is no bound of a variable")
        if found.has_lower_bound():
            lows[var] = op.max(lows.get(var, axes[var].min), found.min_value)
        if found.has_upper_bound():
            end = op.add(found.max_value, 1)
            limit = op.add(axes[var].min, axes[var].extent)
            highs[var] = op.min(highs.get(var, limit), end)
    bounds: dict[Var, Range] = {}
    for var in dict.fromkeys([*lows, *highs]):
        low = analyzer.simplify(lows.get(var, axes[var].min))
        high = analyzer.simplify(highs.get(var, op.add(axes[var].min, axes[var].extent)))
        extent = analyzer.simplify(op.subtract(high, low))
        if not analyzer.can_prove_equal(extent, axes[var].extent):
            bounds[var] = Range.from_min_extent(low, extent)
    return bounds


def _own_loops(loops: Sequence[For], block: Block) -> Sequence[For]:
    """The innermost loops that have nothing inside but the block."""
    inner: list[Any] = [*loops[1:], block]
    shared = [not only_child(loop, below) for loop, below in zip(loops, inner, strict=True)]
    return loops[len(loops) - shared[::-1].index(True) :] if any(shared) else loops


def _renamed(block: Block) -> tuple[list[IterVar], dict[Var, PrimExpr]]:
    axes: list[IterVar] = []
    renamed: dict[Var, PrimExpr] = {}
    for axis in block.iter_vars:
        var = axis.var.replace(name=axis.var.name)
        renamed[axis.var] = var
        axes.append(axis.replace(var=var))
    return axes, renamed


def _filling(
    block: Block, realize: BlockRealize, loops: Sequence[For], filler: PrimExpr
) -> tuple[Stmt, Block]:
    assert isinstance(block.body, BufferStore)
    axes, renamed = _renamed(block)
    indices = [substitute(index, renamed) for index in block.body.indices]
    store = BufferStore(block.body.buffer, filler, tuple(indices))
    new = Block(
        axes, [], [point_region(store.buffer, indices)], f"{block.name_hint}_pad_const", store
    )
    nest: Stmt = BlockRealize(realize.iter_values, realize.predicate, new)
    fresh: dict[Var, PrimExpr] = {}
    for loop in reversed(loops):
        var = loop.loop_var.replace(name=loop.loop_var.name)
        fresh[loop.loop_var] = var
        nest = For(var, loop.min, loop.extent, ForKind.SERIAL, nest)
    return substitute(nest, fresh), new


def _copying(
    block: Block,
    realize: BlockRealize,
    loops: Sequence[For],
    value: PrimExpr,
    bounds: dict[Var, Range],
    domain: dict[Var, Range],
) -> tuple[Stmt, Block]:
    """The block over what is inside of the padding: loops that are its variables become shorter."""
    store = block.body
    assert isinstance(store, BufferStore)
    analyzer = Analyzer()
    for var, values_of_loop in domain.items():
        analyzer.bind(var, values_of_loop)
    by_var = {loop.loop_var: loop for loop in loops}
    lengths: dict[Var, PrimExpr] = {}
    moved: dict[Var, PrimExpr] = {}
    axes: list[IterVar] = []
    values: list[PrimExpr] = []
    predicate: PrimExpr = realize.predicate
    for axis, bound_value in zip(block.iter_vars, realize.iter_values, strict=True):
        side = bounds.get(axis.var)
        if side is None:
            axes.append(axis)
            values.append(bound_value)
            continue
        moved[axis.var] = analyzer.simplify(op.add(axis.var, side.min))
        axes.append(axis.replace(dom=Range.from_min_extent(const(0, side.min.dtype), side.extent)))
        if isinstance(bound_value, Var) and bound_value in by_var:
            others = [value for value in realize.iter_values if value is not bound_value]
            if not any([uses_var(other, {bound_value: None}) for other in others]):
                lengths[bound_value] = side.extent
                values.append(bound_value)
                continue
        shifted = analyzer.simplify(op.subtract(bound_value, side.min))
        values.append(shifted)
        inside = op.all(op.greater_equal(shifted, 0), op.less(shifted, side.extent))
        predicate = op.all(predicate, inside)
    indices = [analyzer.simplify(substitute(index, moved)) for index in store.indices]
    body = BufferStore(store.buffer, _simple(substitute(value, moved)), tuple(indices))
    reads = tuple([_simple_region(substitute(region, moved)) for region in block.reads])
    new = block.replace(
        iter_vars=tuple(axes), body=body, reads=reads, writes=(point_region(store.buffer, indices),)
    )
    nest: Stmt = BlockRealize(tuple(values), analyzer.simplify(predicate), new)
    for loop in reversed(loops):
        extent = lengths.get(loop.loop_var, loop.extent)
        nest = loop.replace(extent=extent, body=nest)
    return nest, new


def _simple(expr: PrimExpr) -> PrimExpr:
    return Analyzer().simplify(expr)


def _simple_region(region: Any) -> Any:
    sides = [
        Range.from_min_extent(_simple(side.min), _simple(side.extent)) for side in region.region
    ]
    return region.replace(region=tuple(sides))
