"""From the syntax tree of a hybrid script to an operation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.expr import PrimExpr
from tvm.tir import math_op, op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import (
    BOOL,
    INT32,
    BufferLoad,
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

from ..declare import thread_axis
from ..tensor import HybridOp, Tensor
from .calls import CALLS
from .error import HybridError

LOOPS = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
}
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: op.add, ast.Sub: op.subtract, ast.Mult: op.multiply, ast.FloorDiv: op.floordiv,
    ast.Mod: op.floormod, ast.BitAnd: math_op.bitwise_and, ast.BitOr: math_op.bitwise_or,
    ast.BitXor: math_op.bitwise_xor, ast.LShift: math_op.shift_left,
    ast.RShift: math_op.shift_right, ast.Pow: math_op.power,
    ast.Div: lambda a, b: op.true_divide(a, b),
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: op.less, ast.LtE: op.less_equal, ast.Gt: op.greater, ast.GtE: op.greater_equal,
    ast.Eq: op.equal, ast.NotEq: op.not_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A function, the names around it, and the lines before it in its file."""

    function: ast.FunctionDef
    around: dict[str, Any]
    offset: int


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
    tree = ast.parse(src) if isinstance(src, str) else src
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1:
        raise HybridError("source_to_op", 1, "one function", f"{len(functions)} of them")
    names = {**symbols, **closure_vars}
    outputs = parse_function(Source(functions[0], names, 0), args)
    return outputs[0] if len(outputs) == 1 else list(outputs)


def parse_function(source: Source, args: Sequence[Any]) -> tuple[Tensor, ...]:
    """The outputs of the operation that a function describes, called with ``args``."""
    return _Parser(source, args).run()


