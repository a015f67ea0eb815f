"""Walks over loop-level programs: substitution, visits in order, free variables, renewed definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, Role
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support import deep

from .buffer import Buffer
from .expr import BufferLoad, IterVar, Let, Reduce, Var, as_expr
from .stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BufferRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    LetStmt,
    MatchBufferRegion,
    Prefetch,
    Stmt,
)

N = TypeVar("N", bound=Node)
# nodes that access a buffer
A = TypeVar("A", BufferStore, BufferRealize, DeclBuffer, Prefetch, BufferRegion, MatchBufferRegion)


class BufferRewriter(Rewriter):
    """A rewriter that also changes buffers, at their definitions and wherever they are named.

    ``map_buffer`` is asked once for each buffer; the base class visits its shape, strides,
    offset and pointer.
    """

    def __init__(self) -> None:
        self._buffers: dict[Buffer, Buffer] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        """What the buffer becomes."""
        new = self._buffers.get(buffer)
        if new is None:
            new = self._buffers[buffer] = self.map_buffer(buffer)
        return new

    def map_buffer(self, buffer: Buffer) -> Buffer:
        """The buffer with its expressions rewritten, and with the pointer that its own became."""
        data = self.visit(buffer.data)
        changed = buffer.map_children(self.visit)
        return changed if data is buffer.data else changed.replace(data=data)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        buffer = self.buffer(load.buffer)
        return load if buffer is load.buffer else load.replace(buffer=buffer)

    def _rename(self, node: A) -> A:
        node = self.rewrite_children(node)
        buffer = self.buffer(node.buffer)
        return node if buffer is node.buffer else node.replace(buffer=buffer)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        return self._rename(node)

    def visit_buffer_realize(self, node: BufferRealize) -> Stmt:
        return self._rename(node)

    def visit_decl_buffer(self, node: DeclBuffer) -> Stmt:
        return self._rename(node)

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        return self._rename(node)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        return self._rename(node)

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> MatchBufferRegion:
        return self._rename(node)

    def visit_block(self, block: Block) -> Stmt:
        new = self.rewrite_children(block)
        buffers = [self.buffer(buffer) for buffer in block.alloc_buffers]
        if any(a is not b for a, b in zip(buffers, block.alloc_buffers, strict=True)):
            new = new.replace(alloc_buffers=tuple(buffers))
        annotations = {key: self._annotation(item) for key, item in block.annotations.items()}
        if any(item is not block.annotations[key] for key, item in annotations.items()):
            new = new.replace(annotations=annotations)
        return new

    def _annotation(self, value: Any) -> Any:
        """The value of an annotation: a buffer, a list of some, or something else."""
        if isinstance(value, Buffer):
            return self.buffer(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, Buffer) for item in value):
            return [self._annotation(item) for item in value]
        return value


class Substituter(BufferRewriter):
    """Replaces variables by expressions, in buffers as well."""

    def __init__(self, mapping: Mapping[Var, PrimExpr]) -> None:
        super().__init__()
        self.mapping = mapping

    def visit_var(self, var: Var) -> PrimExpr:
        return self.mapping.get(var, var)

    def visit_allocate(self, stmt: Allocate) -> Stmt:
        return self._rename_pointer(stmt)

    def visit_allocate_const(self, stmt: AllocateConst) -> Stmt:
        return self._rename_pointer(stmt)

    def visit_decl_buffer(self, node: DeclBuffer) -> Stmt:
        pointer = self.mapping.get(node.buffer.data)
        if pointer is None or isinstance(pointer, Var):
            return super().visit_decl_buffer(node)
        # a buffer's pointer is a variable: it has the value that takes the place of the old one
        name = Var(node.buffer.data.name, node.buffer.data.type_annotation or "handle")
        self._buffers[node.buffer] = node.buffer.map_children(self.visit).replace(data=name)
        return LetStmt(name, pointer, super().visit_decl_buffer(node))

    def _rename_pointer(self, stmt: Any) -> Stmt:
        new = self.rewrite_children(stmt)
        pointer = self.mapping.get(stmt.buffer_var)
        result: Stmt = new.replace(buffer_var=pointer) if isinstance(pointer, Var) else new
        return result

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        new = self.rewrite_children(attr)
        node = attr.node
        if isinstance(node, (Var, Buffer)):
            named = self.mapping.get(node) if isinstance(node, Var) else self.buffer(node)
            if named is not None and named is not node:
                return new.replace(node=named)
        return new


@deep
def substitute(node: Any, vmap: Mapping[Var, Any]) -> Any:
    """The statement or expression (or function's body) with variables replaced.

    Buffers whose pointer, shape, strides or offset mention a replaced variable are replaced too.

    Parameters
    ----------
    node : Stmt, PrimExpr, or a list of them
    vmap : dict of Var to PrimExpr
    """
    substituter = Substituter({var: as_expr(value, var.dtype) for var, value in vmap.items()})
    if isinstance(node, (list, tuple)):
        return type(node)([substituter.visit(item) for item in node])
    return substituter.visit(node)


class _OrderedVisit(Visitor):
    """Calls a function once for each statement and expression."""

    def __init__(self, fvisit: Callable[[Any], Any], pre_order: bool) -> None:
        self.fvisit = fvisit
        self.pre_order = pre_order
        self.seen: set[int] = set()

    def visit(self, node: Any) -> None:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        told = isinstance(node, (PrimExpr, Stmt))
        if self.pre_order:
            if told and self.fvisit(node) is False:
                return
            self.visit_children(node)
        else:
            self.visit_children(node)
            if told:
                self.fvisit(node)


@deep
def post_order_visit(stmt: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call ``fvisit`` for each statement and expression, children first, each object once."""
    _OrderedVisit(fvisit, pre_order=False).visit(stmt)


@deep
def pre_order_visit(stmt: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call ``fvisit`` for each statement and expression, parents first.

    The children of a node for which it returns False are left out.
    """
    _OrderedVisit(fvisit, pre_order=True).visit(stmt)


class _Transformer(Rewriter):
    def __init__(
        self,
        preorder: Callable[[Any], Any] | None,
        postorder: Callable[[Any], Any] | None,
        only_enable: Sequence[str] | None,
    ) -> None:
        self.preorder = preorder
        self.postorder = postorder
        self.only = None if only_enable is None else frozenset(only_enable)

    def visit(self, node: Any) -> Any:
        enabled = isinstance(node, (PrimExpr, Stmt)) and (
            self.only is None or node.type_key in self.only
        )
        if enabled and self.preorder is not None:
            if (new := self.preorder(node)) is not None:
                return new
        node = self.rewrite_children(node)
        if enabled and self.postorder is not None:
            if (new := self.postorder(node)) is not None:
                return new
        return node


@deep
def ir_transform(
    stmt: Any,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> Any:
    """Rewrite a program by functions of its nodes.

    Parameters
    ----------
    stmt : Stmt or PrimExpr
    preorder : callable, optional
        Called before the children are rewritten; a result other than None takes the node's place
        and is not looked into.
    postorder : callable, optional
        Called with the node whose children are rewritten; None keeps it.
    only_enable : list of str, optional
        The type keys (``"tir.For"``) of the nodes the functions are called for.
    """
    return _Transformer(preorder, postorder, only_enable).visit(stmt)


class _FreeVars(Visitor):
    """Collects variables that no node around them binds, in order of their first use."""

    def __init__(self, defined: Sequence[Var]) -> None:
        self.defined: dict[Var, int] = dict.fromkeys(defined, 1)
        self.found: dict[Var, None] = {}
        self.seen_buffers: dict[Buffer, None] = {}
        self._matched: list[Buffer] = []  # what the node at hand defines

    def visit(self, node: Any) -> None:
        cls = type(node)
        bound = self._bind(node, cls)
        for name in _REFERENCES[cls]:
            # an attribute may tell something of what its body defines, such as a fragment's shape
            if cls is not AttrStmt:
                self._use(getattr(node, name))
        if (method := self._dispatch[cls]) is not None:
            method(self, node)
        for var in bound:
            self.defined[var] -= 1

    def visit_var(self, var: Var) -> None:
        if not self.defined.get(var):
            self.found[var] = None

    def _bind(self, node: Any, cls: type) -> list[Var]:
        """Define what the node binds in its fields; the result is to be undone after it."""
        bound: list[Var] = []
        for name in _BINDERS[cls]:
            value = getattr(node, name)
            if isinstance(value, dict):
                value = tuple(value.values())
            for item in value if isinstance(value, tuple) else (value,):
                self._define(item, cls, bound)
        if cls is AttrStmt and isinstance(node.node, IterVar):
            self._define(node.node, cls, bound)
        elif cls is BufferRealize:
            self._define(node.buffer, cls, bound)
        elif cls is Reduce:
            for axis in node.axis:
                self._define(axis, cls, bound)
        elif cls is Block:
            for axis in node.iter_vars:
                self._define(axis, cls, bound)
            for match in node.match_buffers:
                self._define(match.buffer, MatchBufferRegion, bound)
        # extents of one buffer may be computed from those that another one gives values
        matched, self._matched = self._matched, []
        for buffer in matched:
            self._use(buffer)
        return bound

    def _define(self, item: Any, cls: type, bound: list[Var]) -> None:
        if not isinstance(item, Buffer):
            variables = [item.var if isinstance(item, IterVar) else item]
        elif cls is DeclBuffer:
            variables = []  # a declared view uses its pointer, other definitions provide it
        elif cls in (Block, BufferRealize):
            variables = [item.data]
        else:
            # a buffer that is matched gives its symbolic extents their values
            parts = (*item.shape, *item.strides, item.elem_offset)
            variables = [item.data, *[part for part in parts if isinstance(part, Var)]]
        for var in variables:
            self.defined[var] = self.defined.get(var, 0) + 1
        bound += variables
        if isinstance(item, Buffer):
            self._matched.append(item)

    def _use(self, value: Any) -> None:
        if isinstance(value, Var):
            self.visit_var(value)
        elif isinstance(value, Buffer) and value not in self.seen_buffers:
            self.seen_buffers[value] = None
            self.visit_var(value.data)
            self.visit_children(value)


class _FieldsOfRole(dict[type, tuple[str, ...]]):
    def __init__(self, role: Role) -> None:
        super().__init__()
        self.role = role

    def __missing__(self, cls: type) -> tuple[str, ...]:
        fields = getattr(cls, "node_fields", ())
        names = tuple([field.name for field in fields if field.role is self.role])
        self[cls] = names
        return names


_BINDERS = _FieldsOfRole(Role.BINDER)
_REFERENCES = _FieldsOfRole(Role.REFERENCE)


@deep
def free_vars(node: Any, defined: Sequence[Var] = ()) -> list[Var]:
    """The variables used in a statement, expression or function but not bound in it.

    A buffer's pointer counts as used where the buffer is.
    """
    visitor = _FreeVars(defined)
    visitor.visit(node)
    return list(visitor.found)


def variables_of(*exprs: PrimExpr) -> dict[Var, None]:
    """The variables that occur in expressions, in the order of their first use; no buffers' pointers."""
    visitor = _Variables()
    for expr in exprs:
        visitor.visit(expr)
    return visitor.found


class _Variables(Visitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, var: Var) -> None:
        self.found[var] = None


class _DefinitionRenewer(BufferRewriter):
    """Gives every definition a variable or buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[Var, Var] = {}

    def renew(self, var: Var) -> Var:
        new = self.variables.get(var)
        if new is None:
            new = self.variables[var] = var.replace(name=var.name)
        return new

    def visit_var(self, var: Var) -> PrimExpr:
        return self.variables.get(var, var)

    def define_buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            data = buffer.data
            if data not in self.variables:
                self.renew(data)
            for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                if isinstance(expr, Var):
                    self.renew(expr)
            new = self.map_buffer(buffer)
            self._buffers[buffer] = new.replace(name=new.name) if new is buffer else new
        return self._buffers[buffer]

    def visit_for(self, node: For) -> Any:
        return self._rebind(node, "loop_var")

    def visit_let(self, node: Let) -> Any:
        return self._rebind(node, "var")

    def visit_let_stmt(self, node: LetStmt) -> Any:
        return self._rebind(node, "var")

    def visit_allocate(self, node: Allocate) -> Any:
        return self._rebind(node, "buffer_var")

    def visit_allocate_const(self, node: AllocateConst) -> Any:
        return self._rebind(node, "buffer_var")

    def visit_iter_var(self, node: IterVar) -> Any:
        return self._rebind(node, "var")

    def _rebind(self, node: Any, name: str) -> Any:
        new = self.renew(getattr(node, name))
        return self.rewrite_children(node).replace(**{name: new})

    def visit_buffer_realize(self, node: BufferRealize) -> Stmt:
        self.define_buffer(node.buffer)
        return super().visit_buffer_realize(node)

    def visit_decl_buffer(self, node: DeclBuffer) -> Stmt:
        self.define_view(node.buffer)
        return super().visit_decl_buffer(node)

    def define_view(self, buffer: Buffer) -> None:
        """A view's pointer is defined elsewhere."""
        new = self.map_buffer(buffer)
        self._buffers[buffer] = new.replace(name=new.name) if new is buffer else new

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> MatchBufferRegion:
        self.define_buffer(node.buffer)
        return super().visit_match_buffer_region(node)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        named = node.node
        if isinstance(named, IterVar):
            return self.rewrite_children(node.replace(node=self.visit(named)))
        new = self.rewrite_children(node)
        if not isinstance(named, Var):
            return new
        # what the attribute tells of may be defined in its body
        renewed = self.visit(named)
        return new if renewed is named else new.replace(node=renewed)

    def visit_block(self, block: Block) -> Stmt:
        for iter_var in block.iter_vars:
            self.renew(iter_var.var)
        for buffer in block.alloc_buffers:
            self.define_buffer(buffer)
        # views come before the regions and the body that name them
        matches = tuple([self.visit(match) for match in block.match_buffers])
        return super().visit_block(block.replace(match_buffers=())).replace(match_buffers=matches)


@deep
def renew_defs(func: Any) -> Any:
    """The function with new objects for everything it defines: parameters, buffers, variables."""
    renewer = _DefinitionRenewer()
    params = tuple([renewer.renew(param) for param in func.params])
    buffer_map = {
        renewer.renew(param): renewer.define_buffer(buffer)
        for param, buffer in func.buffer_map.items()
    }
    return func.replace(params=params, buffer_map=buffer_map, body=renewer.visit(func.body))
