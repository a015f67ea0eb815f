"""The module of a model gets the modules of other languages that the model calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass

from .pass_kinds import whole_module_pass


def AttachExternModules(extern_modules: Sequence[Any]) -> Pass:
    """Let a build link modules of other languages.

    Parameters
    ----------
    extern_modules : list of ExternModule
        What `relax.frontend.nn.Module.export_tvm` gave; each is loaded once.

    Returns
    -------
    Pass
    """
    loaded: list[Any] = []

    def attached(mod: IRModule) -> IRModule:
        if not loaded:
            loaded.extend([each.load() for each in extern_modules])
        known = list(mod.get_attr("external_mods") or [])
        return mod.with_attr("external_mods", [*known, *loaded])

    return whole_module_pass("AttachExternModules", attached)
