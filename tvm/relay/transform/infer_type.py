"""Find the type of every expression.

    fn (%x: Tensor[(2, 3), float32]) {      fn (%x: Tensor[(2, 3), float32]) -> Tensor[(3, 2), ...] {
      transpose(%x)                    ->     transpose(%x) /* ty=Tensor[(3, 2), float32] */
    }                                       }

Only what has no type yet is inferred; a function whose types are known comes back itself.
"""

from __future__ import annotations

from tvm.ir.diagnostics import reported
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import Type
from tvm.relay.analysis.infer import TypeInferencer, known_type
from tvm.relay.analysis.typed_module import infer_types, with_written_types

__all__ = ["InferType", "InferTypeLocal", "infer_types", "with_written_types"]


def InferType() -> Pass:
    """The pass that types a module."""
    return _INFER_TYPE


def _run(mod: IRModule, _: PassContext) -> IRModule:
    with reported(mod):
        return infer_types(mod)


_INFER_TYPE = ModulePass(_run, PassInfo(0, "InferType"))


def InferTypeLocal(expr: RelayExpr) -> Type:
    """The type of one expression whose operands have types or annotations."""
    return known_type(expr) or TypeInferencer().infer(expr)
