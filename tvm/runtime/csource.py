"""Modules of C text: they are exported, compiled, and loaded again."""

from __future__ import annotations

from collections.abc import Sequence

from tvm._ffi.registry import get_global_func, register_func
from tvm.runtime.module import Module


@register_func("runtime.CSourceModuleCreate", override=True)
def csource_module(
    code: str,
    fmt: str = "c",
    func_names: Sequence[str] = (),
    const_vars: Sequence[str] = (),
) -> Module:
    """A module of C text.

    Parameters
    ----------
    code : str
        The text.
    fmt : str
        The suffix of the file it is written to: ``"c"``, ``"cc"``, ``"cu"`` ...
    func_names : list of str
        The functions in it that follow the packed calling convention.
    const_vars : list of str
        The constants that it needs from the module around it.
    """
    functions = [str(name) for name in func_names or ()]
    constants = [str(name) for name in const_vars or ()]
    create = get_global_func("runtime.ModuleFromCSource")
    module: Module = create(str(code), str(fmt), len(functions), *functions, *constants)
    return module
