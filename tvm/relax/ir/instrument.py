"""Checks of programs around passes."""

from __future__ import annotations

from typing import Any

from tvm.ir.instrument import pass_instrument
from tvm.ir.module import IRModule
from tvm.relax.analysis.well_formed import well_formed
from tvm.relax.expr import relax_functions


@pass_instrument
class WellFormedInstrument:
    """Checks that modules are well formed, before and after each pass.

    Parameters
    ----------
    check_struct_info : bool
        Whether missing struct info is a problem.
    validate_before_transform : bool
        Whether modules are checked before a pass, too.
    """

    def __init__(
        self, check_struct_info: bool = True, validate_before_transform: bool = True
    ) -> None:
        self.skip_pass_name = ["Normalize", "NormalizeGlobalVar", "ResolveGlobals"]
        self.check_struct_info = check_struct_info
        self.validate_before_transform = validate_before_transform

    def run_before_pass(self, mod: IRModule, pass_info: Any) -> None:
        """Check the module before a pass."""
        if self.validate_before_transform:
            self._check(mod, pass_info.name, "Before")

    def run_after_pass(self, mod: IRModule, pass_info: Any) -> None:
        """Check the module after a pass."""
        self._check(mod, pass_info.name, "After")

    def _check(self, mod: IRModule, name: str, prefix: str) -> None:
        if name in self.skip_pass_name or not relax_functions(mod):
            return
        if not well_formed(mod, self.check_struct_info):
            mod.show(name=f"{prefix}{name}Module")
            raise AssertionError(f"{prefix} pass {name}: the module is not well formed")
