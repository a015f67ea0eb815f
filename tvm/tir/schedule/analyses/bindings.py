"""The values of a block's iteration variables as splits and fusions of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.arith import detect_iter_map
from tvm.ir.expr import PrimExpr
from tvm.tir.constants import is_one
from tvm.tir.expr import IterVar, Range, Var
from tvm.tir.stmt import BlockRealize, For
from tvm.tir.stmt_functor import variables_of


def is_affine_binding(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether each value is a split or a fusion of the loops, and no two values share a part of one."""
    domain = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    return is_affine_map(realize.iter_values, domain, realize.predicate)


def is_affine_map(
    values: Sequence[PrimExpr], domain: Mapping[Var, Range], predicate: PrimExpr
) -> bool:
    """Whether the values are independent splits and fusions of iterators."""
    if not values or (is_one(predicate) and _is_identity(values, domain)):
        return True
    found = detect_iter_map(
        values, domain, predicate, check_level="surjective", simplify_trivial_iterators=False
    )
    if not found.indices:
        return False
    for total in found.indices:
        if not total.args:
            continue
        if len(total.args) > 1 or not is_one(total.args[0].scale):
            return False
    return True


def _is_identity(values: Sequence[PrimExpr], domain: Mapping[Var, Range]) -> bool:
    """The common case: each value is a loop of its own."""
    seen: dict[PrimExpr, None] = {}
    for value in values:
        if type(value) is not Var or value not in domain or value in seen:
            return False
        seen[value] = None
    return True


def uses_var(expr: PrimExpr, variables: Mapping[Var, object]) -> bool:
    """Whether some of the variables are in the expression."""
    return any([var in variables for var in variables_of(expr)])


def bindings_of(realize: BlockRealize) -> dict[Var, PrimExpr]:
    """The values of the block's variables."""
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    return {axis.var: value for axis, value in pairs}


def loops_bound_to(realize: BlockRealize, kind: int) -> dict[Var, None]:
    """The variables in the values of the iteration variables of one kind."""
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    return variables_of(*[value for axis, value in pairs if axis.iter_type == kind])


def has_only(axes: Sequence[IterVar], *kinds: int) -> bool:
    """Whether all iteration variables are of some kinds."""
    return all([axis.iter_type in kinds for axis in axes])
