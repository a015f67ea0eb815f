"""When a pass of a back end runs, and the form of the functions that it lowers."""

from __future__ import annotations

from enum import Enum, auto

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.traverse import applied, rewrite_function


class PassPhase(Enum):
    """The stages between an imported model and the code of its parts.

    Passes on modules run before or after the parts are found; passes on loops run in the phases of
    `tvm.lower`: on blocks, on flat arrays, on transformed loops, at the end.
    """

    PRE_PARTITIONING = auto()
    POST_PARTITIONING_0 = auto()  # the parts are functions of their own
    POST_PARTITIONING_1 = auto()  # and call operators alone
    TIR_PHASE_0 = auto()
    TIR_PHASE_1 = auto()
    TIR_PHASE_2 = auto()
    TIR_PHASE_3 = auto()

    @property
    def loop_phase(self) -> int | None:
        """The phase of `tvm.lower`; None for passes on relay."""
        return _LOOP_PHASES.get(self)


_LOOP_PHASES = {
    PassPhase.TIR_PHASE_0: 0,
    PassPhase.TIR_PHASE_1: 1,
    PassPhase.TIR_PHASE_2: 2,
    PassPhase.TIR_PHASE_3: 3,
}


def with_operators_only(func: Function) -> Function:
    """A function with its composite functions applied: it calls operators alone."""

    def apply(_: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, Call) and isinstance(new.op, Function):
            return applied(new.op, new.args)
        return new

    return rewrite_function(func, apply)


def uma_available() -> bool:
    """Whether back ends can be registered; always, here."""
    return True
