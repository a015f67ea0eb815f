"""Loop programs are told apart by how they may be fused: the attribute ``op_pattern``.

element-wise 0, broadcast 1, injective 2, reduction 3, with an element-wise epilogue 4, opaque 8
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tvm import tir
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.reshape import has_reshape_pattern
from tvm.tir import PrimFunc
from tvm.tir.stmt_functor import post_order_visit, substitute, variables_of

from .pass_kinds import whole_module_pass


class OpPatternKind(IntEnum):
    """How a loop program reads its inputs."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


def _blocks(func: PrimFunc) -> list[Any]:
    found: list[Any] = []
    post_order_visit(func.body, lambda s: found.append(s) if isinstance(s, tir.Block) else None)
    return [b for b in found if b.name_hint != "root" or b.iter_vars]


def _loads(node: Any) -> list[Any]:
    found: list[Any] = []
    post_order_visit(node, lambda e: found.append(e) if isinstance(e, tir.BufferLoad) else None)
    return found


def _is_same(indices: Any, others: Any) -> bool:
    return len(indices) == len(others) and all(
        [a.same_as(b) for a, b in zip(indices, others, strict=True)]
    )


def _is_broadcast(load: Any, store: Any) -> bool:
    """Whether a load's indices are some of the store's, in their order."""
    rest = list(store.indices)
    for index in load.indices:
        if isinstance(index, tir.IntImm):
            continue
        while rest and not index.same_as(rest[0]):
            rest.pop(0)
        if not rest:
            return False
        rest.pop(0)
    return True


def _without_lets(body: Any) -> Any:
    """A statement with the values of its variables in their places."""
    while isinstance(body, tir.LetStmt):
        body = substitute(body.body, {body.var: body.value})
    return body


def _block_pattern(block: Any) -> OpPatternKind:
    """The pattern of one block."""
    store = _without_lets(block.body)
    if isinstance(store, tir.SeqStmt) and _has_reduction(block):  # several results of one loop nest
        return max([_block_pattern(block.replace(body=part)) for part in store.seq])
    if not isinstance(store, tir.BufferStore):
        return OpPatternKind.OPAQUE
    if not all([isinstance(i, tir.Var) for i in store.indices]):
        if not _has_reduction(block) and not all(
            [isinstance(i, (tir.Var, tir.IntImm)) for i in store.indices]
        ):
            return OpPatternKind.OPAQUE
    loads = _loads(store.value)
    if _has_reduction(block):
        return _reduction_pattern(block, store, loads)
    result = OpPatternKind.ELEMWISE
    for load in loads:
        if _is_same(load.indices, store.indices):
            continue
        if _is_broadcast(load, store):
            result = max(result, OpPatternKind.BROADCAST)
        else:
            result = max(result, OpPatternKind.INJECTIVE)
    has_same = any([_is_same(x.indices, store.indices) for x in loads])
    if result is OpPatternKind.BROADCAST and has_same:
        return OpPatternKind.ELEMWISE
    if not loads:
        return OpPatternKind.ELEMWISE
    return OpPatternKind(result)


def _has_reduction(block: Any) -> bool:
    return any([v.iter_type == tir.IterVar.CommReduce for v in block.iter_vars])


def _reduction_pattern(block: Any, store: Any, loads: Any) -> OpPatternKind:
    """Sums of products, and windows, may have an epilogue; other ones are reductions of whole axes."""
    others = [x for x in loads if x.buffer is not store.buffer]
    value = store.value
    is_sum = isinstance(value, tir.Add)
    if len({id(x.buffer) for x in others}) >= 2 and is_sum and _is_product(value.b):
        return OpPatternKind.OUT_ELEMWISE_FUSABLE
    reduced = {v.var for v in block.iter_vars if v.iter_type == tir.IterVar.CommReduce}
    whole = [_reads_whole_axes(x, reduced) for x in others]
    return OpPatternKind.COMM_REDUCE if all(whole) else OpPatternKind.OUT_ELEMWISE_FUSABLE


def _reads_whole_axes(load: Any, reduced: set[Any]) -> bool:
    """Whether the variables of the reduction are indices themselves, not parts of windows."""
    return all(
        [
            isinstance(i, tir.Var) or not any([v in reduced for v in variables_of(i)])
            for i in load.indices
        ]
    )


def _is_product(term: Any) -> bool:
    while isinstance(term, tir.Cast):
        term = term.value
    return isinstance(term, tir.Mul)


def prim_func_pattern(func: PrimFunc) -> OpPatternKind:
    """The pattern of a loop program."""
    blocks = _blocks(func)
    if not blocks:
        return OpPatternKind.OPAQUE
    kinds = [_block_pattern(b) for b in blocks]
    if any([k is OpPatternKind.OPAQUE for k in kinds]):
        return OpPatternKind.OPAQUE
    if len(kinds) == 1:
        if kinds[0] is OpPatternKind.INJECTIVE and has_reshape_pattern(func):
            return OpPatternKind.INJECTIVE
        return kinds[0]
    return _combined(kinds)


def _combined(kinds: list[OpPatternKind]) -> OpPatternKind:
    """Of several stages: the loosest; a reduction with others behind it, as softmax, has a heavy core."""
    found = kinds[0]
    for kind in kinds[1:]:
        if found is OpPatternKind.COMM_REDUCE and kind < OpPatternKind.COMM_REDUCE:
            found = OpPatternKind.OUT_ELEMWISE_FUSABLE
        else:
            found = max(found, kind)
    return found


def annotate(mod: IRModule) -> IRModule:
    """The module with the attribute of each loop program that has none."""

    def marked(_: Any, func: Any) -> Any:
        if not isinstance(func, PrimFunc) or "op_pattern" in func.attrs:
            return func
        return func.with_attr("op_pattern", int(prim_func_pattern(func)))

    return mod.map_functions(marked)


def AnnotateTIROpPattern() -> Pass:
    """Say of loop programs how they may be fused."""
    return whole_module_pass("AnnotateTIROpPattern", annotate)
