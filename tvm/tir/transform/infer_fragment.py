"""Tell the shape and layout of each fragment of a matrix unit where it is allocated.

F = allocate(wmma.matrix_a)  ->    attr(F, "fragment_shape", "16, 16, 16")
tvm_load_matrix_sync(F, ...)       attr(F, "fragment_layout", "row_major")
                                   F = allocate(wmma.matrix_a) ...
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.expr import Call, StringImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import Allocate, AttrStmt, Stmt
from tvm.tir.transform.common import as_int, prim_func_pass

LOADS = (INTRINSICS["tvm_load_matrix_sync"], INTRINSICS["tvm_store_matrix_sync"])
FILL = INTRINSICS["tvm_fill_fragment"]
PRODUCTS = (INTRINSICS["tvm_mma_sync"], INTRINSICS["tvm_bmma_sync"])
LAYOUTED = ("wmma.matrix_a", "wmma.matrix_b")


@dataclass
class Fragment:
    """What the calls tell of a fragment."""

    shape: tuple[int, int, int]
    layout: str = ""


class FragmentFinder(Visitor):
    """Reads loads, stores and fills; those of one fragment have to agree."""

    def __init__(self) -> None:
        self.found: dict[Var, Fragment] = {}

    def visit_call(self, call: Call) -> None:
        self.visit_children(call)
        if call.op in LOADS or call.op is FILL:
            self._describe(call)
        elif call.op in PRODUCTS:
            self._compare(call)

    def _describe(self, call: Call) -> None:
        pointer = call.args[0]
        if not isinstance(pointer, Var):
            raise LoweringError(
                f"a fragment needs to be a pointer variable, got {pointer}", at=call
            )
        m, n, k = [as_int(arg) for arg in call.args[1:4]]
        layout = call.args[7] if call.op is LOADS[0] else None
        text = layout.value if isinstance(layout, StringImm) else ""
        known = self.found.setdefault(pointer, Fragment((m, n, k), text))
        if known.shape != (m, n, k) or (text and known.layout and known.layout != text):
            raise LoweringError(
                f"fragment {pointer.name} needs one shape and layout, got {known.shape} "
                f"{known.layout} and {(m, n, k)} {text}",
                at=call,
            )
        known.layout = known.layout or text

    def _compare(self, call: Call) -> None:
        shapes = [
            self.found[arg].shape
            for arg in call.args[::2]
            if isinstance(arg, Var) and arg in self.found
        ]
        if any([shape != shapes[0] for shape in shapes]):
            raise LoweringError(f"a product needs fragments of one shape, got {shapes}", at=call)


class FragmentAnnotator(Rewriter):
    """Writes the attributes."""

    def __init__(self, found: dict[Var, Fragment]) -> None:
        self.found = found

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        stmt: Stmt = self.rewrite_children(alloc)
        fragment = self.found.get(alloc.buffer_var)
        if fragment is None:
            return stmt
        shape = StringImm(", ".join([str(extent) for extent in fragment.shape]))
        stmt = AttrStmt(alloc.buffer_var, "fragment_shape", shape, stmt)
        scope = getattr(alloc.buffer_var.type_annotation, "storage_scope", "")
        if scope in LAYOUTED:
            layout = StringImm(fragment.layout)
            stmt = AttrStmt(alloc.buffer_var, "fragment_layout", layout, stmt)
        return stmt

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "fragment_shape" and attr.node in self.found:
            return attr
        return self.rewrite_children(attr)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


@prim_func_pass("tir.InferFragment")
def infer_fragment(func: PrimFunc) -> PrimFunc:
    """Annotate the fragments of the function."""
    finder = FragmentFinder()
    finder.visit(func.body)
    if not finder.found:
        return func
    return func.with_body(FragmentAnnotator(finder.found).visit(func.body))


InferFragment = infer_fragment.factory
