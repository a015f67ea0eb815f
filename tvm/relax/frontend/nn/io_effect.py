"""The state of input and output: what prints is ordered by it."""

from __future__ import annotations

from typing import Any

from tvm.relax import op as _op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Var
from tvm.relax.struct_info import ObjectStructInfo
from tvm.support import Scoped

from .core import Effect

# that of the export that is going on, if it has one
CURRENT: Scoped[IOEffect | None] = Scoped("relax_nn_io_effect")


class IOEffect(Effect):
    """The state of input and output: what prints is ordered by it."""

    effect: Any

    def __init__(self) -> None:
        self.effect = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        return [builder.emit(_op.null_value(), f"{name_hint}_io")]

    def create(self, name_hint: str) -> list[Var]:
        if self.effect is None:
            self.effect = Var(f"{name_hint}_io", ObjectStructInfo())
        return [self.effect]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.effect,) = state_vars

    def finalize(self) -> list[Var]:
        result, self.effect = self.effect, None
        return [result]
