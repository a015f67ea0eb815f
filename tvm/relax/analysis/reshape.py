"""Loop programs that only reshape."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.arith import Analyzer
from tvm.tir import PrimFunc
from tvm.tir.stmt_functor import post_order_visit as visit_statements
from tvm.tir.stmt_functor import substitute


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a loop program copies its input element by element, in the order of memory.

    Parameters
    ----------
    func : PrimFunc
        Its first buffer is the input, its last one the output.
    """
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if len(buffers) < 2:
        return False
    source, target = buffers[0], buffers[-1]
    blocks: list[Any] = []
    visit_statements(
        func.body, lambda s: blocks.append(s) if isinstance(s, tir.BlockRealize) else None
    )
    leaves = [b for b in blocks if isinstance(b.block.body, tir.BufferStore)]
    if len(leaves) != 1:
        return False
    realize = leaves[0]
    store = realize.block.body
    load = store.value
    if store.buffer is not target or not isinstance(load, tir.BufferLoad):
        return False
    if load.buffer is not source:
        return False
    return _reads_in_order(func, realize, store, load)


def _reads_in_order(func: PrimFunc, realize: Any, store: Any, load: Any) -> bool:
    """Whether the flat index of what is read is that of what is written."""
    analyzer = Analyzer()
    for v in realize.block.iter_vars:
        analyzer.bind(v.var, v.dom)
    values = {v.var: v.var for v in realize.block.iter_vars}
    read = _flat(load.buffer, [substitute(i, values) for i in load.indices])
    written = _flat(store.buffer, list(store.indices))
    if analyzer.can_prove_equal(read, written):
        return True
    return bool(
        analyzer.can_prove(tir.EQ(analyzer.simplify(read - written), tir.IntImm(read.dtype, 0)))
    )


def _flat(buffer: Any, indices: list[Any]) -> Any:
    flat: Any = tir.IntImm("int64", 0)
    for index, extent in zip(indices, buffer.shape, strict=True):
        flat = flat * _wide(extent) + _wide(index)
    return flat


def _wide(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return tir.IntImm("int64", value.value)
    return value if value.dtype == "int64" else value.astype("int64")
