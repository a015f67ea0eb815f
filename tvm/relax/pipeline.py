"""The passes of a build, in order, on one page.

mod = relax.get_pipeline("zero")(mod)               # operators as fused loop programs
executable = relax.build(mod, target="llvm")        # and the rest: "default_build"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, Sequential, module_pass
from tvm.relax import transform
from tvm.relax.backend.dispatch_sampling import DispatchSampling
from tvm.relax.backend.kernels import LowerToKernels
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.target import Target

_PIPELINES: dict[str, Callable[..., Pass]] = {}


def register_pipeline(name: str) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """Name a function that makes a pipeline; a decorator.

    Parameters
    ----------
    name : str
        The name, which no pipeline has.
    """
    if name in _PIPELINES:
        raise ValueError(f"there is a pipeline {name!r} already")

    def register(make: Callable[..., Pass]) -> Callable[..., Pass]:
        _PIPELINES[name] = make
        return make

    return register


def get_pipeline(name: str = "zero", **kwargs: Any) -> Pass:
    """The pipeline of that name.

    Parameters
    ----------
    name : str
        ``"zero"``, ``"default_build"``, or what `register_pipeline` was given.
    kwargs
        What the pipeline takes.
    """
    if name not in _PIPELINES:
        raise ValueError(f"there is no pipeline {name!r}; there are {', '.join(_PIPELINES)}")
    return _PIPELINES[name](**kwargs)


def lowering_passes() -> list[Pass]:
    """From operators to what the virtual machine runs."""
    # copies in the order of memory are views
    return [transform.RewriteDataflowReshape(), *memory_passes(), *instruction_passes()]


def kernel_passes(watch: Callable[[Sequence[LoweredKernel]], None] | None = None) -> list[Pass]:
    """Operators become calls of kernels.

    Parameters
    ----------
    watch : function, optional
        What is shown the kernels of the library.
    """
    # kernels of known shapes first, loop programs for the rest
    return [LowerToKernels(watch), DispatchSampling(), transform.LegalizeOps()]


def memory_passes() -> list[Pass]:
    """Results get their places in planned memory."""
    return [
        # results in memory that the caller has
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
        transform.LowerAllocTensor(),
    ]


def instruction_passes() -> list[Pass]:
    """From calls in memory to functions of the machine."""
    return [
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]


def _sequence(name: str, make: Callable[[], list[Pass]]) -> Pass:
    def run(mod: IRModule, context: Any) -> IRModule:
        return Sequential(make())(mod)

    return module_pass(run, opt_level=0, name=name)  # type: ignore[no-any-return]


@register_pipeline("zero")
def zero_pipeline() -> Pass:
    """Operators become loop programs, which are fused."""
    return _sequence("zero_pipeline", _zero_passes)


@register_pipeline("default_build")
def default_build_pipeline() -> Pass:
    """All passes of `relax.build`."""
    return _sequence("default_build_pipeline", _build_passes)


def get_default_pipeline(target: str | Target) -> Pass:
    """All passes of `relax.build` for a target, as newer releases name them.

    Parameters
    ----------
    target : str or Target
        The machine that the kernels are for.

    Returns
    -------
    tvm.transform.Pass
        A pass for `tvm.compile` and `relax.build`.
    """
    machine = Target(target)

    def run(mod: IRModule, context: Any) -> IRModule:
        with machine:
            return Sequential(_build_passes())(mod)

    found: Pass = module_pass(run, opt_level=0, name="default_pipeline")
    return found


def _zero_passes() -> list[Pass]:
    return [
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
    ]


def _build_passes() -> list[Pass]:
    return [*kernel_passes(), *lowering_passes()]
