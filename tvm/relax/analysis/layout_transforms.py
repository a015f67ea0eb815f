"""Layouts of a loop program's other buffers, and orders of its blocks, that suit given layouts of its results.

B[v0, v1] = A[v1] * W[v0, v1]    with B by (i, j) -> (j, i)    suggests
block: (i, j) -> (j, i), A: j -> j (left as it is), W: (i, j) -> (j, i)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    IndexMap,
    IntImm,
    IterVar,
    PrimFunc,
    Var,
)
from tvm.tir.stmt_functor import free_vars

# of each axis of a buffer or a block, the spatial variable that indexes it, if one does
_Axes: TypeAlias = "list[Var | None]"


def suggest_layout_transforms(
    func: PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., Any]]
) -> dict[Block, dict[Block | Buffer, IndexMap]]:
    """Find transforms of blocks and of what they read from those of what a function writes.

    Parameters
    ----------
    func : PrimFunc
        The function.
    write_buffer_transforms : list of IndexMap or callable
        The layouts of its results, which are its last buffers.

    Returns
    -------
    dict of Block to dict of Block or Buffer to IndexMap
        For each block that suits them its own transform and those of buffers; a buffer is named at one
        block only.

    Raises
    ------
    TVMError
        If there are more layouts than buffers, or one has another number of indices than its buffer.
    """
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    count = len(write_buffer_transforms)
    if count > len(buffers):
        raise TVMError(
            f"suggest_layout_transforms requires at most {len(buffers)} transforms, got {count}",
            classic="Incompatible PrimFunc and write_transformations",
        )
    known: dict[Buffer, IndexMap] = {}
    for buffer, given in zip(buffers[len(buffers) - count :], write_buffer_transforms, strict=True):
        index_map = given if isinstance(given, IndexMap) else IndexMap.from_func(given)
        if len(index_map.initial_indices) != len(buffer.shape):
            raise TVMError(
                f"suggest_layout_transforms requires a transform of {len(buffer.shape)} indices for "
                f"{buffer.name}, got {len(index_map.initial_indices)}",
                classic="Mismatch between output buffer shape and index map",
            )
        variables = [Var(v.name, _index_dtype(buffer)) for v in index_map.initial_indices]
        known[buffer] = IndexMap(tuple(variables), tuple(index_map.map_indices(variables)))
    found: dict[Block, dict[Block | Buffer, IndexMap]] = {}
    users: dict[Buffer, Block] = {}
    # from the results back to what they are made of
    for block in reversed(_leaf_blocks(func)):
        accesses = _accesses_of(block)
        own = _suggested(block, accesses, known)
        if own is not None:
            found[block] = {block: own}
            # a buffer is named where it is written, or else where it is read
            users.update(dict.fromkeys(accesses.written, block))
            for buffer in accesses.read:
                users.setdefault(buffer, block)
    for buffer, block in users.items():
        if buffer in known:
            found[block][buffer] = known[buffer]
    return found


def _index_dtype(buffer: Buffer) -> str:
    return buffer.shape[0].dtype if buffer.shape else "int32"


def _accesses_of(block: Block) -> _Accesses:
    accesses = _Accesses([iv.var for iv in block.iter_vars if iv.iter_type == IterVar.DataPar])
    accesses.visit(block.body)
    if block.init is not None:
        accesses.visit(block.init)
    return accesses


def _suggested(block: Block, accesses: _Accesses, known: dict[Buffer, IndexMap]) -> IndexMap | None:
    """A block's transform for that of what it writes; notes what suits what it reads."""
    if len(accesses.written) != 1:
        return None
    ((target, axes),) = accesses.written.items()
    index_map = known.get(target)
    if index_map is None or axes is None or not _is_order_of(axes, accesses.spatial):
        return None
    if not _is_without_padding(index_map, target.shape):
        return None
    values: dict[Var, Var] = dict(zip(index_map.initial_indices, accesses.spatial, strict=True))
    own_axes = [iv.var if iv.var in accesses.spatial else None for iv in block.iter_vars]
    own = _restricted(index_map, values, own_axes, block.iter_vars[0].var.dtype)
    if own is None:
        return None
    for source, layout in accesses.read.items():
        if source in known or layout is None:
            continue
        read = _restricted(index_map, values, layout, _index_dtype(source))
        if read is not None and _is_without_padding(read, source.shape):
            known[source] = read
    return own


