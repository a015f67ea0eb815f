"""The classic decorator for users' own passes.

@tvm.tir.transform.prim_func_pass(opt_level=1)
def transform(func, mod, ctx):
    return func
"""

from __future__ import annotations

from tvm.ir.transform import make_pass_decorator
from tvm.tir.transform.common import PrimFuncPass

prim_func_pass = make_pass_decorator(
    "prim_func_pass", PrimFuncPass, "transform_function", "f(func, mod, ctx) -> func"
)