class _Scalar:
    """A variable of the script: memory of one element."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def load(self) -> PrimExpr:
        return BufferLoad(self.buffer, (const(0, INT32),))


class _Parser:
    def __init__(self, source: Source, args: Sequence[Any], callers: tuple[str, ...] = ()) -> None:
        function = self.function = source.function
        self.offset, self.callers = source.offset, callers
        self.names: dict[str, Any] = dict(source.around)
        self.inputs: list[tuple[Tensor, Buffer]] = []
        self.outputs: dict[str, Buffer] = {}
        self.axes: list[IterVar] = []
        self.returned: list[str] | None = None
        params = [param.arg for param in function.args.args]
        if len(params) != len(args):
            self.refuse(function, f"{len(params)} arguments", str(len(args)))
        for name, arg in zip(params, args, strict=True):
            self.names[name] = self._argument(name, arg)

    def refuse(self, node: ast.AST, required: str, found: str, hint: str = "") -> Any:
        line = getattr(node, "lineno", 1) + self.offset
        raise HybridError(self.function.name, line, required, found, hint)

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
        if isinstance(arg, _Scalar):
            return arg.load()
        return self.refuse(
            self.function, f"{name} to be a tensor, a scalar or a list", type(arg).__name__
        )

    def run(self) -> tuple[Tensor, ...]:
        body = self.block(self.function.body)
        if self.returned is None:
            self.refuse(self.function, "a return of its output tensors at the end", "none")
        outputs = [self.outputs[name] for name in self.returned or ()]
        tensors = tuple([tensor for tensor, _ in self.inputs])
        buffers = tuple([buffer for _, buffer in self.inputs])
        operation = HybridOp(
            self.function.name, "hybrid", {}, tensors, buffers, tuple(outputs), body,
            tuple(self.axes),
        )  # fmt: skip
        return operation.outputs

    # ---- statements

    def block(self, statements: Sequence[ast.stmt]) -> Stmt:
        """Statements in order; memory made by one of them is there for those behind it."""
        done: list[Stmt] = []
        for position, node in enumerate(statements):
            made = self._new_memory(node)
            if made is None:
                done.append(self.statement(node))
                continue
            buffers, first = made
            body = seq([*first, self.block(statements[position + 1 :])])
            for buffer in buffers:
                bounds = tuple([Range(0, dim) for dim in buffer.shape])
                body = BufferRealize(buffer, bounds, const(True, BOOL), body)
            return seq([*done, body])
        return seq(done)

    def _new_memory(self, node: ast.stmt) -> tuple[list[Buffer], list[Stmt]] | None:
        """The buffers that an assignment makes, and the store into it; None for other statements."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        target, value = node.targets[0], node.value
        if (source := self._script_called(value)) is not None:
            return self._inner_script(node, source)
        if not isinstance(target, ast.Name):
            return None
        called = _called(value)
        if called in ("allocate", "output_tensor"):
            buffer = self._allocated(value, target.id, called)  # type: ignore[arg-type]
            self.names[target.id] = buffer
            if called == "output_tensor":
                self.outputs[target.id] = buffer
                return [], []
            return [buffer], []
        if isinstance(self.names.get(target.id), _Scalar):
            return None
        initial = self.expression(value)
        if isinstance(initial, (tuple, Buffer)):
            self.names[target.id] = initial
            return [], []
        expr = as_expr(initial)
        buffer = decl_buffer((1,), expr.dtype, target.id)
        self.names[target.id] = _Scalar(buffer)
        return [buffer], [BufferStore(buffer, expr, (const(0, INT32),))]

    def _script_called(self, value: ast.expr) -> Source | None:
        """The script that an expression calls, if it does."""
        name = _called(value)
        find = getattr(self.names.get(name or ""), "__hybrid_source__", None)
        return None if find is None else find()

    def _inner_script(self, node: ast.Assign, source: Source) -> tuple[list[Buffer], list[Stmt]]:
        """What another script computes, in memory of this one."""
        call, target = node.value, node.targets[0]
        assert isinstance(call, ast.Call)
        name = source.function.name
        callers = (*self.callers, self.function.name)
        if name in callers:
            self.refuse(node, "scripts that do not call themselves", f"{name} in {callers[-1]}")
        inner = _Parser(source, [self.expression(arg) for arg in call.args], callers)
        body = inner.block(source.function.body)
        if inner.returned is None:
            inner.refuse(source.function, "a return of its output tensors at the end", "none")
        outputs = [inner.outputs[output] for output in inner.returned or ()]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if len(names) != len(outputs) or len(names) != len(parts):
            self.refuse(node, f"{len(outputs)} names for what {name} returns", ast.unparse(target))
        self.names.update(zip(names, outputs, strict=True))
        self.axes += inner.axes
        return outputs, [body]

    def _allocated(self, node: ast.Call, name: str, function: str) -> Buffer:
        given = dict(
            zip(("shape", "dtype", "scope"), map(self.expression, node.args), strict=False)
        )
        given.update({str(k.arg): self.expression(k.value) for k in node.keywords})
        if "shape" not in given:
            self.refuse(node, f"a shape for {function}", "none")
        shape, dtype = given["shape"], str(given.get("dtype", "float32"))
        shape = shape if isinstance(shape, tuple) else (shape,)
        if function == "output_tensor" and not self.callers:
            offset = Var("elem_offset", INT32)
            return decl_buffer(shape, dtype, name, elem_offset=offset)
        return decl_buffer(shape, dtype, name, scope=str(given.get("scope", "global")))

    def statement(self, node: ast.stmt) -> Stmt:
        if self.returned is not None:
            self.refuse(node, "the return as its last statement", "another one behind it")
        visit = getattr(self, f"_{type(node).__name__.lower()}_statement", None)
        if visit is None:
            return self.refuse(node, _SUBSET, f"a {type(node).__name__} statement")  # type: ignore[no-any-return]
        result: Stmt = visit(node)
        return result

    def _expr_statement(self, node: ast.Expr) -> Stmt:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return seq([])  # a docstring
        return self.refuse(node, _SUBSET, f"the expression {ast.unparse(node)} as a statement")  # type: ignore[no-any-return]

    def _pass_statement(self, node: ast.Pass) -> Stmt:
        return seq([])

    def _assign_statement(self, node: ast.Assign) -> Stmt:
        if len(node.targets) != 1:
            self.refuse(node, "assignments to one target", ast.unparse(node))
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            values = self.expression(node.value)
            if not isinstance(values, tuple) or len(values) != len(target.elts):
                self.refuse(node, f"{len(target.elts)} values", ast.unparse(node.value))
            for name, value in zip(target.elts, values, strict=True):
                if not isinstance(name, ast.Name):
                    self.refuse(node, "names on the left of a tuple", ast.unparse(name))
                self.names[name.id] = value  # type: ignore[attr-defined]
            return seq([])
        return self._store(target, self.expression(node.value))

    def _augassign_statement(self, node: ast.AugAssign) -> Stmt:
        combine = BINARY.get(type(node.op))
        if combine is None:
            self.refuse(node, _SUBSET, f"the operator {type(node.op).__name__}")
        assert combine is not None
        before = self.expression(node.target)
        return self._store(node.target, combine(before, self.expression(node.value)))

    def _store(self, target: ast.expr, value: Any) -> Stmt:
        if isinstance(target, ast.Name):
            scalar = self.names.get(target.id)
            if not isinstance(scalar, _Scalar):
                self.refuse(target, "a variable that can be assigned", target.id)
            buffer, indices = scalar.buffer, (const(0, INT32),)  # type: ignore[union-attr]
        elif isinstance(target, ast.Subscript):
            found = self.expression(target.value)
            if not isinstance(found, Buffer):
                self.refuse(target, "a tensor in front of [...]", ast.unparse(target.value))
            if any(found is given for _, given in self.inputs):
                self.refuse(
                    target, "stores into output and allocated tensors", f"input {found.name}"
                )
            buffer, indices = found, self._indices(target, found)  # type: ignore[assignment]
        else:
            return self.refuse(target, "elements and variables as targets", ast.unparse(target))  # type: ignore[no-any-return]
        expr = as_expr(value)
        return BufferStore(buffer, op.cast(expr, buffer.dtype), indices)

    def _indices(self, node: ast.Subscript, buffer: Buffer) -> tuple[PrimExpr, ...]:
        index = self.expression(node.slice)
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(buffer.shape):
            self.refuse(node, f"{len(buffer.shape)} indices of {buffer.name}", f"{len(indices)}")
        return tuple([as_expr(item) for item in indices])

    def _if_statement(self, node: ast.If) -> Stmt:
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

    def _assert_statement(self, node: ast.Assert) -> Stmt:
        message = StringImm("assertion failed") if node.msg is None else self.expression(node.msg)
        return AssertStmt(self.expression(node.test), as_expr(message), seq([]))

    def _for_statement(self, node: ast.For) -> Stmt:
        kind = _called(node.iter)
        if not isinstance(node.target, ast.Name) or kind is None or node.orelse:
            self.refuse(
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
            self.refuse(node, "a loop over range, serial, parallel, vectorize, unroll, bind or "
                        "const_range", str(kind), known)  # fmt: skip
        self.names = before
        return result

    def _repeat(self, node: ast.For, name: str, args: list[Any]) -> Stmt:
        """The body for each of constant values."""
        ends = [_as_number(arg) for arg in args]
        if not 1 <= len(ends) <= 3 or any(not isinstance(end, int) for end in ends):
            self.refuse(node, "constants for const_range", ", ".join(map(str, args)))
        parts = []
        for value in range(*ends):
            before = dict(self.names)
            self.names[name] = value
            parts.append(self.block(node.body))
            self.names = before
        return seq(parts)

    def _loop(self, node: ast.For, name: str, args: list[Any], kind: ForKind) -> Stmt:
        if not 1 <= len(args) <= 2:
            self.refuse(node, "one or two ends of a loop", str(len(args)))
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
        if len(args) != 2:
            self.refuse(node, "bind(thread_tag, extent)", ast.unparse(node.iter))
        thread = thread_axis((0, args[1]), str(args[0]), name)
        self.names[name] = thread.var
        return AttrStmt(thread, "thread_extent", as_expr(args[1]), self.block(node.body))

    def _return_statement(self, node: ast.Return) -> Stmt:
        if not any(node is last for last in self.function.body):
            self.refuse(node, "a return at the end of the function only", "one inside")
        value = node.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
        for part, name in zip(parts, names, strict=True):
            if name not in self.outputs:
                self.refuse(node, "a return of output tensors", ast.unparse(part) if part else "none",
                            "make them with output_tensor(shape, dtype)")  # fmt: skip
        self.returned = names
        return seq([])

    # ---- expressions

    def expression(self, node: ast.expr | None) -> Any:
        visit = getattr(self, f"_{type(node).__name__.lower()}", None)
        if visit is None:
            assert node is not None
            return self.refuse(node, _SUBSET, f"a {type(node).__name__}: {ast.unparse(node)}")
        try:
            return visit(node)
        except HybridError:
            raise
        except (TVMError, TypeError, ValueError) as error:
            assert node is not None
            return self.refuse(node, "operands that fit", f"{ast.unparse(node)}: {error}")

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            self.refuse(node, "names that are defined", node.id, suggest(node.id, self.names))
        value = self.names[node.id]
        if isinstance(value, _Scalar):
            return value.load()
        if isinstance(value, list):
            return tuple(value)
        return value

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.expression(item) for item in node.elts])

    _list = _tuple

    def _attribute(self, node: ast.Attribute) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Buffer) and node.attr in ("shape", "dtype"):
            return tuple(value.shape) if node.attr == "shape" else str(value.dtype)
        return self.refuse(node, "shape or dtype of a tensor", ast.unparse(node))

    def _subscript(self, node: ast.Subscript) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Buffer):
            return BufferLoad(value, self._indices(node, value))
        index = _as_number(self.expression(node.slice))
        if isinstance(value, tuple) and isinstance(index, int):
            if not -len(value) <= index < len(value):
                self.refuse(node, f"an index below {len(value)}", str(index))
            return value[index]
        return self.refuse(node, "a tensor, or a tuple and a constant", ast.unparse(node))

    def _binop(self, node: ast.BinOp) -> Any:
        combine = BINARY.get(type(node.op))
        if combine is None:
            self.refuse(node, _SUBSET, f"the operator {type(node.op).__name__}")
        assert combine is not None
        a, b = self.expression(node.left), self.expression(node.right)
        return combine(as_expr(a) if not isinstance(b, PrimExpr) else a, b)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not):
            return op.logical_not(as_expr(value))
        return math_op.bitwise_not(as_expr(value))

    def _compare(self, node: ast.Compare) -> Any:
        values = [self.expression(item) for item in (node.left, *node.comparators)]
        parts = []
        for kind, a, b in zip(node.ops, values, values[1:], strict=False):
            compare = COMPARE.get(type(kind))
            if compare is None:
                self.refuse(node, "comparisons of numbers", ast.unparse(node))
            assert compare is not None
            parts.append(compare(as_expr(a) if not isinstance(b, PrimExpr) else a, b))
        return op.all(*parts)

    def _boolop(self, node: ast.BoolOp) -> Any:
        values = [as_expr(self.expression(item)) for item in node.values]
        return op.all(*values) if isinstance(node.op, ast.And) else op.any(*values)

    def _ifexp(self, node: ast.IfExp) -> Any:
        condition = as_expr(self.expression(node.test))
        if isinstance(condition, IntImm):
            return self.expression(node.body if condition.value else node.orelse)
        a, b = self.expression(node.body), self.expression(node.orelse)
        return math_op.if_then_else(condition, a, b)

    def _call(self, node: ast.Call) -> Any:
        name = _called(node)
        args = [self.expression(arg) for arg in node.args]
        if name == "len":
            value = args[0] if args else None
            if isinstance(value, Buffer):
                return value.shape[0]
            if isinstance(value, tuple):
                return len(value)
            self.refuse(node, "len of a tensor or tuple", ast.unparse(node))
        function = CALLS.get(name or "")
        if function is None:
            hint = suggest(str(name), [*CALLS, "len", "allocate", "output_tensor"])
            self.refuse(node, "calls of known functions", str(name or ast.unparse(node)), hint)
        assert function is not None
        return function(*args)


_SUBSET = "the hybrid subset of Python"


def _called(node: ast.expr | None) -> str | None:
    """The name of the function that an expression calls; ``tir.sqrt`` is ``sqrt``."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def _as_number(value: Any) -> Any:
    return value.value if isinstance(value, (IntImm, FloatImm)) else value
