"""Relay, the graph-level language: expressions, operators, passes, and the way to a library."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.support.later import names_from_above as _names_from_above

from . import (
    adt,
    analysis,
    base,
    dataflow_pattern,
    expr,
    expr_functor,
    function,
    library,
    prelude,
    scope_builder,
    ty,
    type_functor,
)
from . import collage as _collage
from . import contrib as _op_contrib
from .adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)
from .backend import _backend as _backend_api
from .backend import codegen_modules as _codegen_modules
from .backend import contrib as _contrib
from .backend import lower_te as _lower_te
from .backend import te_compiler as _te_compiler
from .backend import vm as _vm
from .backend.executor import Executor
from .backend.runtime import Runtime
from .base import SequentialSpan, SourceName, Span, astext, pretty_print
from .build_module import build, create_executor, optimize
from .expr import (
    Call,
    Constant,
    Expr,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TempExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    const,
    var,
)
from .expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from .function import Function
from .loops import while_loop
from .op import *
from .param_dict import load_param_dict, save_param_dict
from .parser import SpanCheck, fromtext, parse, parse_expr
from .prelude import Prelude
from .program import bind_params_by_name
from .scope_builder import ScopeBuilder
from .traverse import bind
from .ty import (
    Any,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    ShapeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
    scalar_type,
)
from .type_functor import TypeFunctor, TypeMutator, TypeVisitor

# the operators' package has modules of these names too
if _TYPE_CHECKING:
    from . import op, qnn
    from .op import image, nn, vision
else:
    op = _import_module("tvm.relay.op")
    qnn = _import_module("tvm.relay.qnn")
transform = _import_module("tvm.relay.transform")
data_dep_optimization = _import_module("tvm.relay.data_dep_optimization")
quantize = _import_module("tvm.relay.quantize")
frontend = _import_module("tvm.relay.frontend")
vm = _vm  # the machine's operators have that name in `relay.op`


def __getattr__(name: str) -> object:
    if name == "testing":  # at its first use: programs for users do without it
        return _import_module("tvm.relay.testing")
    return _find_above(name)


_find_above = _names_from_above(__name__)
