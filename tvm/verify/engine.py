"""Our own side: models compiled as a user would compile them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from tvm import knobs
from tvm.contrib.onnx_backend import TVMBackendRep
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.target import Target


@dataclass(frozen=True)
class Engine:
    """How models are compiled.

    Attributes
    ----------
    target : Target
        The machine.
    opt_level : int
        Level of optimisation.
    passes : tuple of Pass
        Passes of the user, which run right after the import.
    context : dict
        More arguments of PassContext: ``config``, ``disabled_pass``, ...
    fallback : bool
        Whether references compute operators that are not supported.
    """

    target: Target
    opt_level: int = 3
    passes: tuple[Pass, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    fallback: bool = False

    def unoptimised(self) -> Engine:
        """The same without passes."""
        return replace(self, opt_level=0, passes=(), context={})

    def with_context(self, **arguments: Any) -> Engine:
        """The same with other arguments of PassContext."""
        return replace(self, context={**self.context, **arguments})

    def prepare(self, model: onnx.ModelProto) -> TVMBackendRep:
        """A model that compiles itself for the inputs that come."""
        options = {"fallback": True} if self.fallback else {}
        return TVMBackendRep(
            model, self.target, self.opt_level, self.passes, self.context, True, **options
        )

    def run(self, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name."""
        names: Sequence[str] = [value.name for value in model.graph.output]
        needed = {value.name for value in model.graph.input}
        given = {name: value for name, value in inputs.items() if name in needed}
        with knobs.STRICT_INPUTS.scope(True):
            found = self.prepare(model).run(given)
        return dict(zip(names, found, strict=True))

    def imported(self, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> IRModule:
        """The module of a model before any pass."""
        return self.prepare(model).import_for(inputs).mod
