"""How struct info and types are written: ``R.Tensor(("n", 4), dtype="float32")``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import FuncType, TupleType, Type
from tvm.relax import struct_info as si
from tvm.relax.struct_info_relations import tir_vars_in
from tvm.relax.ty import DynTensorType, ObjectType, PackedFuncType, ShapeType
from tvm.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    Doc,
    ExprDoc,
    IdDoc,
    ListDoc,
    LiteralDoc,
    TupleDoc,
)
from tvm.script.printer.doc_printer import to_python_script
from tvm.script.printer.docsifier import IRDocsifier, Path
from tvm.tir.expr import IntImm, Var

TYPES: tuple[type, ...] = (ShapeType, ObjectType, DynTensorType, PackedFuncType)
INFER_BY_SINFO_ARGS = "tvm.relax.struct_info.infer_by_sinfo_args"


def word(name: str, d: IRDocsifier) -> AttrAccessDoc:
    """``R.name``; the name may have dots."""
    d.dialects["relax"] = None
    doc: Any = IdDoc(d.config.relax_prefix)
    for part in name.split("."):
        doc = AttrAccessDoc(doc, part)
    return doc  # type: ignore[no-any-return]


# ---- dimensions


def dimension(value: PrimExpr, path: Path, d: IRDocsifier) -> ExprDoc:
    """A dimension; where parameters are written, what names a variable is a text."""
    if isinstance(value, IntImm) and value.dtype == "int64":
        return LiteralDoc(value.value)
    for var in tir_vars_in(value):
        define_symbol(var, d)
    with _wide_integers(d):
        doc = d.expr(value, path)
    if d.in_signature:
        return LiteralDoc(to_python_script(doc).strip())
    return doc


@contextmanager
def _wide_integers(d: IRDocsifier) -> Iterator[None]:
    """Write integers of 64 bits as they are: the other operands have that type."""
    outer = d.config
    d.config = replace(outer, int_dtype="int64")
    yield
    d.config = outer


def define_symbol(var: Var, d: IRDocsifier) -> None:
    """``n = T.int64()``, unless it is defined."""
    if d.is_defined(var):
        return
    frame = d.frames[-1]
    name = d.define(var, frame, var.name or "v")
    frame.stmts.append(AssignDoc(name, d.tir(str(var.dtype)).call()))


def dimensions(values: Any, path: Path, d: IRDocsifier) -> list[ExprDoc]:
    """The documents of dimensions."""
    return [dimension(v, path.array_index(i), d) for i, v in enumerate(values)]


# ---- struct info


@IRDocsifier.register(si.ObjectStructInfo)
def print_object(info: si.ObjectStructInfo, path: Path, d: IRDocsifier) -> Doc:
    return word("Object", d)


@IRDocsifier.register(si.PrimStructInfo)
def print_prim(info: si.PrimStructInfo, path: Path, d: IRDocsifier) -> Doc:
    if info.value is None:
        return word("Prim", d).call(LiteralDoc(str(info.dtype)))
    return word("Prim", d).call(value=dimension(info.value, path.attr("value"), d))


@IRDocsifier.register(si.ShapeStructInfo)
def print_shape(info: si.ShapeStructInfo, path: Path, d: IRDocsifier) -> Doc:
    if info.values is None:
        return word("Shape", d).call(ndim=LiteralDoc(info.ndim))
    return word("Shape", d).call(ListDoc(dimensions(info.values, path.attr("values"), d)))


@IRDocsifier.register(si.TensorStructInfo)
def print_tensor(info: si.TensorStructInfo, path: Path, d: IRDocsifier) -> Doc:
    args: list[ExprDoc] = []
    options: dict[str, ExprDoc] = {}
    shape = info.shape
    if isinstance(shape, si.ShapeExpr):
        args.append(TupleDoc(dimensions(shape.values, path.attr("shape").attr("values"), d)))
    elif shape is not None:
        args.append(d.expr(shape, path.attr("shape")))
    if not info.dtype.is_void:
        options["dtype"] = LiteralDoc(str(info.dtype))
    if info.vdevice is not None:
        options["vdevice"] = LiteralDoc(device_text(info.vdevice, d))
    if not args and info.ndim >= 0:
        options["ndim"] = LiteralDoc(info.ndim)
    if not args and not options:
        return word("Tensor", d)
    return word("Tensor", d).call(*args, **options)


def device_text(device: Any, d: IRDocsifier) -> str:
    """``llvm:0:global``: the kind of the target, and its number among the module's."""
    target = device.target
    kind = getattr(getattr(target, "kind", None), "name", None) or str(target).split(" ")[0]
    index = 0
    for other in d.vdevices:
        other_kind = getattr(getattr(other.target, "kind", None), "name", None)
        if other is device or (
            other_kind == kind
            and (other.vdevice_id, other.memory_scope) == (device.vdevice_id, device.memory_scope)
        ):
            break
        index += other_kind == kind
    return f"{kind}:{index}:{device.memory_scope}"


