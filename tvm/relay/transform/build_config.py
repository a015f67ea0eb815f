"""The context of passes in its older spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.instrument import PassInstrument
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassInfo
from tvm.ir.transform import PassContext

Trace = Callable[[IRModule, PassInfo, bool], object]


class _Tracer(PassInstrument):
    """Calls a function before and after each pass."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.trace(mod, info, True)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.trace(mod, info, False)


def build_config(
    opt_level: int = 2,
    required_pass: Sequence[str] | None = None,
    disabled_pass: Sequence[str] | None = None,
    trace: Trace | None = None,
) -> PassContext:
    """`tvm.transform.PassContext` under its older name.

    Parameters
    ----------
    opt_level, required_pass, disabled_pass : as of PassContext.
    trace : called with the module, the pass and whether it is still to run.
    """
    instruments = None if trace is None else [_Tracer(trace)]
    return PassContext(opt_level, required_pass, disabled_pass, instruments)
