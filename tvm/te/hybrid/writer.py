"""Printing a lowered function as a hybrid script."""

from __future__ import annotations

from typing import Any

from tvm.error import LoweringError
from tvm.ir.visitor import Visitor
from tvm.support.naming import UniqueNames
from tvm.tir import expr as e
from tvm.tir import stmt as s
from tvm.tir.function import PrimFunc

OPERATORS: dict[type, str] = {
    e.Add: "+", e.Sub: "-", e.Mul: "*", e.FloorDiv: "//", e.FloorMod: "%", e.LT: "<", e.LE: "<=",
    e.GT: ">", e.GE: ">=", e.EQ: "==", e.NE: "!=", e.And: "and", e.Or: "or",
}  # fmt: skip
LOOPS = {
    s.ForKind.SERIAL: "range",
    s.ForKind.PARALLEL: "parallel",
    s.ForKind.VECTORIZED: "vectorize",
    s.ForKind.UNROLLED: "unroll",
}


def write_script(func: PrimFunc, inputs: int, name: str) -> str:
    """The text of a function whose parameters behind the first ``inputs`` are its outputs."""
    writer = _Writer()
    params = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        params.append(writer.name_of(buffer if buffer is not None else param))
    writer.lines.append(f"def {name}({', '.join(params[:inputs])}):")
    writer.depth = 1
    for param, text in zip(func.params[inputs:], params[inputs:], strict=True):
        buffer = func.buffer_map[param]
        writer.line(f"{text} = output_tensor({writer.shape(buffer.shape)}, '{buffer.dtype}')")
    writer.visit(func.body)
    writer.line(f"return {', '.join(params[inputs:])}")
    return "\n".join(writer.lines) + "\n"


class _Writer(Visitor):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[Any, str] = {}
        self.supply = UniqueNames()

    def name_of(self, item: Any) -> str:
        if item not in self.names:
            self.names[item] = self.supply.fresh(item.name.replace(".", "_"))
        return self.names[item]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def inside(self, body: s.Stmt) -> None:
        self.depth += 1
        count = len(self.lines)
        self.visit(body)
        if len(self.lines) == count:
            self.line("pass")
        self.depth -= 1

    def shape(self, dims: Any) -> str:
        return f"({''.join([f'{self.visit(dim)}, ' for dim in dims])})"

    def visit_stmt(self, stmt: s.Stmt) -> None:
        raise LoweringError(
            f"hybrid.build requires loops, stores and conditions, got a {type(stmt).__name__}",
            at=stmt,
        )

    def visit_seq_stmt(self, stmt: s.SeqStmt) -> None:
        for part in stmt.seq:
            self.visit(part)

    def visit_for(self, loop: s.For) -> None:
        first, count = self.visit(loop.min), self.visit(loop.extent)
        ends = count if first == "0" else f"{first}, {first} + {count}"
        self.line(f"for {self.name_of(loop.loop_var)} in {LOOPS[loop.kind]}({ends}):")
        self.inside(loop.body)

    def visit_if_then_else(self, stmt: s.IfThenElse) -> None:
        self.line(f"if {self.visit(stmt.condition)}:")
        self.inside(stmt.then_case)
        if stmt.else_case is not None:
            self.line("else:")
            self.inside(stmt.else_case)

    def visit_assert_stmt(self, stmt: s.AssertStmt) -> None:
        self.line(f"assert {self.visit(stmt.condition)}, {self.visit(stmt.message)}")
        self.visit(stmt.body)

    def visit_string_imm(self, text: e.StringImm) -> str:
        return repr(text.value)

    def visit_buffer_realize(self, stmt: s.BufferRealize) -> None:
        buffer = stmt.buffer
        scope = buffer.scope()
        # the whole buffer, for the indices do not start at the region's
        text = f"allocate({self.shape(buffer.shape)}, '{buffer.dtype}', '{scope}')"
        self.line(f"{self.name_of(buffer)} = {text}")
        self.visit(stmt.body)

    def visit_buffer_store(self, store: s.BufferStore) -> None:
        self.line(f"{self._element(store)} = {self.visit(store.value)}")

    def visit_attr_stmt(self, attr: s.AttrStmt) -> None:
        if attr.attr_key == "thread_extent":
            thread: Any = attr.node
            extent = self.visit(attr.value)
            self.line(f"for {self.name_of(thread.var)} in bind('{thread.thread_tag}', {extent}):")
            self.inside(attr.body)
        else:
            self.visit(attr.body)

    def visit_let_stmt(self, let: s.LetStmt) -> None:
        self.line(f"{self.name_of(let.var)} = {self.visit(let.value)}")
        self.visit(let.body)

    def visit_evaluate(self, stmt: s.Evaluate) -> None:
        if not isinstance(stmt.value, e.IntImm):
            self.visit_stmt(stmt)

    def _element(self, access: Any) -> str:
        indices = ", ".join([self.visit(index) for index in access.indices])
        return f"{self.name_of(access.buffer)}[{indices or '()'}]"

    def visit_buffer_load(self, load: e.BufferLoad) -> str:
        return self._element(load)

    def visit_var(self, var: e.Var) -> str:
        return self.name_of(var)

    def visit_int_imm(self, value: e.IntImm) -> str:
        return str(bool(value.value) if value.dtype.is_bool else value.value)

    def visit_float_imm(self, value: e.FloatImm) -> str:
        return f"{value.dtype}({float(value.value)!r})"

    def visit_cast(self, expr: e.Cast) -> str:
        return f"{expr.dtype}({self.visit(expr.value)})"

    def visit_not(self, expr: e.Not) -> str:
        return f"(not {self.visit(expr.a)})"

    def visit_select(self, expr: e.Select) -> str:
        return self._choice(expr.condition, expr.true_value, expr.false_value)

    def _choice(self, condition: Any, a: Any, b: Any) -> str:
        return f"({self.visit(a)} if {self.visit(condition)} else {self.visit(b)})"

    def visit_call(self, call: e.Call) -> str:
        name = getattr(call.op, "name", "?").removeprefix("tir.")
        if name == "if_then_else":
            return self._choice(*call.args)
        names = {"pow": "power", "fabs": "abs"}
        args = ", ".join([self.visit(arg) for arg in call.args])
        return f"{names.get(name, name)}({args})"

    def visit_prim_expr(self, expr: Any) -> str:
        operands = [self.visit(part) for part in expr.children()]
        if isinstance(expr, (e.Max, e.Min)):
            return f"{type(expr).__name__.lower()}({', '.join(operands)})"
        if isinstance(expr, e.Div):
            # quotients of floats, or of whole numbers towards zero
            quotient = f"({operands[0]} / {operands[1]})"
            return quotient if expr.dtype.is_float else f"int({quotient})"
        symbol = OPERATORS.get(type(expr))
        if symbol is None:
            raise LoweringError(f"hybrid.build requires scalar expressions, got {expr}")
        return f"({operands[0]} {symbol} {operands[1]})"
