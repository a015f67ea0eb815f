"""``tvm.compile``: loop programs or models in relax, by the name of the newer releases."""

from __future__ import annotations

from tvm.driver.build_module import build
from tvm.ir import extension
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.runtime.executable import Executable
from tvm.target import Target
from tvm.tir.function import PrimFunc


def compile(
    mod: PrimFunc | IRModule,
    target: str | Target | None = None,
    *,
    relax_pipeline: str | Pass | None = "default",
    tir_pipeline: str | Pass | None = "default",
) -> Executable:
    """Compile loop programs, or a model in relax with its loop programs.

    Parameters
    ----------
    mod : PrimFunc or IRModule
        What to compile.
    target : str or Target, optional
        The machine; by default the current target, or this machine.
    relax_pipeline : str or Pass, optional
        The passes on relax: a name for `tvm.relax.get_pipeline`, a pass, or None for none.
    tir_pipeline : str or Pass, optional
        A pass that runs before loop programs are lowered; "default" and None are none.

    Returns
    -------
    tvm.runtime.Executable
        ``executable[name]`` is a function of a loop program; of relax it is a
        `tvm.relax.VMExecutable`, which `tvm.relax.VirtualMachine` runs.

    Raises
    ------
    TypeError
        If `mod` is neither, or has functions of relay.
    ValueError
        If a pipeline has an unknown name.
    """
    if not isinstance(mod, (PrimFunc, IRModule)):
        raise TypeError(f"tvm.compile takes a PrimFunc or an IRModule, got {type(mod).__name__}")
    if isinstance(tir_pipeline, str):
        if tir_pipeline != "default":
            raise ValueError(f'tir_pipeline is "default", a pass or None, got {tir_pipeline!r}')
    elif tir_pipeline is not None:
        mod = tir_pipeline(mod if isinstance(mod, IRModule) else IRModule.from_expr(mod))
    functions = mod.functions.values() if isinstance(mod, IRModule) else [mod]
    for func in functions:
        if compile_model := extension.compile_model.find(type(func)):
            executable: Executable = compile_model(mod, target, relax_pipeline)
            return executable
    if others := {type(f).__name__ for f in functions if not isinstance(f, PrimFunc)}:
        raise TypeError(
            f"tvm.compile takes loop programs and relax, got {', '.join(sorted(others))}: "
            "tvm.relay.build compiles relay"
        )
    return Executable(build(mod, target=target))