def _is_order_of(axes: _Axes, spatial: list[Var]) -> bool:
    """Whether a buffer is written at a block's spatial variables, one by one."""
    return len(axes) == len(spatial) and all([a is b for a, b in zip(axes, spatial, strict=True)])


def _is_without_padding(index_map: IndexMap, shape: Sequence[PrimExpr]) -> bool:
    """Whether each place in the new layout has an element of the old one."""
    try:
        index_map.inverse(shape)
    except ValueError:
        return False
    return True


def _restricted(
    index_map: IndexMap, values: dict[Var, Var], axes: _Axes, dtype: str
) -> IndexMap | None:
    """A transform for some of its indices, in another place each, beside axes that stay.

    None if an index of the result mixes what is there with what is not, or there is nothing to do.
    """
    here = [var for var in axes if var is not None]
    if not here or len({id(v) for v in here}) < len(here):
        return None
    new = [Var(f"i{n}", dtype) for n in range(len(axes))]
    place = {var: n for n, var in enumerate(axes) if var is not None}
    parts: list[tuple[list[int], PrimExpr]] = []
    for index in index_map.final_indices:
        used = [values[var] for var in free_vars(index)]
        inside = [var for var in used if var in place]
        if inside and len(inside) == len(used):
            parts.append((sorted([place[var] for var in inside]), index))
        elif inside:
            return None
    kept = IndexMap(index_map.initial_indices, tuple([index for _, index in parts])).map_indices(
        [new[place[v]] if v in place else IntImm(dtype, 0) for v in values.values()]
    )
    finals = _with_kept_axes([uses for uses, _ in parts], kept, axes, new)
    result = IndexMap(tuple(new), tuple(finals))
    return None if _is_identity(result) else result


def _with_kept_axes(
    uses: list[list[int]], finals: list[PrimExpr], axes: _Axes, new: list[Var]
) -> list[PrimExpr]:
    """The new indices, and axes that stay behind those that come from what was before them."""
    result: list[PrimExpr] = []
    taken = 0
    for position, var in enumerate(axes):
        if var is not None:
            continue
        before = [n for n, used in enumerate(uses) if used[0] < position]
        end = max(before) + 1 if before else 0
        result += finals[taken : max(end, taken)]
        taken = max(end, taken)
        result.append(new[position])
    return [*result, *finals[taken:]]


def _is_identity(index_map: IndexMap) -> bool:
    before, after = index_map.initial_indices, index_map.final_indices
    return len(before) == len(after) and all([a is b for a, b in zip(before, after, strict=True)])


class _Accesses(Visitor):
    """How a block's spatial variables index what it reads and writes; None if in several ways or no plain one."""

    def __init__(self, spatial: list[Var]) -> None:
        self.spatial = spatial
        self.read: dict[Buffer, _Axes | None] = {}
        self.written: dict[Buffer, _Axes | None] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._note(self.read, load.buffer, [self._axis(index) for index in load.indices])
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        axes = [index if index in self.spatial else None for index in store.indices]
        exact = all(
            [
                axis is not None or isinstance(i, IntImm)
                for axis, i in zip(axes, store.indices, strict=True)
            ]
        )
        self._note(self.written, store.buffer, axes if exact else [_MIXED])
        self.visit_children(store)

    def _axis(self, index: PrimExpr) -> Var | None:
        found = [var for var in free_vars(index) if var in self.spatial]
        return found[0] if len(found) == 1 else _MIXED if found else None

    def _note(self, where: dict[Buffer, _Axes | None], buffer: Buffer, axes: Any) -> None:
        plain = None if any([axis is _MIXED for axis in axes]) else axes
        before = where.setdefault(buffer, plain)
        if before is not None and (
            plain is None or any([a is not b for a, b in zip(before, plain, strict=True)])
        ):
            where[buffer] = None


_MIXED: Any = object()


def _leaf_blocks(func: PrimFunc) -> list[Block]:
    """The blocks of the root, in order, that hold no others."""
    finder = _Blocks()
    root = func.body
    finder.visit(root.block.body if isinstance(root, BlockRealize) else root)
    return [block for block in finder.found if not _Blocks.within(block)]


class _Blocks(Visitor):
    """Outermost blocks, in order."""

    def __init__(self) -> None:
        self.found: list[Block] = []

    @staticmethod
    def within(block: Block) -> list[Block]:
        """The outermost blocks within a block."""
        finder = _Blocks()
        finder.visit(block.body)
        return finder.found

    def visit_block(self, block: Block) -> None:
        self.found.append(block)
