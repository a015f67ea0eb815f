"""Lowering calls and fused functions by hand, under the classic names.

compiler = relay.backend.te_compiler.get()
cached = compiler.lower(fused_function, "llvm").cached_func
kernel = compiler.jit(fused_function, "llvm")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tir
from tvm.driver import build_lowered
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.kernels import KernelCompiler, kernel_name, lower_kernel, schedule_for
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.name_transforms import mangle_module_name
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.op.strategy import OpImplementation, get_valid_implementations
from tvm.relay.op.strategy import select_implementation as _select
from tvm.relay.ty import flat_types
from tvm.runtime.module import Module
from tvm.runtime.packed_func import PackedFunc
from tvm.target import Target

__all__ = [
    "CCacheKey", "CCacheValue", "LoweredOutput", "TECompiler", "flat_types", "get", "get_shape",
    "get_valid_implementations", "kernel_name", "lower_call", "lower_kernel", "lower_to_primfunc",
    "schedule_for", "select_implementation",
]  # fmt: skip


@dataclass(frozen=True)
class LoweredOutput:
    """The tensors of an operator call, and the implementation that gave them."""

    outputs: list[te.Tensor]
    implement: OpImplementation


class CCacheKey:
    """A fused function and the target it is compiled for; equal for equal functions."""

    def __init__(self, source_func: Function, target: Any) -> None:
        self.source_func = source_func
        self.target = Target(target)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CCacheKey)
            and str(self.target) == str(other.target)
            and structural_equal(self.source_func, other.source_func)
        )

    def __hash__(self) -> int:
        return hash((str(self.target), structural_hash(self.source_func)))


@dataclass(frozen=True)
class CachedFunc:
    """What came out of lowering one function."""

    target: Target
    prim_fn_var: GlobalVar
    inputs: list[te.Tensor]
    outputs: list[te.Tensor]
    schedule: te.Schedule | None
    funcs: IRModule

    @property
    def prim_func(self) -> tir.PrimFunc:
        """The loops."""
        func = self.funcs[self.prim_fn_var]
        assert isinstance(func, tir.PrimFunc)
        return func


@dataclass
class CCacheValue:
    """A lowered function, how often it was asked for, and its code once it was compiled."""

    cached_func: CachedFunc
    use_count: int = 0
    module: Module | None = None

    def same_as(self, other: object) -> bool:
        """Whether both are the very same."""
        return self is other


def get_shape(shape: Sequence[Any]) -> list[Any]:
    """A shape as te takes it: constant extents as int32 if they fit, a variable for an unknown one."""
    return [_extent(extent) for extent in shape]


def _extent(extent: Any) -> Any:
    if isinstance(extent, tir.Any):
        return te.size_var("any_dim", "int32")
    value = getattr(extent, "value", extent)
    fits = isinstance(value, int) and abs(value) < 2**31
    return tir.IntImm("int32", value) if fits else extent


def select_implementation(
    op: Op,
    attrs: Any,
    inputs: Sequence[te.Tensor],
    out_type: Type,
    target: Any,
    use_autotvm: bool = True,
) -> tuple[OpImplementation, list[te.Tensor]]:
    """The implementation of an operator for a target, and its output tensors.

    Parameters
    ----------
    use_autotvm : whether records of tuning decide; without any, and without records, the
        implementation of the highest level is taken.
    """
    return _select(op, attrs, inputs, out_type, Target(target), use_autotvm)


def lower_call(
    call: Call, inputs: Sequence[te.Tensor], target: Any, otype: Type | None = None
) -> LoweredOutput:
    """The tensors of an operator call.

    Parameters
    ----------
    inputs : the tensors of its arguments.
    otype : the type of its result; by default the call's own.
    """
    if not isinstance(call.op, Op):
        raise TypeError(f"lower_call needs a call of an operator, got {type(call.op).__name__}")
    result = otype if otype is not None else infer_type_of(call)
    if not isinstance(result, (TensorType, TupleType)):
        raise TypeError(f"lower_call needs a result of tensors, got {result}")
    implementation, outputs = select_implementation(call.op, call.attrs, inputs, result, target)
    return LoweredOutput(outputs, implementation)


def lower_to_primfunc(relay_func: Function, target: Any) -> tir.PrimFunc:
    """The loops of one fused function."""
    return lower_kernel(relay_func, kernel_name(relay_func), Target(target)).func


class TECompiler:
    """Lowers and compiles fused functions; equal ones once for a target."""

    def __init__(self) -> None:
        self._cache: dict[CCacheKey, CCacheValue] = {}
        self._compilers: dict[tuple[str, str], KernelCompiler] = {}

    def lower(
        self, source_func: Function | CCacheKey, target: Any = None, mod_name: str = "default"
    ) -> CCacheValue:
        """The loops of a function.

        Parameters
        ----------
        source_func : a fused function, or the key of one.
        target : for which machine; by default the current target.
        mod_name : part of the name of the loops' function.
        """
        key = self._key(source_func, target)
        value = self._cache.get(key)
        if value is None:
            place = (str(key.target), mod_name)
            if place not in self._compilers:
                prefix = f"{mangle_module_name(mod_name)}_"
                self._compilers[place] = KernelCompiler(key.target, prefix, True)
            if getattr(key.source_func, "_checked_type_", None) is None:
                infer_type_of(key.source_func)
            kernel = self._compilers[place].lower(key.source_func)
            value = self._cache[key] = CCacheValue(_cached(kernel, key.target))
        value.use_count += 1
        return value

    def jit(self, source_func: Function | CCacheKey, target: Any = None) -> PackedFunc:
        """The compiled function: it takes the inputs, then the outputs."""
        value = self.lower(source_func, target)
        cached = value.cached_func
        if value.module is None:
            value.module = build_lowered(cached.funcs, cached.target)
        return value.module[cached.prim_fn_var.name_hint]

    def clear(self) -> None:
        """Forget all functions."""
        self._cache.clear()
        self._compilers.clear()

    def items(self) -> list[tuple[CCacheKey, CCacheValue]]:
        """The functions so far."""
        return list(self._cache.items())

    def dump(self) -> None:
        """Print what was lowered."""
        for _, value in self.items():
            cached = value.cached_func
            print(f"{cached.prim_fn_var.name_hint} ({cached.target}) used {value.use_count} times")
            print(cached.prim_func)

    @staticmethod
    def _key(source_func: Function | CCacheKey, target: Any) -> CCacheKey:
        if isinstance(source_func, CCacheKey):
            return source_func
        if not isinstance(source_func, Function):
            raise TypeError(f"a relay function is needed, got {type(source_func).__name__}")
        return CCacheKey(source_func, Target.target_or_current(target))


def _cached(kernel: LoweredKernel, target: Target) -> CachedFunc:
    sch = kernel.schedule
    outputs = [] if sch is None else [op.output(0) for op in sch.outputs]
    placeholders = [] if sch is None else [s.op for s in sch.stages]
    inputs = [op.output(0) for op in placeholders if isinstance(op, te.PlaceholderOp)]
    gvar = GlobalVar(kernel.name)
    funcs = IRModule({gvar: kernel.func})
    return CachedFunc(target, gvar, inputs, outputs, sch, funcs)


_SHARED = TECompiler()


def get() -> TECompiler:
    """The compiler that whoever asks for one shares."""
    return _SHARED
