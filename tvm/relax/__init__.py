"""Relax: graphs of tensor programs with symbolic shapes, calls of loop programs and control flow."""

from tvm.runtime.relax_vm import VirtualMachine, VMInstrumentReturnKind
from tvm.script import relax as _words
from tvm.script.parser.core.entry import LANGUAGES as _LANGUAGES
from tvm.script.printer import relax as _printer

from . import (
    analysis,
    backend,
    bind,
    binding_rewrite,
    dpl,
    exec_builder,
    expr,
    expr_functor,
    ir,
    op,
    pipeline,
    struct_info,
    transform,
    ty,
    utils,
    vm_build,
)
from .binding_rewrite import DataflowBlockRewrite
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
from .expr_functor import PyExprMutator, PyExprVisitor
from .op.base import (
    call_dps_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
)
from .pipeline import (
    default_build_pipeline,
    get_default_pipeline,
    get_pipeline,
    register_pipeline,
    zero_pipeline,
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
from .te_call import te_tensor
from .ty import DynTensorType, FuncType, ObjectType, PackedFuncType, ShapeType, TupleType
from .vm_build import Executable, VMExecutable, build

# programs in strings may use them without an import
_LANGUAGES.update(R=_words, relax=_words)
