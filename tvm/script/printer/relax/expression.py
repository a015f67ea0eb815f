"""How expressions of relax are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.attrs import Attrs, DictAttrs
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.node import Node
from tvm.ir.op import Op
from tvm.relax import expr as rx
from tvm.relax.base import StructInfo
from tvm.relax.struct_info import ShapeExpr, TupleStructInfo
from tvm.script.printer.doc import (
    AssignDoc,
    CallDoc,
    DictDoc,
    Doc,
    ExprDoc,
    IdDoc,
    ListDoc,
    LiteralDoc,
    TupleDoc,
)
from tvm.script.printer.docsifier import IRDocsifier, Path
from tvm.support.dtype import DType
from tvm.tir.expr import FloatImm, IntImm

from .struct_info import device_text, dimension, dimensions, word


@IRDocsifier.register(rx.Var)
def print_var(var: rx.Var, path: Path, d: IRDocsifier) -> Doc:
    """A variable; one that nothing defines is declared."""
    found = d.defined(var)
    if found is not None:
        return found
    annotation = None
    frame = d.frames[-1]
    first = len(frame.stmts)
    if var.struct_info_ is not None:
        annotation = d.expr(var.struct_info_, path.attr("struct_info_"))
    name = d.define(var, frame, var.name_hint or "v")
    if annotation is None:
        return name  # of which nothing is known
    frame.stmts.append(AssignDoc(name, None, annotation))
    frame.declarations.extend(frame.stmts[first:])
    return name


@IRDocsifier.register(rx.PrimValue)
def print_prim_value(value: rx.PrimValue, path: Path, d: IRDocsifier) -> Doc:
    return word("prim_value", d).call(number(value.value, path.attr("value"), d))


def number(value: PrimExpr, path: Path, d: IRDocsifier) -> ExprDoc:
    """A number: integers of 64 bits as they are."""
    outer, d.in_signature = d.in_signature, False
    doc = dimension(value, path, d)
    d.in_signature = outer
    return doc


@IRDocsifier.register(rx.StringImm)
def print_string(value: rx.StringImm, path: Path, d: IRDocsifier) -> Doc:
    return word("str", d).call(LiteralDoc(value.value))


@IRDocsifier.register(rx.DataTypeImm)
def print_data_type(value: rx.DataTypeImm, path: Path, d: IRDocsifier) -> Doc:
    return word("dtype", d).call(LiteralDoc(str(value.value)))


@IRDocsifier.register(ShapeExpr)
def print_shape_expr(shape: ShapeExpr, path: Path, d: IRDocsifier) -> Doc:
    return word("shape", d).call(ListDoc(dimensions(shape.values, path.attr("values"), d)))


_SCALARS = {
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16",
    "float32", "float64",
}  # fmt: skip


@IRDocsifier.register(rx.Constant)
def print_constant(constant: rx.Constant, path: Path, d: IRDocsifier) -> Doc:
    """A scalar is written; tensors are kept apart."""
    array = constant.data.numpy()
    kind = str(constant.data.dtype)
    if array.shape == () and kind in _SCALARS:
        value = array.item()
        if not isinstance(value, float) or np.isfinite(value):
            return word("const", d).call(LiteralDoc(value), LiteralDoc(kind))
    return d.meta(constant)


@IRDocsifier.register(rx.Tuple)
def print_tuple(value: rx.Tuple, path: Path, d: IRDocsifier) -> Doc:
    if not value.fields:
        return word("tuple", d).call()
    return TupleDoc(expressions(value.fields, path.attr("fields"), d))


def expressions(values: Any, path: Path, d: IRDocsifier) -> list[ExprDoc]:
    """The documents of expressions."""
    return [d.expr(v, path.array_index(i)) for i, v in enumerate(values)]


@IRDocsifier.register(rx.TupleGetItem)
def print_item(item: rx.TupleGetItem, path: Path, d: IRDocsifier) -> Doc:
    return d.expr(item.tuple_value, path.attr("tuple_value"))[LiteralDoc(item.index)]


def callee(value: Any, path: Path, d: IRDocsifier) -> ExprDoc:
    """What is called: a global function that nothing defines is its name."""
    if isinstance(value, rx.ExternFunc):
        return LiteralDoc(value.global_symbol)
    if isinstance(value, GlobalVar) and not d.is_defined(value):
        return IdDoc(value.name_hint)
    return d.expr(value, path)


# ---- calls


@IRDocsifier.register(rx.Call)
def print_call(call: rx.Call, path: Path, d: IRDocsifier) -> Doc:
    op = call.op
    name = op.name if isinstance(op, Op) else ""
    special = _SPECIAL.get(name)
    if special is not None:
        found: Doc = special(call, path, d)
        return found
    args = expressions(call.args, path.attr("args"), d)
    options = attributes(call.attrs, path.attr("attrs"), d)
    if call.sinfo_args:
        options["sinfo_args"] = _struct_infos(call.sinfo_args, path, d)
    if isinstance(op, rx.ExternFunc):
        if call.attrs is not None and not isinstance(call.attrs, DictAttrs):
            options["attrs_type_key"] = LiteralDoc(call.attrs.type_key)
        if "sinfo_args" not in options:
            options["sinfo_args"] = TupleDoc([])
        return word("call_packed", d).call(LiteralDoc(op.global_symbol), *args, **options)
    if isinstance(op, Op):
        head: ExprDoc = word(name.removeprefix("relax."), d)
    else:
        head = callee(op, path.attr("op"), d)
    return CallDoc(head, *args, **options)


def _struct_infos(infos: Any, path: Path, d: IRDocsifier) -> TupleDoc:
    place = path.attr("sinfo_args")
    return TupleDoc([d.expr(s, place.array_index(i)) for i, s in enumerate(infos)])


def attributes(attrs: Any, path: Path, d: IRDocsifier) -> dict[str, ExprDoc]:
    """The attributes of an operator by name."""
    if attrs is None:
        return {}
    items = attrs.items() if isinstance(attrs, Attrs) else ()
    return {name: plain(value, path.attr(name), d) for name, value in items}


def plain(value: Any, path: Path, d: IRDocsifier) -> ExprDoc:
    """A value of an attribute as Python writes it."""
    if value is None or isinstance(value, (bool, int, float)):
        return LiteralDoc(value)
    if isinstance(value, (DType, str)):
        return LiteralDoc(str(value))
    if isinstance(value, (tuple, list)):
        return ListDoc([plain(v, path.array_index(i), d) for i, v in enumerate(value)])
    if isinstance(value, dict):
        return DictDoc({LiteralDoc(k): plain(v, path.map_value(k), d) for k, v in value.items()})
    if isinstance(value, (IntImm, FloatImm)) and value.dtype in (
        "int64",
        "int32",
        "float64",
        "float32",
    ):
        return LiteralDoc(value.value)
    if isinstance(value, PrimExpr):
        return number(value, path, d)
    if type(value).type_key == "VDevice" if isinstance(value, Node) else False:
        return LiteralDoc(device_text(value, d))
    return d.expr(value, path)


def _call_tir(call: rx.Call, path: Path, d: IRDocsifier) -> Doc:
    """``R.call_tir(cls.f, (x,), out_sinfo=R.Tensor(...))``"""
    assert isinstance(call.op, Op)
    place = path.attr("args")
    args = [
        callee(call.args[0], place.array_index(0), d),
        d.expr(call.args[1], place.array_index(1)),
    ]
    options: dict[str, ExprDoc] = {"out_sinfo": _out(call.sinfo_args[0], path, d)}
    options.update(attributes(call.attrs, path.attr("attrs"), d))
    if len(call.args) > 2:
        options["tir_vars"] = d.expr(call.args[2], place.array_index(2))
    return word(call.op.name.removeprefix("relax."), d).call(*args, **options)


def _out(info: StructInfo, path: Path, d: IRDocsifier) -> ExprDoc:
    place = path.attr("sinfo_args").array_index(0)
    if isinstance(info, TupleStructInfo):
        fields = [d.expr(f, place.attr("fields").array_index(i)) for i, f in enumerate(info.fields)]
        return ListDoc(fields)
    return d.expr(info, place)


def _print_or_assert(call: rx.Call, path: Path, d: IRDocsifier) -> Doc:
    """``R.print(x, format="{}")``"""
    assert isinstance(call.op, Op)
    place = path.attr("args")
    is_print = call.op.name == "relax.print"
    where = 0 if is_print else 1
    rest = [d.expr(a, place.array_index(i)) for i, a in enumerate(call.args) if i != where]
    text = d.expr(call.args[where], place.array_index(where))
    if not is_print and len(rest) > 2:
        rest = [rest[0], ListDoc(rest[1:])]
    return word("print" if is_print else "assert_op", d).call(*rest, format=text)


def _packed(call: rx.Call, path: Path, d: IRDocsifier) -> Doc:
    """``R.call_pure_packed("f", x, sinfo_args=(...,))``"""
    assert isinstance(call.op, Op)
    place = path.attr("args")
    args = [callee(call.args[0], place.array_index(0), d)]
    args += [d.expr(a, place.array_index(i + 1)) for i, a in enumerate(call.args[1:])]
    options = attributes(call.attrs, path.attr("attrs"), d)
    if call.sinfo_args or call.op.name != "relax.call_builtin_with_ctx":
        options["sinfo_args"] = _struct_infos(call.sinfo_args, path, d)
    return word(call.op.name.removeprefix("relax."), d).call(*args, **options)


_SPECIAL: dict[str, Any] = {
    **dict.fromkeys(
        [
            "relax.call_tir",
            "relax.call_dps_packed",
            "relax.call_tir_inplace",
            "relax.call_tir_with_grad",
        ],
        _call_tir,
    ),
    **dict.fromkeys(["relax.print", "relax.assert_op"], _print_or_assert),
    **dict.fromkeys(
        ["relax.call_pure_packed", "relax.call_inplace_packed", "relax.call_builtin_with_ctx"],
        _packed,
    ),
}


def _attention_bias(call: rx.Call, path: Path, d: IRDocsifier) -> Doc:
    """The form with a bias has the name of the other."""
    args = expressions(call.args, path.attr("args"), d)
    return word("nn.attention", d).call(*args, **attributes(call.attrs, path.attr("attrs"), d))


_SPECIAL["relax.nn.attention_bias"] = _attention_bias
