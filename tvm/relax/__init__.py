"""Relax: graphs of tensor programs with symbolic shapes, calls of loop programs and control flow."""

import tvm as _tvm
from tvm.runtime.relax_vm import VirtualMachine, VMInstrumentReturnKind
from tvm.script import relax as _words
from tvm.script.parser.core.entry import LANGUAGES as _LANGUAGES
from tvm.script.printer import relax as _printer

from . import analysis, exec_builder, expr, op, pipeline, struct_info, transform, ty, vm_build
from .block_builder import BlockBuilder
from .exec_builder import ExecBuilder
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    Id,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    extern,
    get_shape_of,
)
from .pipeline import default_build_pipeline, get_pipeline, register_pipeline, zero_pipeline
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .ty import DynTensorType, ObjectType, PackedFuncType, ShapeType
from .vm_build import Executable, VMExecutable, build

# programs in strings may use them without an import
_LANGUAGES.update(R=_words, relax=_words, tvm=_tvm)
