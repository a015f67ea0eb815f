"""``lower`` and ``build``: from schedules and functions to modules that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.codegen import build_module, find_generator
from tvm.codegen.llvm.parts import INDEPENDENT_FUNCTIONS
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.runtime.module import Module
from tvm.runtime.packed_func import PackedFunc
from tvm.support.scope import compiling
from tvm.target import Target
from tvm.target.ext_dev import code_target
from tvm.target.versions import version_targets
from tvm.te.schedule.lower import argument_buffer, lower_schedule
from tvm.te.schedule.reads import check_reads
from tvm.te.schedule.schedule import Schedule
from tvm.te.tensor import Tensor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.pipeline import is_launched, lower_for_host, lower_module

# the attribute of a module whose functions were lowered for several versions of its target
KERNEL_VERSIONS = "kernel_versions"
LowerInput = Schedule | PrimFunc | IRModule


class OperatorModule(Module):
    """What `build` returns: compiled functions, with the loops that they were made from."""

    __slots__ = ("_others", "ir_module_by_target", "name")

    def __init__(
        self,
        handle: Any,
        ir_module_by_target: Mapping[Target, IRModule] | None = None,
        name: str | None = None,
        others: Sequence[Module] = (),
    ) -> None:
        super().__init__(handle)
        self.ir_module_by_target = dict(ir_module_by_target or {})
        self.name = name
        self._others = tuple(others)  # host code for other targets, which is imported

    @classmethod
    def from_module(cls, mod: Module, **kwargs: Any) -> OperatorModule:
        """The same native module, described by `ir_module_by_target` and `name`."""
        return cls(mod.handle, **kwargs)

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of that name, whichever target's host code it is in.

        Parameters
        ----------
        name : str
            Its name.
        query_imports : bool
            Whether to look into imported modules too.
        """
        for module in self._others:
            if module.implements_function(name):
                return module.get_function(name)
        return super().get_function(name, query_imports)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether some target's host code has a function of that name."""
        is_elsewhere = any([module.implements_function(name) for module in self._others])
        return is_elsewhere or super().implements_function(name, query_imports)


def get_binds(
    args: Sequence[Any], compact: bool = False, binds: Mapping[Any, Buffer] | None = None
) -> tuple[dict[Any, Buffer], list[Any]]:
    """The buffers of tensor arguments, and the arguments with buffers in place of tensors.

    Parameters
    ----------
    args : list of Buffer, Tensor or Var
        The arguments.
    compact : bool
        Whether dimensions of variable extent must not broadcast.
    binds : dict of Tensor to Buffer, optional
        Buffers that some tensors have already.
    """
    bound = dict(binds or {})
    listed: list[Any] = []
    for arg in args:
        if isinstance(arg, Tensor):
            if arg not in bound:
                bound[arg] = argument_buffer(arg, compact)
            listed.append(bound[arg])
        elif isinstance(arg, (Buffer, Var)):
            listed.append(arg)
        else:
            raise ValueError(f"args must be Tensor, Buffer or Var, got {type(arg).__name__}")
    return bound, listed


def schedule_to_module(
    sch: Schedule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Any, Buffer] | None = None,
) -> IRModule:
    """The loops of a schedule, before any pass."""
    if not isinstance(args, (list, tuple)):
        raise ValueError(
            f"a schedule needs its arguments as a list of tensors, got {type(args).__name__}: "
            "tvm.build(s, [A, B, C])"
        )
    # with the bound checkers, reads are judged while the program runs
    if not PassContext.current().config.get("tir.instrument_bound_checkers", False):
        check_reads(sch.program)
    return IRModule({name: _exposed(lower_schedule(sch, args, name, binds), name)})


def _exposed(func: PrimFunc, name: str) -> PrimFunc:
    """The function under its name, with the promise that its arguments do not overlap."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a function needs a text that is not empty as its name, got {name!r}")
    attrs: dict[str, Any] = {"global_symbol": name}
    if func.get_attr("tir.noalias") is None and PassContext.current().get("tir.noalias", True):
        attrs["tir.noalias"] = True
    return func.with_attrs(attrs)


def lower(
    inp: LowerInput,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Any, Buffer] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Lower a schedule, a function or a module to flat loops.

    Parameters
    ----------
    inp : te.Schedule, PrimFunc or IRModule
        What to lower.
    args : list of Buffer, Tensor or Var, optional
        The arguments of a schedule's function.
    name : str
        The function's name.
    binds : dict of Tensor to Buffer, optional
        Buffers for some of the tensors.
    simple_mode : bool
        Leave out the partition of loops, for a text that is easier to read.
    """
    with compiling():
        return lower_module(_as_module(inp, args, name, binds), simple_mode)


