"""From modules of relax to executables of the virtual machine: ``relax.build``.

passes -> instructions (or loop programs on the machine's registers) + a library of the loop programs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.driver.build_module import build as build_library
from tvm.error import TVMError
from tvm.ir import extension
from tvm.ir.module import IRModule
from tvm.relax.backend.vm_codegen import compile_functions
from tvm.relax.backend.vm_tir_codegen import lower_functions
from tvm.relax.exec_builder import ExecBuilder
from tvm.relax.expr import Function
from tvm.relax.pipeline import get_pipeline
from tvm.relay.backend.external import ExternalCode
from tvm.relay.backend.runtime import Runtime
from tvm.runtime.module import Module
from tvm.runtime.relax_vm import Executable as Executable
from tvm.target import Target
from tvm.tir import PrimFunc

VMExecutable = Executable


def build(
    mod: IRModule | Function | PrimFunc,
    target: str | Target | None = None,
    params: Mapping[str, Any] | None = None,
    pipeline: Any = "default_build",
    exec_mode: str = "bytecode",
    *,
    system_lib: bool | None = None,
) -> Executable:
    """Compile a module for the virtual machine.

    Parameters
    ----------
    mod : IRModule
        Functions of relax and loop programs; a single function is called ``main``.
    target : str or Target, optional
        The machine; by default the current target.
    params : dict of str to NDArray, optional
        Values of parameters of ``main``, by name.
    pipeline : str, Pass or None
        The passes to run first: a name for `get_pipeline`, a pass, or None for none.
    exec_mode : str
        ``"bytecode"``: functions become instructions; ``"compiled"``: machine code.
    system_lib : bool, optional
        Whether the library becomes part of a program, where it registers itself; by default if the
        target's option ``system-lib`` says so.
    """
    if isinstance(mod, (Function, PrimFunc)):
        mod = IRModule.from_expr(mod)
    kind = (Target.current() or Target("llvm")) if target is None else Target(target)
    mod = bound(mod, params)
    passes = get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    if passes is not None:
        with kind:
            mod = passes(mod)
    attrs = mod.attrs or {}
    externals, constants = attrs.get("external_mods", []), attrs.get("const_name_to_constant", {})
    builder = ExecBuilder()
    rest = _vmcodegen(builder, mod, exec_mode)
    return _vmlink(builder, kind, rest, externals, dict(constants), system_lib=system_lib)


def _compile(mod: IRModule, target: str | Target | None, pipeline: Any) -> Executable:
    return build(mod, target, pipeline="default_build" if pipeline == "default" else pipeline)


extension.compile_model.provide(Function, _compile)


def bound(mod: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    if not params:
        return mod
    main = mod["main"]
    known = {param.name_hint for param in main.params}
    if unknown := [name for name in params if name not in known]:
        raise TVMError(f"build was given values of {unknown}, which are no parameters of main")
    return mod.with_functions(
        {g: f.bind_params(params) if f is main else f for g, f in mod.functions.items()}
    )


def _vmcodegen(builder: ExecBuilder, mod: IRModule, exec_mode: str = "bytecode") -> IRModule:
    """Emit the functions of relax; the module of loop programs that they need.

    Parameters
    ----------
    builder : ExecBuilder
    mod : IRModule
        Lowered for the virtual machine.
    exec_mode : str
        ``"bytecode"`` or ``"compiled"``.
    """
    if exec_mode == "bytecode":
        return compile_functions(builder, mod)
    if exec_mode == "compiled":
        return lower_functions(builder, mod)
    raise ValueError(f'exec_mode must be "bytecode" or "compiled", got {exec_mode!r}')


def _vmlink(
    builder: ExecBuilder,
    target: str | Target,
    tir_mod: IRModule | None = None,
    ext_libs: Sequence[Module] | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    system_lib: bool | None = None,
) -> Executable:
    """Compile loop programs, and join them with what was emitted.

    Parameters
    ----------
    builder : ExecBuilder
        What was emitted.
    target : Target
    tir_mod : IRModule, optional
        The loop programs.
    ext_libs : list of Module, optional
        Of external compilers.
    params : dict of str to NDArray, optional
        The constants that modules of external compilers ask for; others are part of the instructions.
    system_lib : bool, optional
        As of `build`.
    """
    executable = builder.get()
    kind = Target(target) if isinstance(target, str) else target
    programs = {
        gvar: func
        for gvar, func in (tir_mod.functions.items() if tir_mod is not None else ())
        if isinstance(func, PrimFunc)
    }
    if not programs and not ext_libs:
        return executable
    library = None
    if tir_mod is not None and programs:
        runtime = _system_runtime(kind, system_lib)
        library = build_library(tir_mod.with_functions(programs), target=kind, runtime=runtime)
    external = ExternalCode(tuple(ext_libs or ()), dict(params or {}))
    executable.mod.import_module(external.link(library))
    return executable


def _system_runtime(target: Target, system_lib: bool | None) -> Any:
    """The runtime of a library that registers itself, None of others."""
    if system_lib is None:
        host = target.host or target
        system_lib = bool(host.attrs.get("system-lib", False))
    return Runtime("cpp", {"system-lib": True}) if system_lib else None
