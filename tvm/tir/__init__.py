"""The loop-level language: expressions, statements, buffers, functions."""

# what stands on the nodes
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.script import printer as _printer
from tvm.support.later import names_from_above as _names_from_above

from . import _ffi_api, fixed_point, generic, ir_builder, stmt_functor
from .block_dependence_info import BlockDependenceInfo
from .block_scope import BlockScope, Dependency, DepKind, StmtSRef
from .buffer import Buffer, DataProducer, decl_buffer
from .builtin import *
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Any,
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Call,
    CallEffectKind,
    Cast,
    CmpExpr,
    CommReducer,
    ConstExpr,
    Div,
    ExprOp,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExprWithOp,
    ProducerLoad,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
    const,
    convert,
)
from .function import IndexMap, PrimFunc, TensorIntrin
from .functor import PyStmtExprMutator, PyStmtExprVisitor
from .gpu_op import *
from .math_op import *
from .op import (
    add,
    all,
    any,
    cast,
    ceildiv,
    div,
    floordiv,
    floormod,
    indexdiv,
    indexmod,
    multiply,
    subtract,
    truncdiv,
    truncmod,
)
from .reduction import comm_reducer, max, min, sum
from .stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
    stmt_list,
    stmt_seq,
)

__getattr__ = _names_from_above(__name__)
