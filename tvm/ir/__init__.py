"""The kernel of all levels: nodes, visitors, types, attributes, operators, modules, passes."""

from typing import Any

from tvm.support.later import names_from_above as _names_from_above

from . import (
    _ffi_api,
    analysis,
    base,
    container,
    diagnostics,
    expr,
    global_functions,
    instrument,
    transform,
)
from .adt import Constructor, TypeData
from .affine_type import AffineType, TensorAffineType, TupleAffineType
from .attrs import Attrs, DictAttrs, make_node
from .container import Array, Map
from .env_func import EnvFunc
from .expr import BaseExpr, GlobalVar, PrimExpr, RelayExpr
from .function import BaseFunc, CallingConv
from .global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .instrument import PassInstrument
from .module import IRModule
from .node import Node
from .op import Op, register_intrin_lowering, register_op_attr
from .serialize import load_json, save_json
from .span import SequentialSpan, SourceMap, SourceName, Span
from .structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from .supply import GlobalVarSupply, NameSupply
from .transform import PassContext
from .type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from .visitor import Rewriter, Visitor

__all__ = [
    "AffineType", "Array", "Attrs", "BaseExpr", "BaseFunc", "CallingConv", "Constructor", "DictAttrs", "DummyGlobalInfo", "EnvFunc", "FuncType", "GlobalTypeVar",
    "GlobalInfo", "GlobalVar", "GlobalVarSupply", "IRModule", "IncompleteType", "Map", "NameSupply", "Node", "Op",
    "PassContext", "PassInstrument", "PointerType", "PrimExpr", "PrimType", "RelayExpr",
    "RelayRefType", "Rewriter", "SequentialSpan", "SourceMap", "SourceName", "Span", "TensorAffineType", "TensorType",
    "TupleAffineType", "TupleType",
    "Type", "TypeCall", "TypeConstraint", "TypeData", "TypeKind", "TypeRelation", "TypeVar", "VDevice", "Visitor",
    "assert_structural_equal", "container", "diagnostics", "get_first_structural_mismatch", "instrument", "load_json",
    "make_node", "register_intrin_lowering", "register_op_attr", "save_json", "structural_equal",
    "structural_hash", "transform",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("FloatImm", "IntImm", "Range"):  # loop-level nodes
        return getattr(expr, name)
    return _find_above(name)


_find_above = _names_from_above(__name__)
