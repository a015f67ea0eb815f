"""``tvm.expr`` and ``tvm.stmt`` of old: nodes of the loop level."""

from typing import Any

from tvm import arith, te, tir
from tvm.ir.expr import PrimExpr as Expr
from tvm.tir.expr import BufferLoad as Load
from tvm.tir.expr import EqualOp, NotEqualOp
from tvm.tir.expr import IntImm as UIntImm
from tvm.tir.expr import ProducerLoad as TensorRead
from tvm.tir.stmt import BufferStore as Store
from tvm.tir.stmt import IfThenElse, Stmt
from tvm.tir.stmt import ProducerRealize as Realize
from tvm.tir.stmt import ProducerStore as Provide
from tvm.tir.stmt import SeqStmt as Block

from . import first_with

__all__ = [
    "Block", "EqualOp", "Expr", "IfThenElse", "Load", "NotEqualOp", "Provide", "Realize", "Stmt",
    "Store", "TensorRead", "UIntImm",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return first_with(name, (tir, tir.expr, tir.stmt, te.tensor, arith), "tvm.expr")
