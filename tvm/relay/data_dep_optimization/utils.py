"""Running a pass on one function."""

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relay.function import Function


def _run_opt_pass(func: Function, opt_pass: Pass) -> Function:
    """The function after the pass."""
    result = opt_pass(IRModule.from_expr(func))["main"]
    assert isinstance(result, Function)
    return result
