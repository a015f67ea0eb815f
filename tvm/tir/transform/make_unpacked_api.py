"""Give a function plain C parameters: pointers to data and scalars, with no checks.

def f(A: handle, n: int32)   ->    def f(A: pointer, n: int32) -> int32
    ...                                ...
                                       return 0
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import PassInfo
from tvm.ir.type import PrimType
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import Call, StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, Evaluate, Stmt, seq
from tvm.tir.transform.abi import INT32
from tvm.tir.transform.common import PrimFuncPass, prim_func_pass
from tvm.tir.transform.make_packed_api import device_type_of, is_exposed, success


@prim_func_pass("tir.MakeUnpackedAPI")
def make_unpacked_api(func: PrimFunc) -> PrimFunc:
    """Make functions that have a global symbol callable from C."""
    if not is_wrapped(func):
        return func
    target = func.get_attr("target")
    if target is None:
        raise LoweringError(
            "MakeUnpackedAPI requires functions with a target, got one without",
            hint="run BindTarget(target) first",
            classic="MakeUnpackedAPI required the function to be annotated with tvm::attr::kTarget",
        )
    params: list[Var] = []
    body: Stmt = seq([func.body, Evaluate(success())])
    for param in func.params:
        buffer = func.buffer_map.get(param)
        params.append(param if buffer is None else buffer.data)
    device_type = device_type_of(target)
    node = StringImm("default")
    if func.buffer_map and device_type is not None:
        body = AttrStmt(node, "device_type", const(device_type, INT32), body)
        body = AttrStmt(node, "device_id", const(0, INT32), body)
    unpacked = PrimFunc(params, body, PrimType(INT32), {}, func.attrs, func.span)
    return unpacked if target.host is None else unpacked.with_attr("target", target.host)


def is_wrapped(func: PrimFunc) -> bool:
    """Whether a function is called from outside, and does not return a status yet."""
    returns = isinstance(func.ret_type, PrimType) and func.ret_type.dtype == INT32
    return is_exposed(func) and (bool(func.buffer_map) or not returns)


class SubroutineCaller(Rewriter):
    """Calls functions of the module with pointers to data, for their status."""

    def __init__(self, mod: IRModule) -> None:
        self.names = {
            gvar.name_hint: None
            for gvar, func in mod.functions.items()
            if isinstance(func, PrimFunc) and is_wrapped(func)
        }

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in self.names:
            return call
        return Call(INT32, call.op, [_data_of(arg) for arg in call.args])


def _data_of(arg: PrimExpr) -> PrimExpr:
    """The pointer to the data of an array that was put together for a call."""
    if isinstance(arg, Call) and getattr(arg.op, "name", "") == "tir.tvm_stack_make_array":
        return arg.args[0]
    return arg


def unpacked_api_pass() -> PrimFuncPass:
    """The pass, which changes the calls of functions together with these."""

    def run(func: PrimFunc, mod: IRModule, _: PassContext) -> PrimFunc:
        caller = SubroutineCaller(mod)
        return make_unpacked_api(func.with_body(caller.visit(func.body)))

    return PrimFuncPass(run, PassInfo(0, make_unpacked_api.name))


MakeUnpackedAPI = unpacked_api_pass