def _as_module(
    inp: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Buffer] | None
) -> IRModule:
    if isinstance(inp, IRModule):
        return inp
    if isinstance(inp, PrimFunc):
        return IRModule({name: _exposed(inp, name)})
    if isinstance(inp, Schedule):
        return schedule_to_module(inp, args, name, binds)
    if isinstance(inp, (list, tuple)) and inp:
        return _joined([_as_module(item, args, name, binds) for item in inp])
    raise ValueError(f"a te.Schedule, PrimFunc or IRModule is required, got {type(inp).__name__}")


def _joined(modules: Sequence[IRModule]) -> IRModule:
    """The functions of several modules in one."""
    first, *others = modules
    joined = first.clone()
    for module in others:
        for gvar, func in module.functions.items():
            if gvar.name_hint in joined:
                raise ValueError(f"modules are joined by names, got two of {gvar.name_hint!r}")
            joined[gvar] = func
    return joined


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: Any = None,
    target_host: Any = None,
    runtime: Any = None,
    name: str = "default_function",
    binds: Mapping[Any, Buffer] | None = None,
) -> OperatorModule:
    """Compile a schedule, function or module to a module that runs.

    Parameters
    ----------
    inputs : te.Schedule, PrimFunc, IRModule, list of them, or dict of target to any of these
        What to compile.
    args : list of Buffer, Tensor or Var, optional
        The arguments of a schedule's function.
    target : str or Target, optional
        For which machine; by default the current target, or else ``llvm``.
    target_host : str or Target, optional
        The machine of the host side, if it is another one.
    runtime : relay.backend.Runtime, optional
        The runtime that will run the code. The option ``system-lib`` makes the functions part of a
        system library: linked into a program, they register themselves.
    name, binds :
        As of :func:`lower`.
    """
    library = runtime_attrs(runtime)
    with compiling():
        by_target: dict[Target, IRModule] = {}
        for kind, module in _by_target(inputs, target):
            machine = code_target(kind.with_host(kind.host or target_host))
            lowered = lower(module, args, name, binds).with_attrs(library)
            known = by_target.get(machine)
            by_target[machine] = lowered if known is None else _joined([known, lowered])
        _check_names(list(by_target.values()))
        parts = [build_lowered(mod, kind) for kind, mod in by_target.items()]
    main, *others = parts
    for other in others:
        main.import_module(other)
    return OperatorModule.from_module(main, ir_module_by_target=by_target, name=name, others=others)


def _check_names(modules: Sequence[IRModule]) -> None:
    """Functions of all targets are called by their names."""
    names = [gvar.name_hint for module in modules for gvar in module.functions]
    if not names:
        raise TVMError("build requires at least one function of the loop level, got none")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"build requires functions of different names, got two of {twice[0]!r}")


def runtime_attrs(runtime: Any) -> dict[str, Any]:
    """What the runtime asks of modules.

    ``linked_runtime``: the code is linked with the runtime, which is in C, rather than loaded by it;
    ``system_lib_prefix``: functions register themselves.
    """
    if runtime is None:
        return {}
    attrs: dict[str, Any] = {"linked_runtime": True} if runtime.name == "crt" else {}
    if runtime.flag("system-lib"):
        attrs["system_lib_prefix"] = str(runtime.attrs.get("system-lib-prefix", ""))
    return attrs


def _by_target(inputs: Any, target: Any) -> list[tuple[Target, Any]]:
    if isinstance(inputs, Mapping):
        if not inputs:
            raise ValueError("build requires at least one module, got an empty dict")
        return [(Target(kind), module) for kind, module in inputs.items()]
    found = Target.canon_target(target) or Target.current() or Target("llvm")
    return [(found, inputs)]


def build_lowered(mod: IRModule, target: Target) -> Module:
    """Host code, with the kernels' modules imported.

    The module's attribute ``kernel_versions`` may hold its functions as they were lowered for the
    target's versions, by name.
    """
    given = mod.get_attr(KERNEL_VERSIONS) or {}
    mod = mod.without_attr(KERNEL_VERSIONS)
    if target.kind.name != "composite":
        find_generator(target)  # before its rules are asked for
    versions = version_targets(target)
    if mod.get_attr(INDEPENDENT_FUNCTIONS) and target.kind.name == "llvm" and not versions:
        return build_module(mod, target, lower=lower_for_host)
    target = target.hosted()
    lowered = lower_for_host(mod, target)
    kernels = {gvar: func for gvar, func in lowered.functions.items() if is_launched(func)}
    host = {gvar: func for gvar, func in lowered.functions.items() if gvar not in kernels}
    if target.kind.device_type == 1 and target.kind.name != "composite":
        host_target = target
    else:
        host_target = target.host or Target("llvm")
    others = [(v, lower_for_host(given.get(v.mcpu, mod), v)) for v in versions]
    module = build_module(lowered.with_functions(host), host_target, others)
    if kernels:
        module.import_module(build_module(lowered.with_functions(kernels), target))
    return module
