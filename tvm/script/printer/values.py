"""How plain values, containers, types and what modules have are written."""

from __future__ import annotations

from typing import Any

from tvm.ir.attrs import DictAttrs
from tvm.ir.expr import GlobalVar
from tvm.ir.global_info import DummyGlobalInfo, VDevice
from tvm.ir.node import Node
from tvm.ir.op import Op
from tvm.ir.type import PointerType, PrimType, TupleType
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import DType

from .doc import DictDoc, Doc, ExprDoc, ListDoc, LiteralDoc
from .docsifier import IRDocsifier, Path

INT32 = range(-(1 << 31), 1 << 31)


@IRDocsifier.register(type(None), DType)
def print_plain(value: Any, path: Path, d: IRDocsifier) -> Doc:
    """None and data types."""
    return LiteralDoc(None if value is None else str(value))


@IRDocsifier.register(str)
def print_text(value: str, path: Path, d: IRDocsifier) -> Doc:
    return LiteralDoc(str(value))


@IRDocsifier.register(bool)
def print_bool(value: bool, path: Path, d: IRDocsifier) -> Doc:
    return d.tir("bool").call(LiteralDoc(value))


@IRDocsifier.register(int)
def print_int(value: int, path: Path, d: IRDocsifier) -> Doc:
    literal = LiteralDoc(int(value))
    return literal if value in INT32 else d.tir("int64").call(literal)


@IRDocsifier.register(float)
def print_float(value: float, path: Path, d: IRDocsifier) -> Doc:
    return d.tir("float32").call(LiteralDoc(value))


@IRDocsifier.register(tuple, list)
def print_sequence(values: Any, path: Path, d: IRDocsifier) -> Doc:
    return ListDoc(expr_list(values, path, d))


def expr_list(values: Any, path: Path, d: IRDocsifier) -> list[ExprDoc]:
    """The documents of a sequence."""
    return [d.expr(value, path.array_index(i)) for i, value in enumerate(values)]


@IRDocsifier.register(dict)
def print_mapping(values: dict[Any, Any], path: Path, d: IRDocsifier) -> Doc:
    """Texts as keys are sorted."""
    items = list(values.items())
    if all(isinstance(key, str) for key in values):
        items.sort(key=lambda item: str(item[0]))
    return DictDoc({d.expr(key, path): d.expr(value, path.map_value(key)) for key, value in items})


@IRDocsifier.register(Module)
def print_runtime_module(module: Module, path: Path, d: IRDocsifier) -> Doc:
    return d.meta(module, "runtime.Module")


@IRDocsifier.register(NDArray)
def print_array(array: NDArray, path: Path, d: IRDocsifier) -> Doc:
    return d.meta(array, "runtime.NDArray")


@IRDocsifier.register(DictAttrs)
def print_attributes(attrs: DictAttrs, path: Path, d: IRDocsifier) -> Doc:
    return print_mapping(dict(attrs.items()), path.attr("dict"), d)


@IRDocsifier.register(Node)
def print_unknown(node: Node, path: Path, d: IRDocsifier) -> Doc:
    """What has no syntax; a target's configuration says all of it."""
    export = getattr(node, "export", None)
    if export is not None:
        return d.tir("target").call(d.expr(export(), path))
    return d.meta(node)


@IRDocsifier.register(Op)
def print_op(op: Op, path: Path, d: IRDocsifier) -> Doc:
    return LiteralDoc(op.name)


@IRDocsifier.register(GlobalVar)
def print_global_var(var: GlobalVar, path: Path, d: IRDocsifier) -> Doc:
    found = d.defined(var)
    return found or d.ir("GlobalVar").call(LiteralDoc(var.name_hint))


@IRDocsifier.register(DummyGlobalInfo)
def print_dummy_info(info: DummyGlobalInfo, path: Path, d: IRDocsifier) -> Doc:
    return d.ir("dummy_global_info").call()


@IRDocsifier.register(VDevice)
def print_device(device: VDevice, path: Path, d: IRDocsifier) -> Doc:
    target = d.expr(device.target.export() if device.target else None, path.attr("target"))
    rest = (LiteralDoc(device.vdevice_id), LiteralDoc(device.memory_scope))
    return d.ir("vdevice").call(target, *rest)


# ---- types


@IRDocsifier.register(PrimType)
def print_prim_type(kind: PrimType, path: Path, d: IRDocsifier) -> Doc:
    return d.tir(str(kind.dtype))


@IRDocsifier.register(PointerType)
def print_pointer_type(kind: PointerType, path: Path, d: IRDocsifier) -> Doc:
    element = kind.element_type
    if isinstance(element, PrimType):
        content: ExprDoc = LiteralDoc(str(element.dtype))
    else:
        content = d.expr(element, path.attr("element_type"))
    return d.tir("handle").call(content, LiteralDoc(kind.storage_scope or "global"))


@IRDocsifier.register(TupleType)
def print_tuple_type(kind: TupleType, path: Path, d: IRDocsifier) -> Doc:
    if not kind.fields:
        return LiteralDoc(None)
    return d.tir("Tuple").call(*expr_list(kind.fields, path.attr("fields"), d))