@IRDocsifier.register(si.TupleStructInfo)
def print_tuple(info: si.TupleStructInfo, path: Path, d: IRDocsifier) -> Doc:
    if not info.fields:
        return word("Tuple", d)
    place = path.attr("fields")
    fields = [d.expr(f, place.array_index(i)) for i, f in enumerate(info.fields)]
    return word("Tuple", d).call(*fields)


@IRDocsifier.register(si.FuncStructInfo)
def print_callable(info: si.FuncStructInfo, path: Path, d: IRDocsifier) -> Doc:
    if info.params is None:
        return _opaque(info, path, d)
    outer = d.in_signature
    place = path.attr("params")
    params = TupleDoc([d.expr(p, place.array_index(i)) for i, p in enumerate(info.params)])
    ret = d.expr(info.ret, path.attr("ret"))
    d.in_signature = outer
    return word("Callable", d).call(params, ret, LiteralDoc(info.purity))


def _opaque(info: si.FuncStructInfo, path: Path, d: IRDocsifier) -> Doc:
    options: dict[str, ExprDoc] = {}
    if not isinstance(info.ret, si.ObjectStructInfo):
        options["ret"] = d.expr(info.ret, path.attr("ret"))
    if info.derive_func is not None and info.derive_func.name != INFER_BY_SINFO_ARGS:
        options["derive_func"] = LiteralDoc(info.derive_func.name)
    if info.purity:
        options["purity"] = LiteralDoc(True)
    return word("Callable", d).call(**options) if options else word("Callable", d)


# ---- types


@IRDocsifier.register(ShapeType)
def print_shape_type(kind: ShapeType, path: Path, d: IRDocsifier) -> Doc:
    return word("Shape", d).call(ndim=LiteralDoc(kind.ndim))


@IRDocsifier.register(ObjectType)
def print_object_type(kind: ObjectType, path: Path, d: IRDocsifier) -> Doc:
    return word("Object", d)


@IRDocsifier.register(DynTensorType)
def print_tensor_type(kind: DynTensorType, path: Path, d: IRDocsifier) -> Doc:
    options = {"ndim": LiteralDoc(kind.ndim)}
    if not kind.dtype.is_void:
        options["dtype"] = LiteralDoc(str(kind.dtype))
    return word("Tensor", d).call(**options)


@IRDocsifier.register(PackedFuncType)
def print_packed_type(kind: PackedFuncType, path: Path, d: IRDocsifier) -> Doc:
    return word("PackedFunc", d)


def type_text(kind: Type) -> str:
    """The text of a type in relax's words."""
    if isinstance(kind, TupleType):
        return f"R.Tuple({', '.join([type_text(f) for f in kind.fields])})"
    if isinstance(kind, FuncType):
        params = ", ".join([type_text(p) for p in kind.arg_types])
        comma = "," if len(kind.arg_types) == 1 else ""
        return f"R.Callable(({params}{comma}), {type_text(kind.ret_type)})"
    return str(kind.script())
