"""Relax: graphs of tensor programs with symbolic shapes, calls of loop programs and control flow."""

from tvm.runtime.relax_vm import VirtualMachine, VMInstrumentReturnKind

from . import analysis, exec_builder, expr, op, struct_info, ty, vm_build
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
from .vm_build import Executable, VMExecutable
