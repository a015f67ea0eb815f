"""Loop programs that only reshape."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.arith import Analyzer
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir import PrimFunc
from tvm.tir.stmt_functor import post_order_visit as visit_statements


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a loop program copies an input element by element, in the order of memory.

    Parameters
    ----------
    func : PrimFunc
        Its last buffer is the output.
    """
    return reshaped_parameter(func) is not None


def reshaped_parameter(func: PrimFunc) -> int | None:
    """The number of the parameter that a loop program copies in the order of memory."""
    # numbers come behind buffers
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    stores = _stores(func)
    if len(buffers) < 2 or len(stores) != 1:
        return None
    ((iter_vars, store),) = stores
    load = store.value
    if store.buffer is not buffers[-1] or not isinstance(load, tir.BufferLoad):
        return None
    places = [i for i, buffer in enumerate(buffers[:-1]) if load.buffer is buffer]
    if not places or not _reads_in_order(iter_vars, store, load):
        return None
    return places[0]


def _stores(func: PrimFunc) -> list[tuple[list[Any], Any]]:
    """The stores of a loop program, each with the variables of its block."""
    blocks: list[Any] = []
    stores: list[Any] = []

    def note(node: Any) -> None:
        if isinstance(node, tir.BlockRealize):
            blocks.append(node)
        elif isinstance(node, tir.BufferStore):
            stores.append(node)

    visit_statements(func.body, note)
    around = [b for b in blocks if b.block.name_hint != "root"]
    variables = [v for b in around for v in b.block.iter_vars]
    return [(variables, store) for store in stores]


class _WithinExtents(Rewriter):
    """Leaves out the remainder of a variable by its own extent."""

    def __init__(self, extents: dict[Any, Any]) -> None:
        self.extents = extents

    def visit_floor_mod(self, expr: Any) -> Any:
        new = self.rewrite_children(expr)
        extent = self.extents.get(new.a) if isinstance(new.a, tir.Var) else None
        return new.a if extent is not None and structural_equal(extent, new.b) else new


def _reads_in_order(iter_vars: list[Any], store: Any, load: Any) -> bool:
    """Whether the flat index of what is read is that of what is written."""
    analyzer = Analyzer()
    for v in iter_vars:
        analyzer.bind(v.var, v.dom)
    extents = {v.var: v.dom.extent for v in iter_vars}
    plain = _WithinExtents(extents)
    indices = [plain.visit(analyzer.simplify(i)) for i in load.indices]
    read, written = _flat(load.buffer, indices), _flat(store.buffer, list(store.indices))
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
