"""``tvm.intrin`` of old: calls of intrinsics and rules of their lowering."""

from typing import Any

from tvm import te, tir
from tvm.ir.op import Op
from tvm.tir.expr import Call

from . import first_with
from .api import call_intrin, call_pure_intrin, register_intrin_rule

__all__ = ["call_intrin", "call_pure_intrin", "register_intrin_rule"]


def _name(op: Call) -> str:
    assert isinstance(op.op, Op)
    return op.op.name.removeprefix("tir.")


def _rule_float_suffix(op: Call) -> Any:
    """Call the C function of the intrinsic: ``expf`` for float32, ``exp`` for float64."""
    name = _name(op)
    suffix = {"float32": "f", "float64": ""}.get(str(op.dtype))
    return op if suffix is None else tir.call_pure_extern(op.dtype, name + suffix, *op.args)


def _rule_float_direct(op: Call) -> Any:
    """Call the function that is called as the intrinsic is."""
    if str(op.dtype) not in ("float32", "float64"):
        return op
    return tir.call_pure_extern(op.dtype, _name(op), *op.args)


def __getattr__(name: str) -> Any:
    return first_with(name, (te, tir), "tvm.intrin")
