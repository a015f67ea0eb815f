"""How expressions are written, with no more parentheses than Python needs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.op import Op
from tvm.ir.script_printer import PrinterConfig
from tvm.ir.type import PointerType, PrimType, Type
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType, ScalableLanes
from tvm.tir import expr as e
from tvm.tir import fold, op
from tvm.tir.buffer import Buffer

from .names import Names

Fold = Callable[[PrimExpr, PrimExpr], "PrimExpr | None"]

OR, AND, NOT, COMPARE, SUM, PRODUCT, ATOM = 1, 2, 3, 4, 9, 10, 20


def _compares(_: PrimExpr, __: PrimExpr) -> PrimExpr | None:
    """Comparisons and logic of constants fold whatever the operator."""
    constant = e.Kind.CONSTANT
    both = e.KINDS[type(_)] is constant and e.KINDS[type(__)] is constant
    return _ if both else None


def _any_constant(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    return a if type(a) is e.IntImm or type(b) is e.IntImm else None


# operators: text, precedence, and what folds where one operand is a constant
OPERATORS: dict[type, tuple[str, int, Fold]] = {
    e.Add: (" + ", SUM, fold.fold_add),
    e.Sub: (" - ", SUM, fold.fold_sub),
    e.Mul: (" * ", PRODUCT, fold.fold_mul),
    e.Div: (" / ", PRODUCT, fold.fold_div),
    e.FloorDiv: (" // ", PRODUCT, fold.fold_floordiv),
    e.FloorMod: (" % ", PRODUCT, fold.fold_floormod),
    e.EQ: (" == ", COMPARE, _compares),
    e.NE: (" != ", COMPARE, _compares),
    e.LT: (" < ", COMPARE, _compares),
    e.LE: (" <= ", COMPARE, _compares),
    e.GT: (" > ", COMPARE, _compares),
    e.GE: (" >= ", COMPARE, _compares),
    e.And: (" and ", AND, _any_constant),
    e.Or: (" or ", OR, _any_constant),
}
# operators that are written as calls: name, and what folds
CALLED: dict[type, tuple[str, Fold]] = {
    e.Mod: ("truncmod", fold.fold_mod),
    e.Min: ("min", fold.fold_min),
    e.Max: ("max", fold.fold_max),
}
# intrinsics whose data type is written, before or after the arguments
DTYPE_FIRST = frozenset(
    ["call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret", "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix", "ptx_cp_async", "ptx_cp_async_bulk", "mma_store", "mma_fill", "vectorlow", "vectorhigh", "vectorcombine", "type_annotation", "get_active_lane_mask"]
)  # fmt: skip
DTYPE_LAST = frozenset(["tvm_struct_get"])
SCRIPT_NAMES = {
    "tvm_call_packed": "call_packed",
    "tvm_call_cpacked": "call_cpacked",
    "tvm_call_packed_lowered": "call_packed_lowered",
    "tvm_call_cpacked_lowered": "call_cpacked_lowered",
}


class ExprPrinter(Visitor):
    """Appends pieces of text to ``out``; nested expressions cost no copying."""

    def __init__(self, config: PrinterConfig) -> None:
        self.config = config
        self.T = config.tir_prefix
        self.out: list[str] = []
        self.names = Names([config.tir_prefix, config.ir_prefix, config.module_alias])

    # ---- pieces

    def text_of(self, write: Callable[..., Any], *args: Any) -> str:
        """What ``write`` appends, as a text of its own."""
        outer, self.out = self.out, []
        write(*args)
        result, self.out = "".join(self.out), outer
        return result

    def call(self, name: str, *args: Any, **keywords: Any) -> None:
        """``T.name(args, key=value)``; an argument is a node, or a text to be taken as it is."""
        self.out.append(f"{self.T}.{name}(")
        separator = ""
        for arg in args:
            self.out.append(separator)
            self.argument(arg)
            separator = ", "
        for key, value in keywords.items():
            self.out.append(f"{separator}{key}=")
            self.argument(value)
            separator = ", "
        self.out.append(")")

    def argument(self, value: Any) -> None:
        """A node, a sequence of them in brackets, or a text."""
        if isinstance(value, str):
            self.out.append(value)
        elif isinstance(value, (tuple, list)):
            self.out.append("[")
            self.items(value)
            self.out.append("]")
        else:
            self.visit(value)

    def items(self, values: Sequence[Any]) -> None:
        """Nodes, separated by commas."""
        separator = ""
        for value in values:
            self.out.append(separator)
            self.visit(value)
            separator = ", "

    def shape(self, values: Sequence[PrimExpr]) -> None:
        """A tuple of extents."""
        self.out.append("(")
        self.items(values)
        self.out.append(",)" if len(values) == 1 else ")")

    def operand(self, expr: PrimExpr, least: int) -> None:
        """An operand, in parentheses if it binds less tightly than ``least``."""
        syntax = OPERATORS.get(type(expr))
        if syntax is None:
            wrapped = type(expr) is e.Not and least > NOT
        else:
            wrapped = syntax[1] < least and not self._folds(expr, syntax[2])
        if wrapped:
            self.out.append("(")
            self.visit(expr)
            self.out.append(")")
        else:
            self.visit(expr)

    @staticmethod
    def _folds(expr: Any, folded: Fold) -> bool:
        """Whether the operator would simplify, so that the node must be written by its name."""
        a, b = expr.a, expr.b
        if not (e.KINDS[type(a)] or e.KINDS[type(b)]):
            return type(expr) is e.Div and not a.dtype.is_float
        try:
            return (type(expr) is e.Div and not a.dtype.is_float) or folded(a, b) is not None
        except fold.DivideByZeroError:
            return True

    # ---- constants and variables

    def visit_int_imm(self, imm: e.IntImm) -> None:
        self.out.append(self.integer(imm.value, imm.dtype))

    def integer(self, value: int, dtype: DType) -> str:
        if dtype == self.config.int_dtype:
            return str(value)
        return f"{self.T}.{dtype}({bool(value) if dtype.is_bool else value})"

    def visit_float_imm(self, imm: e.FloatImm) -> None:
        value = imm.value
        text = f"{value!r}" if math.isfinite(value) else f'"{value}"'
        bare = imm.dtype == self.config.float_dtype
        self.out.append(text if bare else f"{self.T}.{imm.dtype}({text})")

    def visit_string_imm(self, imm: e.StringImm) -> None:
        self.out.append(json.dumps(imm.value))

    def visit_var(self, var: e.Var) -> None:
        self.out.append(self.name_of(var))

    def name_of(self, var: e.Var) -> str:
        """The variable's name; one that nothing defines gets one on the way."""
        found = self.names.texts.get(var)
        return self.names.define(var, var.name) if found is None else found

    def buffer_name(self, buffer: Buffer) -> str:
        """The buffer's name."""
        found = self.names.texts.get(buffer)
        return self.define_buffer(buffer) if found is None else found

    def define_buffer(self, buffer: Buffer) -> str:
        """Name a buffer, and its pointer after it."""
        name = self.names.define(buffer, buffer.name or "buffer")
        if buffer.data not in self.names.texts:
            self.names.bind(buffer.data, f"{name}.data")
        return name

    def visit_buffer(self, buffer: Buffer) -> None:
        self.out.append(self.buffer_name(buffer))

    # ---- operators

    def _binary(self, expr: Any) -> None:
        text, level, folded = OPERATORS[type(expr)]
        if self._folds(expr, folded):
            self.call(type(expr).__name__, expr.a, expr.b)
            return
        # comparisons do not chain
        self.operand(expr.a, level + 1 if level == COMPARE else level)
        self.out.append(text)
        self.operand(expr.b, level + 1)

    visit_binary_op_expr = _binary
    visit_cmp_expr = _binary
    visit_logical_expr = _binary

    def _called(self, expr: Any) -> None:
        name, folded = CALLED[type(expr)]
        same = expr.a is expr.b and type(expr) is not e.Mod
        known = same or self._folds(expr, folded)
        self.call(type(expr).__name__ if known else name, expr.a, expr.b)

    visit_mod = visit_min = visit_max = _called

    def visit_not(self, expr: e.Not) -> None:
        if type(expr.a) is e.IntImm:
            self.call("Not", expr.a)
            return
        self.out.append("not ")
        self.operand(expr.a, NOT)

    def visit_cast(self, expr: e.Cast) -> None:
        self.call("Cast", f'"{expr.dtype}"', expr.value)

    def visit_select(self, expr: e.Select) -> None:
        self.call("Select", expr.condition, expr.true_value, expr.false_value)

    # ---- vectors

    def visit_ramp(self, expr: e.Ramp) -> None:
        self.call("Ramp", expr.base, expr.stride, self._lanes(expr.lanes))

    def visit_broadcast(self, expr: e.Broadcast) -> None:
        self.call("Broadcast", expr.value, self._lanes(expr.lanes))

    def _lanes(self, lanes: int) -> str:
        if isinstance(lanes, ScalableLanes):
            return f"{self.T}.vscale() * {lanes.factor}"
        return str(lanes)

    def visit_shuffle(self, expr: e.Shuffle) -> None:
        self.call("Shuffle", expr.vectors, expr.indices)

    # ---- memory

    def visit_buffer_load(self, load: e.BufferLoad) -> None:
        self.out.append(self.buffer_name(load.buffer))
        if load.predicate is not None:
            self.out.append(".vload(")
            self.argument(load.indices)
            self.out.append(", predicate=")
            self.visit(load.predicate)
            self.out.append(")")
            return
        self.indices(load.indices)

    def indices(self, indices: Sequence[PrimExpr]) -> None:
        """``[i, j]``; ramps are written as slices."""
        if not indices:
            self.out.append("[()]")
            return
        separator = "["
        for index in indices:
            self.out.append(separator)
            if type(index) is e.Ramp and is_slice(index):
                self.slice(index.base, index.lanes * index.stride.value, index.stride.value)  # type: ignore[attr-defined]
            else:
                self.visit(index)
            separator = ", "
        self.out.append("]")

    def slice(
        self, start: PrimExpr, length: PrimExpr | int, step: int = 1, colon: str = ":"
    ) -> None:
        """``start:start + length:step``"""
        self.visit(start)
        self.out.append(colon)
        self.visit(op.add(start, length))
        if step != 1:
            self.out.append(f":{step}")

    def region(self, ranges: Sequence[Any]) -> None:
        """``[i, 0:4]``: an index for each range of one element, else a slice."""
        if not ranges:
            self.out.append("[()]")
            return
        separator = "["
        for item in ranges:
            self.out.append(separator)
            if type(item.extent) is e.IntImm and item.extent.value == 1:
                self.visit(item.min)
            else:
                self.slice(item.min, item.extent)
            separator = ", "
        self.out.append("]")

    def visit_buffer_region(self, region: Any) -> None:
        self.out.append(self.buffer_name(region.buffer))
        self.region(region.region)

    def visit_producer_load(self, load: e.ProducerLoad) -> None:
        self.out.append(producer_name(load.producer))
        self.indices(load.indices)

    # ---- calls

    def visit_call(self, call: e.Call) -> None:
        function = call.op
        if isinstance(function, GlobalVar):
            self._call_function(call, function)
            return
        assert isinstance(function, Op)
        name = function.name.removeprefix("tir.")
        name = SCRIPT_NAMES.get(name, name)
        args: list[Any] = list(call.args)
        if name in DTYPE_FIRST:
            written = [f'"{call.dtype}"', *args]
            known = rebuilds(name, [call.dtype, *args], call)
        elif name in DTYPE_LAST:
            written = [*args, f'"{call.dtype}"']
            known = rebuilds(name, [*args, call.dtype], call)
        else:
            written = args
            known = rebuilds(name, args, call)
        if known:
            self.call(name, *written)
        else:
            self.call("call_intrin", f'"{call.dtype}"', f'"{function.name}"', *args)

    def _call_function(self, call: e.Call, function: GlobalVar) -> None:
        known = self.names.texts.get(function)
        if known is None or (
            not call.dtype.is_void and call.dtype != self.result_types.get(function)
        ):
            name = known or f'{self.config.ir_prefix}.GlobalVar("{function.name_hint}")'
            self.call("Call", f'"{call.dtype}"', name, call.args)
            return
        self.out.append(f"{known}(")
        self.items(call.args)
        self.out.append(")")

    # the data types that functions of the module return
    result_types: dict[GlobalVar, DType] = {}

    def visit_op(self, function: Op) -> None:
        self.out.append(f'"{function.name}"')

    def visit_global_var(self, var: GlobalVar) -> None:
        self.out.append(self.names.texts.get(var, f"@{var.name_hint}"))

    def visit_let(self, let: e.Let) -> None:
        if let.var not in self.names.texts:
            self.names.define(let.var, let.var.name)
        self.out.append(f"{self.T}.Let(")
        self.visit(let.body)
        self.out.append(f", where={{{self.name_of(let.var)}: ")
        self.visit(let.value)
        self.out.append("})")

    def visit_any(self, any_: e.Any) -> None:
        self.call("Any")

    # ---- reductions and ranges

    def visit_range(self, item: e.Range) -> None:
        self.call("Range", item.min, op.add(item.min, item.extent))

    def visit_iter_var(self, iter_var: e.IterVar) -> None:
        dom = "None" if iter_var.dom is None else iter_var.dom
        kind, tag = iter_var.iter_type.name, iter_var.thread_tag
        self.call("iter_var", iter_var.var, dom, f'"{kind}"', json.dumps(tag))

    def visit_comm_reducer(self, reducer: e.CommReducer) -> None:
        self.names.enter()
        names = [self.names.define(v, v.name) for v in (*reducer.lhs, *reducer.rhs)]
        self.out.append(f"{self.T}.comm_reducer(lambda {', '.join(names)}: ")
        if len(reducer.result) == 1:
            self.visit(reducer.result[0])
        else:
            self.shape(reducer.result)
        self.names.leave()
        self.out.append(", ")
        self.argument(reducer.identity_element)
        self.out.append(")")

    def visit_reduce(self, reduce: e.Reduce) -> None:
        self.call(
            "Reduce", reduce.combiner, reduce.source, reduce.axis, reduce.condition,
            str(reduce.value_index), reduce.init,
        )  # fmt: skip

    # ---- types

    def type_text(self, annotation: Type | None, dtype: DType) -> str:
        """The type of a variable."""
        if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
            scope = annotation.storage_scope
            rest = "" if scope in ("", "global") else f', "{scope}"'
            return f'{self.T}.handle("{annotation.element_type.dtype}"{rest})'
        return f"{self.T}.{'bool' if dtype.is_bool and dtype.lanes == 1 else dtype}"


def producer_name(producer: Any) -> str:
    """The name of a tensor."""
    return str(getattr(producer, "name", None) or producer.op.name)


def is_slice(ramp: e.Ramp) -> bool:
    """Whether a ramp can be written as a slice."""
    return (
        type(ramp.stride) is e.IntImm
        and ramp.stride.value > 0
        and ramp.base.dtype.lanes == 1
        and not ramp.dtype.is_scalable
    )


def rebuilds(name: str, args: list[Any], call: e.Call) -> bool:
    """Whether ``T.name(*args)`` gives the very same call."""
    build = getattr(op, name, None)
    if build is None:
        return False
    try:
        built = build(*args)
    except (TypeError, ValueError):
        return False
    return (
        type(built) is e.Call
        and built.op is call.op
        and built.dtype is call.dtype
        and len(built.args) == len(call.args)
        and all(a is b for a, b in zip(built.args, call.args, strict=True))
    )
