"""A back end for an accelerator, put together from registrations.

class Accelerator(UMABackend):
    def __init__(self):
        super().__init__()
        self._register_pattern("conv2d", is_op("nn.conv2d")(wildcard(), wildcard()))
        self._register_tir_pass(PassPhase.TIR_PHASE_0, CallTheAccelerator())
        self._register_codegen(fmt="c", includes=lambda: '#include "accelerator.h"')

    @property
    def target_name(self):
        return "accelerator"

backend = Accelerator()
backend.register()
mod = backend.partition(mod)
lib = relay.build(mod, target=tvm.target.Target("accelerator", host=tvm.target.Target("c")))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relay.dataflow_pattern import DFPattern
from tvm.relay.expr import Call
from tvm.relay.program import Params
from tvm.target.kind import TARGET_KINDS, register_target_kind

from .api import PassPhase, UMACodegen, UMALower, UMAPartitioner

_OPTION_TYPES = {bool: "bool", int: "int", str: "string"}


class UMABackend(ABC):
    """The base of back ends; a subclass registers what its accelerator can do.

    Parameters
    ----------
    merge_compiler_region : bool
        Whether neighbouring matches become one function.
    """

    def __init__(self, merge_compiler_region: bool = True) -> None:
        self._target_attrs: dict[str, str | int | bool] = {}
        self._relay_to_relay = UMAPartitioner(self.target_name, merge_compiler_region)
        self._relay_to_tir = UMALower(self.target_name)
        self._tir_to_runtime = UMACodegen(self.target_name)

    @property
    @abstractmethod
    def target_name(self) -> str:
        """The name of the accelerator's target kind."""

    def _register_target_attr(self, name: str, default: str | int | bool | None = "") -> None:
        """Add an option of the target, with the value that it has when it is left out."""
        if type(default) not in _OPTION_TYPES:
            raise TypeError(
                f"Only String, Integer, or Bool are supported. Given attribute option type: "
                f"{type(default).__name__}"
            )
        assert default is not None
        self._target_attrs[name] = default

    def _register_relay_pass(self, phase: PassPhase, relay_pass: Pass) -> None:
        """Add a pass on modules before or after the partition."""
        if phase.loop_phase is not None:
            raise ValueError(f"a pass on relay requires a phase of partitioning, got {phase.name}")
        self._relay_to_relay.add_relay_pass(phase, relay_pass)

    def _register_tir_pass(self, phase: PassPhase, tir_pass: Pass) -> None:
        """Add a pass on loops in a phase of `tvm.lower`."""
        self._relay_to_tir.add_tir_pass(phase, tir_pass)

    def _register_pattern(
        self, name: str, pattern: DFPattern, predicate: Callable[[Call], bool] | None = None
    ) -> None:
        """Add what the accelerator computes.

        Parameters
        ----------
        predicate : whether it takes a match; it takes all by default.
        """
        self._relay_to_relay.add_pattern(name, pattern, predicate)

    def _register_operator_strategy(
        self, op: str, strategy: Callable[..., object], plevel: int = 11
    ) -> None:
        """Set how an operator becomes loops on this accelerator; of several, the highest level."""
        self._relay_to_tir.add_strategy(op, strategy, plevel)

    def _register_codegen(self, fmt: str = "c", includes: Callable[[], str] | None = None) -> None:
        """Set the language of the code, and the text in front of it."""
        self._tir_to_runtime.set_format(fmt, includes)

    def register(self) -> None:
        """Make the accelerator a target kind."""
        if self.target_name in TARGET_KINDS:
            raise TVMError(f"TVM UMA Error: Target is already registered: {self.target_name}")
        register_target_kind(
            self.target_name,
            "cpu",
            default_keys=(self.target_name,),
            options={n: _OPTION_TYPES[type(v)] for n, v in self._target_attrs.items()},
            defaults=self._target_attrs,
            attrs={"RelayToTIR": self._relay_to_tir, "TIRToRuntime": self._tir_to_runtime},
        )
        self._relay_to_relay.register()
        self._relay_to_tir.register()

    def partition(self, mod: IRModule, params: Params | None = None) -> IRModule:
        """The model with the accelerator's parts as functions of their own."""
        return self._relay_to_relay.partition(mod, params)
