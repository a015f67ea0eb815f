"""What a printer must know before it starts: where buffers that no statement defines are declared.

Such a buffer is declared in the innermost body that encloses all its uses:

    for i in range(4):
        A_1 = T.Buffer((16,), data=A.data)
        A_1[i] = T.float32(0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support import deep
from tvm.tir.buffer import Buffer
from tvm.tir.expr import CommReducer, IntImm, IterVar, Let, Reduce, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, Block, DeclBuffer, For, MatchBufferRegion


class Body:
    """A sequence of statements with an indentation or scope of its own."""

    __slots__ = ("depth", "parent", "stmt")

    def __init__(self, stmt: Any, parent: Body | None) -> None:
        self.stmt = stmt
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1


class Plan(Visitor):
    """Walks a program once; the tables below are its result."""

    def __init__(self, root: Any = None) -> None:
        self.declared_in: dict[int, list[Buffer]] = {}  # id of a body -> its declarations
        self.variables: dict[Var, None] = {}  # those that expressions name
        self.bound: dict[Var, None] = {}
        self.provided: dict[Var, None] = {}  # pointers that come with a buffer's definition
        self.in_expressions: dict[Var, None] = {}  # those that expressions bind
        self.thread_scopes: dict[Var, int] = {}  # how many statements give a thread axis its extent
        self._owned: dict[Buffer, None] = {}
        self._home: dict[Buffer, Body] = {}
        self._path: list[Body] = []
        self.thread_tags: dict[Var, str] = {}
        if root is not None:
            self._walk(root)
        for buffer, body in self._home.items():
            if buffer not in self._owned:
                self.declared_in.setdefault(id(body.stmt), []).append(buffer)

    @deep
    def _walk(self, root: Any) -> None:
        if isinstance(root, PrimFunc):
            self.bound.update(dict.fromkeys(root.params))
            for buffer in root.buffer_map.values():
                self._own(buffer)
            self.body(root.body)
        else:
            self.body(root)

    def body(self, stmt: Any) -> None:
        """Visit a statement that is a body."""
        path = self._path
        path.append(Body(stmt, path[-1] if path else None))
        self.visit(stmt)
        path.pop()

    def _own(self, buffer: Buffer) -> None:
        """A statement defines this buffer, and its pointer with it."""
        self._owned[buffer] = None
        self.provided[buffer.data] = None

    def free_variables(self) -> list[Var]:
        """Variables that nothing defines."""
        return [v for v in self.variables if v not in self.bound and v not in self.provided]

    def use(self, buffer: Buffer) -> None:
        """A buffer is named in the current body."""
        home = self._home.get(buffer)
        path = self._path
        if home is None:
            self._home[buffer] = path[-1]
            if buffer not in self._owned:
                self.visit_children(buffer)
            return
        while home.depth >= len(path) or path[home.depth] is not home:
            assert home.parent is not None
            home = home.parent
        self._home[buffer] = home

    def visit_node(self, node: Any) -> None:
        if (buffer := getattr(node, "buffer", None)) is not None:
            self.use(buffer)
        self.visit_children(node)

    def visit_stmt(self, stmt: Any) -> None:
        if (buffer := getattr(stmt, "buffer", None)) is not None:
            self.use(buffer)
        for name in ("loop_var", "var", "buffer_var"):
            if (var := getattr(stmt, name, None)) is not None:
                self.bound[var] = None
        for field in type(stmt).node_fields:
            value = getattr(stmt, field.name)
            if field.role.value != "child" or value is None:
                continue
            if field.name in _BODIES:
                self.body(value)
            elif isinstance(value, tuple):
                for item in value:
                    self.visit(item)
            elif not isinstance(value, dict):
                self.visit(value)

    def visit_for(self, loop: For) -> None:
        self.bound[loop.loop_var] = None
        self.visit(loop.min)
        self.visit(loop.extent)
        self.body(loop.body)

    def visit_let(self, let: Let) -> None:
        self.bound[let.var] = None
        self.in_expressions[let.var] = None
        self.visit_children(let)

    def visit_comm_reducer(self, reducer: CommReducer) -> None:
        self.bound.update(dict.fromkeys((*reducer.lhs, *reducer.rhs)))
        self.visit_children(reducer)

    def visit_reduce(self, reduce: Reduce) -> None:
        self.in_expressions.update(dict.fromkeys([axis.var for axis in reduce.axis]))
        self.visit_children(reduce)

    def visit_var(self, var: Var) -> None:
        self.variables[var] = None

    def visit_iter_var(self, iter_var: IterVar) -> None:
        self.bound[iter_var.var] = None
        self.visit_children(iter_var)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        node = attr.node
        if isinstance(node, IterVar):
            self.visit_iter_var(node)
            if is_launch(attr):
                self.thread_tags[node.var] = node.thread_tag
                self.thread_scopes[node.var] = self.thread_scopes.get(node.var, 0) + 1
            else:
                self.in_expressions[node.var] = None
        elif isinstance(node, Buffer):
            self.use(node)
        elif isinstance(node, Var):
            self.variables[node] = None
        self.visit(attr.value)
        self.body(attr.body)

    def visit_decl_buffer(self, decl: DeclBuffer) -> None:
        self._owned[decl.buffer] = None
        self.variables[decl.buffer.data] = None
        self.visit_children(decl.buffer)
        self.body(decl.body)

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> None:
        self._own(match.buffer)
        self.visit_children(match)

    def visit_block(self, block: Block) -> None:
        for buffer in block.alloc_buffers:
            self._own(buffer)
            self.visit_children(buffer)
        # everything inside a block is printed in its body
        self._path.append(Body(block.body, self._path[-1] if self._path else None))
        for part in (*block.iter_vars, *block.match_buffers, *block.reads, *block.writes):
            self.visit(part)
        if block.init is not None:
            self.body(block.init)
        self.visit(block.body)
        self._path.pop()


def is_launch(attr: AttrStmt) -> bool:
    """Whether the statement gives a thread axis just the range that the axis has."""
    axis = attr.node
    if attr.attr_key not in ("thread_extent", "virtual_thread") or not isinstance(axis, IterVar):
        return False
    dom = axis.dom
    return axis.iter_type == IterVar.ThreadIndex and (
        dom is None
        or (
            type(dom.min) is IntImm
            and dom.min.value == 0
            and same_extents([dom.extent], [attr.value])
        )
    )


def same_extents(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    """Whether two sequences hold the same constants or objects."""
    return len(a) == len(b) and all(
        x is y or (type(x) is type(y) is IntImm and x.value == y.value and x.dtype is y.dtype)
        for x, y in zip(a, b, strict=True)
    )


_BODIES = {"body", "then_case", "else_case", "init"}
