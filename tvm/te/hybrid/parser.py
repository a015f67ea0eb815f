"""From the syntax tree of a hybrid script to an operation.

parser = parse_python(text, [a, b], {}, {})
parser.parsed_body         # For(i, 0, n, BufferStore(c, ...))
parser.tensors()           # the outputs of the operation
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from tvm.error import suggest
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import (
    BOOL,
    INT32,
    FloatImm,
    IntImm,
    IterVar,
    IterVarType,
    Range,
    StringImm,
    Var,
    as_expr,
    const,
)
from tvm.tir.stmt import (
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    seq,
)

from ..tensor import HybridOp, Tensor
from .calls import bind
from .error import HybridError
from .expressions import BINARY, SUBSET, ExpressionParser, Scalar, as_number, called_name
from .preprocessor import determine_variable_usage
from .utils import is_docstring, make_nop

LOOPS = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
}


@dataclass(frozen=True)
class Source:
    """A function, the names around it, and the lines before it in its file."""

    function: ast.FunctionDef
    around: dict[str, Any]
    offset: int


class Symbol(Enum):
    """What a name in a script stands for."""

    Callable = 0
    Input = 1
    OutputBuffer = 2
    GlobalBuffer = 3
    LocalBuffer = 4
    SharedBuffer = 5
    ConstVar = 6
    BufferVar = 7
    LoopVar = 8
    ConstLoopVar = 9
    ThreadBind = 10


_BUFFERS = (Symbol.Input, Symbol.OutputBuffer, Symbol.GlobalBuffer, Symbol.LocalBuffer,
            Symbol.SharedBuffer)  # fmt: skip


def source_to_op(
    src: str | ast.AST, args: Sequence[Any], symbols: dict[str, Any], closure_vars: dict[str, Any]
) -> Any:
    """The outputs of the operation that a script describes.

    Parameters
    ----------
    src : str or ast node
        The text of one function, or its syntax tree.
    args : list of Tensor or PrimExpr
        What it is called with.
    symbols, closure_vars : dict
        What other names in it mean.

    Returns
    -------
    Tensor, or a list of them
    """
    outputs = parse_python(src, args, symbols, closure_vars).tensors()
    return outputs[0] if len(outputs) == 1 else list(outputs)


def parse_python(
    src: str | ast.AST, args: Sequence[Any], symbols: dict[str, Any], closure_vars: dict[str, Any]
) -> HybridParser:
    """The parser after it read a script; the parameters are those of :func:`source_to_op`."""
    function = _only_function(ast.parse(src) if isinstance(src, str) else src)
    usage = determine_variable_usage(function, args, symbols, closure_vars)
    parser = HybridParser(args, usage, symbols, closure_vars)
    parser.visit(function)
    return parser


def _only_function(tree: ast.AST) -> ast.FunctionDef:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1:
        raise HybridError("source_to_op", 1, "one function", f"{len(functions)} of them")
    return functions[0]


def parse_function(source: Source, args: Sequence[Any]) -> tuple[Tensor, ...]:
    """The outputs of the operation that a function describes, called with ``args``."""
    parser = _parser_of(source, args)
    parser.visit(source.function)
    return parser.tensors()


def _parser_of(source: Source, args: Sequence[Any], callers: tuple[str, ...] = ()) -> HybridParser:
    parser = HybridParser(args, None, {}, source.around, source.function.name)
    parser.offset, parser.callers = source.offset, callers
    return parser


def concat_list_to_block(lst: Sequence[Stmt]) -> Stmt:
    """Statements in order as one."""
    return seq(list(lst))


def visit_list_to_block(visit: Callable[[ast.stmt], Stmt], lst: Sequence[ast.stmt]) -> Stmt:
    """What ``visit`` makes of statements, in order, as one."""
    return concat_list_to_block([visit(statement) for statement in lst])


class HybridParser(ExpressionParser):
    """Visits the syntax tree of a script; ``parsed_body`` is its body then.

    Parameters
    ----------
    args : list of Tensor or PrimExpr
        What the script is called with.
    usage : dict, optional
        Its variables, as ``determine_variable_usage`` finds them: others are rejected.
    symbols, closure_vars : dict
        What other names in it mean.
    func_name : str, optional
        The operation's name; by default the function's.
    """

    def __init__(
        self,
        args: Sequence[Any],
        usage: Mapping[str, Any] | None,
        symbols: Mapping[str, Any],
        closure_vars: Mapping[str, Any],
        func_name: str | None = None,
    ) -> None:
        self.args, self.usage = list(args), usage
        self.symbols, self.closure_vars, self.func_name = symbols, closure_vars, func_name
        self.offset = 0  # lines of the file before the function
        self.callers: tuple[str, ...] = ()  # scripts that call this one
        self.names: dict[str, Any] = {**symbols, **closure_vars}
        self.inputs: list[tuple[Tensor, Buffer]] = []
        self.outputs: dict[str, Buffer] = {}
        self.axes: list[IterVar] = []
        self.binds: list[IterVar] = []  # loops over threads around what is being read
        self.made: dict[int, list[Buffer]] = {}  # by statements, under their identities
        self.returned: list[str] | None = None
        self.function: ast.FunctionDef | None = None
        self.parsed_body: Stmt | None = None

    def visit_Module(self, node: ast.Module) -> Stmt:
        """The one function of a text."""
        return self.visit_FunctionDef(_only_function(node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Stmt:
        """The parameters and the body."""
        if self.function is not None:
            stmt: Stmt = self.generic_visit(node)
            return stmt
        self.function = node
        self.func_name = self.func_name or node.name
        params = [param.arg for param in node.args.args]
        if len(params) != len(self.args):
            self.reject(node, f"{len(params)} arguments", str(len(self.args)))
        for name, arg in zip(params, self.args, strict=True):
            self.names[name] = self._argument(name, arg)
        body = self.parsed_body = self.block(node.body)
        if self.returned is None:
            self.reject(node, "a return of its output tensors at the end", "none")
        return body

    def add_symbol(self, key: str, ty: Symbol, val: Any) -> None:
        """Let a name stand for a value.

        Parameters
        ----------
        key : str
            The name.
        ty : Symbol
            What kind of value.
        val : object
            A buffer for the kinds of buffers, a variable for loops, else an expression or a function.
        """
        wanted = Buffer if ty in _BUFFERS else Scalar if ty is Symbol.BufferVar else object
        if not isinstance(val, wanted) or (ty is Symbol.Callable and not callable(val)):
            raise TypeError(f"{ty} requires a {wanted.__name__}, got {type(val).__name__}")
        if ty is Symbol.OutputBuffer and isinstance(val, Buffer):
            self.outputs[key] = val
        self.names[key] = val

    def generic_visit(self, node: ast.AST) -> Any:
        """What no method is there for is no part of the subset."""
        kind = type(node).__name__
        found = (
            f"a {kind} statement"
            if isinstance(node, ast.stmt)
            else f"a {kind}: {ast.unparse(node)}"
        )
        return self.reject(node, SUBSET, found)

    def reject(self, node: ast.AST | None, required: str, found: str, hint: str = "") -> NoReturn:
        line = getattr(node, "lineno", 1) + self.offset
        raise HybridError(str(self.func_name or "script"), line, required, found, hint)

    def _argument(self, name: str, arg: Any) -> Any:
        if isinstance(arg, Tensor):
            for tensor, known in self.inputs:
                if tensor == arg:
                    return known
            offset = Var("elem_offset", INT32)
            buffer = decl_buffer(arg.shape, arg.dtype, name, elem_offset=offset)
            self.inputs.append((arg, buffer))
            return buffer
        if isinstance(arg, (list, tuple)):
            return tuple([self._argument(f"{name}{k}", item) for k, item in enumerate(arg)])
        if isinstance(arg, (PrimExpr, int, float, str, Buffer)):
            return arg
        if isinstance(arg, Scalar):
            return arg.load()
        return self.reject(
            self.function, f"{name} to be a tensor, a scalar or a list", type(arg).__name__
        )

    def tensors(self) -> tuple[Tensor, ...]:
        """The outputs of the operation, after the script was visited."""
        assert self.parsed_body is not None, "visit the script first"
        outputs = [self.outputs[name] for name in self.returned or ()]
        tensors = tuple([tensor for tensor, _ in self.inputs])
        buffers = tuple([buffer for _, buffer in self.inputs])
        operation = HybridOp(
            str(self.func_name), "hybrid", {}, tensors, buffers, tuple(outputs), self.parsed_body,
            tuple(self.axes),
        )  # fmt: skip
        return operation.outputs

    # ---- statements

    def visit_With(self, node: ast.With) -> Stmt:
        """No block of ``with`` is part of the subset."""
        stmt: Stmt = self.generic_visit(node)
        return stmt

    def block(self, statements: Sequence[ast.stmt]) -> Stmt:
        """Statements in order; memory made by one of them is there for those behind it."""
        done: list[Stmt] = []
        for position, node in enumerate(statements):
            made = self._new_memory(node)
            if made is None:
                done.append(self.statement(node))
                continue
            self.made[id(node)], first = made
            body = seq([*first, self.block(statements[position + 1 :])])
            return seq([*done, self.wrap_up_realize(node, body)])
        return seq(done)

    def wrap_up_realize(self, node: ast.AST, body: Stmt) -> Stmt:
        """The body inside of the memory that a statement made for it."""
        for buffer in self.made.pop(id(node), []):
            bounds = tuple([Range(0, dim) for dim in buffer.shape])
            body = BufferRealize(buffer, bounds, const(True, BOOL), body)
        return body

    def wrap_up_binds(self, body: Stmt) -> Stmt:
        """The body inside of the loops over threads around it."""
        while self.binds:
            axis = self.binds.pop()
            assert axis.dom is not None
            body = AttrStmt(axis, "thread_extent", axis.dom.extent, body)
        return body

    def _new_memory(self, node: ast.stmt) -> tuple[list[Buffer], list[Stmt]] | None:
        """The buffers that an assignment makes, and the store into it; None for other statements."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        target, value = node.targets[0], node.value
        if (source := self._script_called(value)) is not None:
            return self._inner_script(node, source)
        if not isinstance(target, ast.Name):
            return None
        if self.usage is not None and target.id not in self.usage:
            self.reject(node, "the variables that were determined", target.id)
        called = called_name(value)
        if isinstance(value, ast.Call) and called in ("allocate", "output_tensor"):
            buffer = self._allocated(value, target.id, called)
            self.names[target.id] = buffer
            if called == "output_tensor":
                self.outputs[target.id] = buffer
                return [], []
            return [buffer], []
        if isinstance(self.names.get(target.id), Scalar):
            return None
        initial = self.expression(value)
        if isinstance(initial, (tuple, Buffer)):
            self.names[target.id] = initial
            return [], []
        expr = as_expr(initial)
        if isinstance(expr, (IntImm, FloatImm)) and self._is_assigned_once(target.id):
            self.names[target.id] = expr
            return [], []
        buffer = decl_buffer((1,), expr.dtype, target.id)
        self.names[target.id] = Scalar(buffer)
        return [buffer], [BufferStore(buffer, expr, (const(0, INT32),))]

    def _is_assigned_once(self, name: str) -> bool:
        """Whether nothing but one statement of the script assigns to a name: it is no variable then."""
        assert self.function is not None
        stored = [
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
        ]
        return len(stored) == 1

    def _script_called(self, value: ast.expr) -> Source | None:
        """The script that an expression calls, if it does."""
        name = called_name(value)
        find = getattr(self.names.get(name or ""), "__hybrid_source__", None)
        return None if find is None else find()

    def _inner_script(self, node: ast.Assign, source: Source) -> tuple[list[Buffer], list[Stmt]]:
        """What another script computes, in memory of this one."""
        call, target = node.value, node.targets[0]
        assert isinstance(call, ast.Call)
        name = source.function.name
        callers = (*self.callers, str(self.func_name))
        if name in callers:
            self.reject(node, "scripts that do not call themselves", f"{name} in {callers[-1]}")
        inner = _parser_of(source, [self.expression(arg) for arg in call.args], callers)
        body = inner.visit(source.function)
        outputs = [inner.outputs[output] for output in inner.returned or ()]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if len(names) != len(outputs) or len(names) != len(parts):
            self.reject(node, f"{len(outputs)} names for what {name} returns", ast.unparse(target))
        self.names.update(zip(names, outputs, strict=True))
        self.axes += inner.axes
        return outputs, [body]

    def _allocated(self, node: ast.Call, name: str, function: str) -> Buffer:
        given = dict(
            zip(("shape", "dtype", "scope"), map(self.expression, node.args), strict=False)
        )
        given.update({str(k.arg): self.expression(k.value) for k in node.keywords})
        if "shape" not in given:
            self.reject(node, f"a shape for {function}", "none")
        shape, dtype = given["shape"], str(given.get("dtype", "float32"))
        shape = shape if isinstance(shape, tuple) else (shape,)
        if function == "output_tensor" and not self.callers:
            offset = Var("elem_offset", INT32)
            return decl_buffer(shape, dtype, name, elem_offset=offset)
        return decl_buffer(shape, dtype, name, scope=str(given.get("scope", "global")))

    def statement(self, node: ast.stmt) -> Stmt:
        if self.returned is not None:
            self.reject(node, "the return as its last statement", "another one behind it")
        result: Stmt = self.visit(node)
        return result

    def visit_Expr(self, node: ast.Expr) -> Stmt:
        if not is_docstring(node):
            self.reject(node, SUBSET, f"the expression {ast.unparse(node)} as a statement")
        return make_nop()

    def visit_Pass(self, node: ast.Pass) -> Stmt:
        return seq([])

    def visit_Assign(self, node: ast.Assign) -> Stmt:
        if len(node.targets) != 1:
            self.reject(node, "assignments to one target", ast.unparse(node))
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            values = self.expression(node.value)
            if not isinstance(values, tuple) or len(values) != len(target.elts):
                self.reject(node, f"{len(target.elts)} values", ast.unparse(node.value))
            for name, value in zip(target.elts, values, strict=True):
                if not isinstance(name, ast.Name):
                    self.reject(node, "names on the left of a tuple", ast.unparse(name))
                self.names[name.id] = value
            return seq([])
        return self._store(target, self.expression(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Stmt:
        combine = BINARY.get(type(node.op))
        if combine is None:
            self.reject(node, SUBSET, f"the operator {type(node.op).__name__}")
        assert combine is not None
        before = self.expression(node.target)
        return self._store(node.target, combine(before, self.expression(node.value)))

    def _store(self, target: ast.expr, value: Any) -> Stmt:
        indices: tuple[PrimExpr, ...]
        if isinstance(target, ast.Name):
            scalar = self.names.get(target.id)
            if not isinstance(scalar, Scalar):
                self.reject(target, "a variable that can be assigned", target.id)
            buffer, indices = scalar.buffer, (const(0, INT32),)
        elif isinstance(target, ast.Subscript):
            found = self.expression(target.value)
            if not isinstance(found, Buffer):
                self.reject(target, "a tensor in front of [...]", ast.unparse(target.value))
            buffer, indices = found, self._indices(target, found)
        else:
            self.reject(target, "elements and variables as targets", ast.unparse(target))
        expr = as_expr(value)
        return BufferStore(buffer, op.cast(expr, buffer.dtype), indices)

    def visit_If(self, node: ast.If) -> Stmt:
        condition = self.expression(node.test)
        if not isinstance(condition, PrimExpr) or isinstance(condition, IntImm):
            chosen = node.body if int(condition) else node.orelse
            return self.block(chosen)
        then = self.scoped(node.body)
        orelse = self.scoped(node.orelse) if node.orelse else None
        return IfThenElse(condition, then, orelse)

    def scoped(self, statements: Sequence[ast.stmt]) -> Stmt:
        """A block whose own names end with it."""
        before = dict(self.names)
        body = self.block(statements)
        self.names = before
        return body

    def visit_Assert(self, node: ast.Assert) -> Stmt:
        message = StringImm("assertion failed") if node.msg is None else self.expression(node.msg)
        return AssertStmt(self.expression(node.test), as_expr(message), seq([]))

    def visit_For(self, node: ast.For) -> Stmt:
        kind = called_name(node.iter)
        if not isinstance(node.target, ast.Name) or kind is None or node.orelse:
            self.reject(
                node, "loops such as `for i in range(n)`", ast.unparse(node).splitlines()[0]
            )
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        name, args = node.target.id, [self.expression(arg) for arg in node.iter.args]
        if kind == "const_range":
            return self._repeat(node, name, args)
        before = dict(self.names)
        if kind == "bind":
            result = self._bound_loop(node, name, args)
        elif kind in LOOPS:
            result = self._loop(node, name, args, LOOPS[kind])
        else:
            known = suggest(str(kind), [*LOOPS, "bind", "const_range"])
            self.reject(node, "a loop over range, serial, parallel, vectorize, unroll, bind or "
                        "const_range", str(kind), known)  # fmt: skip
        self.names = before
        return result

    def _repeat(self, node: ast.For, name: str, args: list[Any]) -> Stmt:
        """The body for each of constant values."""
        ends = [as_number(arg) for arg in args]
        if not 1 <= len(ends) <= 3 or any(not isinstance(end, int) for end in ends):
            self.reject(node, "constants for const_range", ", ".join(map(str, args)))
        parts = []
        for value in range(*ends):
            before = dict(self.names)
            self.names[name] = value
            parts.append(self.block(node.body))
            self.names = before
        return seq(parts)

    def _loop(self, node: ast.For, name: str, args: list[Any], kind: ForKind) -> Stmt:
        if not 1 <= len(args) <= 2:
            self.reject(node, "one or two ends of a loop", str(len(args)))
        low = as_expr(args[0]) if len(args) == 2 else const(0, as_expr(args[0]).dtype)
        extent = op.subtract(args[-1], low) if len(args) == 2 else as_expr(args[0])
        var = Var(name, extent.dtype)
        kinds = {
            ForKind.PARALLEL: IterVarType.Parallelized,
            ForKind.VECTORIZED: IterVarType.Vectorized,
            ForKind.UNROLLED: IterVarType.Unrolled,
        }
        axis = IterVar(Range.from_min_extent(low, extent), var, IterVarType.DataPar)
        if kind not in kinds:
            self.axes.append(axis)
        self.names[name] = var
        return For(var, low, extent, kind, self.block(node.body))

    def _bound_loop(self, node: ast.For, name: str, args: list[Any]) -> Stmt:
        try:
            axis, *_ = bind("bind", args)
        except TypeError:
            self.reject(node, "bind(thread_tag, extent)", ast.unparse(node.iter))
        axis = axis.replace(var=Var(name, axis.var.dtype))
        self.names[name] = axis.var
        outer, self.binds = self.binds, [axis]
        body = self.wrap_up_binds(self.block(node.body))
        self.binds = outer
        return body

    def visit_Return(self, node: ast.Return) -> Stmt:
        if self.function is None or not any([node is last for last in self.function.body]):
            self.reject(node, "a return at the end of the function only", "one inside")
        value = node.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
        for part, name in zip(parts, names, strict=True):
            if name not in self.outputs:
                self.reject(node, "a return of output tensors", ast.unparse(part) if part else "none",
                            "make them with output_tensor(shape, dtype)")  # fmt: skip
        self.returned = names
        return seq([])
