"""From a fused function to a loop-level function.

The body's operators become te stages through their `compute` facets; the schedule is that of the
anchor, the most complex operator of the function, which inlines the simple ones around it.
Functions with equal bodies are lowered once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import tvm.topi.generic as topi_generic
import tvm.topi.x86 as topi_x86
from tvm import knobs, te, tir, topi
from tvm.codegen import build_module
from tvm.codegen.cache import is_on_disk
from tvm.codegen.llvm.library import llvm_lock
from tvm.codegen.llvm.parts import FUNCTION_KEYS
from tvm.driver import build_lowered, lower
from tvm.driver.build_module import KERNEL_VERSIONS
from tvm.driver.tuners import is_auto_scheduler_enabled
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext
from tvm.ir.structural import structural_equal, structural_hash
from tvm.relay.backend.kernel_cache import find_kernel, is_kept, is_usable, keep_kernel
from tvm.relay.backend.libraries import by_library
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.name_transforms import sanitize
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import KEEP_ROUNDING, Function
from tvm.relay.op.registry import OpPattern
from tvm.relay.op.strategy import OpImplementation, is_computable, select_implementation
from tvm.relay.traverse import post_order
from tvm.relay.ty import flat_part, flat_types
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support import UniqueNames
from tvm.support.dtype import dtype as as_dtype
from tvm.support.later import names_from_above
from tvm.support.workers import share_out, usual_processes
from tvm.target import Target
from tvm.target.versions import version_targets
from tvm.te.index_width import needs_wide_indices, wide_indices
from tvm.te.schedule.record import KEEP_RECORD
from tvm.tir import PrimFunc
from tvm.tir.transform import BF16ComputeLegalize
from tvm.tir.transform.run_on_one_thread import RunOnOneThread
from tvm.topi.choice import noted

BFLOAT16 = as_dtype("bfloat16")
MAX_NAME = 80
FEWEST_SHARED = 12  # calls of kernels that it may pay to start another process for
# the attribute of fused functions that run elsewhere than the main target's: where
PLACE = "place"
# `schedule_of` of the auto-scheduler, which is imported only where it is used
_on_demand = names_from_above(__name__)


def operators_of(func: Function) -> list[Op]:
    """The operators that the body calls, operands first."""
    return [n.op for n in post_order(func.body) if isinstance(n, Call) and isinstance(n.op, Op)]


def kernel_name(func: Function) -> str:
    """`fused_nn_conv2d_add_nn_relu`, shortened if it gets long."""
    name = "_".join(["fused", *[sanitize(op.name) for op in operators_of(func)]])
    if len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}_{structural_hash(func):016x}_"
    return name


@dataclass
class ComputeGraph:
    """The te stages of a fused function."""

    inputs: list[te.Tensor] = field(default_factory=list)
    constants: list[tuple[te.Tensor, NDArray]] = field(default_factory=list)
    outputs: list[te.Tensor] = field(default_factory=list)
    scalars: list[te.Tensor] = field(default_factory=list)
    anchor: Call | None = None
    implementation: OpImplementation | None = None  # of the anchor, if a strategy chose it


class _ComputeBuilder:
    """Applies the compute facets bottom up."""

    def __init__(self, func: Function, target: Target) -> None:
        self.func = func
        self.target = target
        self.graph = ComputeGraph()
        self.values: dict[int, list[te.Tensor]] = {}

    def build(self) -> ComputeGraph:
        graph = self.graph
        for param in self.func.params:
            tensors = [
                te.placeholder(ty.shape, ty.dtype, name=f"p{len(graph.inputs) + i}")
                for i, ty in enumerate(flat_types(param.checked_type))
            ]
            graph.inputs.extend(tensors)
            self.values[id(param)] = tensors
        for node in post_order(self.func.body):
            if not isinstance(node, (Op, Var)):
                self.values[id(node)] = self._tensors(node)
        graph.outputs = self._distinct(self.values[id(self.func.body)])
        return graph

    def _tensors(self, node: RelayExpr) -> list[te.Tensor]:
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Tuple):
            return [t for f in node.fields for t in self.values[id(f)]]
        if isinstance(node, TupleGetItem):
            part = flat_part(node.tuple_value.checked_type, node.index)
            return self.values[id(node.tuple_value)][part]
        if isinstance(node, Constant):
            return [self._array(node) if node.data.shape else self._scalar(node)]
        raise TVMError(f"a kernel cannot contain {type(node).__name__}", at=node)

    def _call(self, call: Call) -> list[te.Tensor]:
        op = call.op
        if not isinstance(op, Op) or not is_computable(op):
            raise OpNotImplemented(f"operator {op} has no compute definition")
        types = flat_types(call.checked_type)
        if types and all([ty.is_empty for ty in types]):
            return [topi.full(ty.shape, ty.dtype, 0) for ty in types]
        inputs = [t for a in call.args for t in self.values[id(a)]]
        implementation = None
        if (found := by_library(op, call.attrs, inputs, self.target)) is not None:
            implementation, results = found
        elif op.strategy is not None:
            implementation, results = select_implementation(
                op, call.attrs, inputs, call.checked_type, self.target
            )
        else:
            assert op.compute is not None  # it is computable
            results = list(op.compute(call.attrs, inputs, call.checked_type))
        if self._is_anchor(op):
            self.graph.anchor, self.graph.implementation = call, implementation
        return results

    def _is_anchor(self, op: Op) -> bool:
        anchor = self.graph.anchor
        return anchor is None or _pattern(op) >= _pattern(anchor.op)

    def _array(self, constant: Constant) -> te.Tensor:
        """A constant that stays in the kernel's code."""
        name = f"constant_{len(self.graph.constants)}"
        tensor = te.placeholder(constant.data.shape, str(constant.data.dtype), name=name)
        self.graph.constants.append((tensor, constant.data))
        return tensor

    def _scalar(self, constant: Constant) -> te.Tensor:
        value = constant.data.numpy().item()
        dtype = str(constant.data.dtype)
        tensor: te.Tensor = te.compute(
            (), lambda: tir.const(value, dtype), name="compile_engine_const", tag="broadcast"
        )
        self.graph.scalars.append(tensor)
        return tensor

    def _distinct(self, outputs: list[te.Tensor]) -> list[te.Tensor]:
        """The results, copied where one is an input or a constant, or occurs twice."""
        graph = self.graph
        given = [*graph.inputs, *[tensor for tensor, _ in graph.constants], *graph.scalars]
        found: list[te.Tensor] = []
        for tensor in outputs:
            if any([tensor.same_as(other) for other in [*given, *found]]):
                tensor = _copy(tensor)
            found.append(tensor)
        return found


def _copy(tensor: te.Tensor) -> te.Tensor:
    copied: te.Tensor = te.compute(
        tensor.shape, lambda *i: tensor(*i), name="T_copy", tag="elemwise"
    )
    return copied


def _pattern(op: RelayExpr) -> OpPattern:
    assert isinstance(op, Op)
    return OpPattern.OPAQUE if op.fuse is None else OpPattern(op.fuse)


def schedule_for(graph: ComputeGraph, target: Target) -> te.Schedule:
    """The anchor's schedule for the target; the plain one if it has none."""
    op = graph.anchor.op if graph.anchor is not None else None
    schedules = (op.schedules or {}) if isinstance(op, Op) else {}
    make = next((schedules[k] for k in (*target.keys, "generic") if k in schedules), None)
    if "gpu" in target.keys:
        make = next((schedules[k] for k in target.keys if k in schedules), _gpu_schedule)
    if graph.implementation is not None:
        make = graph.implementation.schedule
    if make is None or graph.anchor is None:
        sch = _plain_schedule(graph, target)
    else:
        sch = make(graph.anchor.attrs, graph.outputs, target)
    # what is no compute reads its inputs in memory
    in_memory = {
        id(tensor.op)
        for stage in sch.stages
        if not isinstance(stage.op, te.tensor.ComputeOp)
        for tensor in stage.op.input_tensors
    }
    for scalar in graph.scalars:
        if scalar.op in sch.stage_map and id(scalar.op) not in in_memory:
            sch[scalar].compute_inline()
    return sch


def _gpu_schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    return topi.threads.schedule(outs)


def searched_schedule(graph: ComputeGraph, target: Target, name: str) -> te.Schedule | None:
    """What the auto-scheduler's context has for a kernel."""
    schedule: te.Schedule | None = _on_demand("schedule_of")(graph.outputs, target, name)
    return schedule


def _plain_schedule(graph: ComputeGraph, target: Target) -> te.Schedule:
    """On processors: maps in vectors, on all threads; anything else in plain loops."""
    is_map = graph.anchor is None or _pattern(graph.anchor.op) <= OpPattern.INJECTIVE
    computed = [isinstance(x.op, te.tensor.ComputeOp) for x in graph.outputs]
    if "gpu" in target.keys:
        return topi.threads.schedule(graph.outputs)
    if "cpu" in target.keys and is_map and all(computed):
        return topi_x86.schedule_injective(graph.outputs)
    return topi_generic.schedule_injective(graph.outputs)


def compute_graph(func: Function, target: Target) -> ComputeGraph:
    """The te stages of a typed function of operators, as the target computes them."""
    with target, wide_indices(_has_large_tensor(func)):
        return _ComputeBuilder(func, target).build()


def _has_large_tensor(func: Function) -> bool:
    """Whether 32 bits cannot count the elements of a tensor inside."""
    values = [node for node in post_order(func.body) if not isinstance(node, Op)]
    types = [ty for value in values for ty in flat_types(value.checked_type)]
    return any([needs_wide_indices(ty.shape) for ty in types])


def lower_kernel(func: Function, name: str, target: Target) -> LoweredKernel:
    """The loops of one fused function."""
    with target, noted() as choices:
        graph = compute_graph(func, target)
        sch = (searched_schedule(graph, target, name) if is_auto_scheduler_enabled() else None) or (
            schedule_for(graph, target)
        )
        constants = [tensor for tensor, _ in graph.constants]
        args = [*graph.inputs, *constants, *graph.outputs]
        mod = lower(sch, args, name=name, binds=_compact_buffers(args))
        if any([t.dtype is BFLOAT16 for t in args]):
            # a kernel computes in float32, and rounds what it stores and what the program casts
            mod = BF16ComputeLegalize(KEEP_ROUNDING in func.attrs)(mod)
        if "gpu" in target.keys:
            mod = RunOnOneThread()(mod)
    prim_func = mod[name].with_attr("target", target.hosted())
    arrays = [array for _, array in graph.constants]
    prim_func = with_constants(prim_func, len(graph.inputs), arrays)
    return LoweredKernel(name, prim_func, func, sch, choices=tuple(choices))


def with_constants(func: PrimFunc, first: int, arrays: Sequence[NDArray]) -> PrimFunc:
    """A function whose parameters from `first` on are bound to arrays in its code.

    A function of blocks holds them in its root block, which schedules take for its whole body.
    """
    if not arrays:
        return func
    bound = func.params[first : first + len(arrays)]
    root = func.body if isinstance(func.body, tir.BlockRealize) else None
    body = root.block.body if root else func.body
    for param, array in zip(bound, arrays, strict=True):
        buffer = func.buffer_map[param]
        body = tir.AllocateConst(buffer.data, buffer.dtype, buffer.shape, array, body)
    if root:
        body = root.replace(block=root.block.replace(body=body))
    params = [*func.params[:first], *func.params[first + len(arrays) :]]
    buffers = {p: func.buffer_map[p] for p in params if p in func.buffer_map}
    return PrimFunc(params, body, func.ret_type, buffers, func.attrs)


def _compact_buffers(args: Sequence[te.Tensor]) -> dict[te.Tensor, tir.Buffer]:
    """Buffers for the tensors whose shape only the run knows; they never broadcast by strides."""
    return {
        t: tir.decl_buffer(t.shape, t.dtype, t.op.name)
        for t in args
        if not all(isinstance(dim, tir.IntImm) for dim in t.shape)
    }


class KernelCompiler:
    """Lowers fused functions; equal ones once.

    Kernels that earlier processes lowered have no schedules: with `keeps_schedules` each is lowered.
    """

    def __init__(self, target: Target, prefix: str = "", keeps_schedules: bool = False) -> None:
        self.target = target
        keeps_schedules |= bool(PassContext.current().get(KEEP_RECORD, False))
        self.is_cached = not keeps_schedules and is_usable()
        self.versions = version_targets(target)
        self.kernels: list[LoweredKernel] = []
        self._names = UniqueNames()
        self._prefix = prefix
        self._known: dict[int, list[LoweredKernel]] = {}
        # what `lower_ahead` was given, and by its identities what it found: hash, first equal one
        self._ahead: Sequence[Function] = ()
        self._found: dict[int, tuple[int, Function]] = {}

    def lower_ahead(self, functions: Sequence[Function]) -> None:
        """Lower in several processes what `lower` will be asked for next, in that order.

        The processes meet in the cache, where `lower` finds the kernels.
        """
        distinct = self._distinct(functions)
        if not self.is_cached or not is_on_disk() or len(functions) < FEWEST_SHARED:
            return
        processes = knobs.COMPILE_PROCESSES.value or usual_processes()
        if processes < 2:
            return
        names = UniqueNames()
        missing: list[tuple[Function, str, Target]] = []
        for func in distinct:
            name = names.fresh(f"{self._prefix}{kernel_name(func)}")
            if PLACE not in func.attrs:
                missing += [(func, name, target) for target in (self.target, *self.versions)]
        wanted = [item for item in missing if not is_kept(*item)]
        share_out(_lower_into_cache, wanted, processes, llvm_lock())

    def _distinct(self, functions: Sequence[Function]) -> list[Function]:
        """The first of each that are equal; `lower` need not compare them again."""
        self._ahead = functions  # so that identities stay valid
        distinct: list[Function] = []
        groups: dict[int, list[Function]] = {}
        for func in functions:
            if id(func) in self._found:
                continue
            digest = structural_hash(func)
            known = groups.setdefault(digest, [])
            first = next((other for other in known if structural_equal(other, func)), func)
            if first is func:
                known.append(func)
                distinct.append(func)
            self._found[id(func)] = digest, first
        return distinct

    def lower(self, func: Function) -> LoweredKernel:
        """The kernel of a function, made now if no equal one was."""
        digest, func = self._found.get(id(func)) or (structural_hash(func), func)
        candidates = self._known.setdefault(digest, [])
        for kernel in candidates:
            if structural_equal(kernel.source, func):
                return kernel
        name = self._names.fresh(f"{self._prefix}{kernel_name(func)}")
        place = func.attrs.get(PLACE)
        target = self.target if place is None else place.target
        versions = self.versions if place is None else ()
        try:
            kernel = replace(
                self._lower(func, name, target),
                digest=digest,
                versions=tuple([self._lower(func, name, v).func for v in versions]),
            )
        except TVMError as error:
            raise error.add_context(f"kernel {name}") from None
        candidates.append(kernel)
        self.kernels.append(kernel)
        return kernel

    def _lower(self, func: Function, name: str, target: Target) -> LoweredKernel:
        is_cached = self.is_cached and PLACE not in func.attrs
        found = find_kernel(func, name, target) if is_cached else None
        if found is None:
            found = lower_kernel(func, name, target)
            if is_cached:
                found = keep_kernel(found, target)
        return found

    def module(self) -> IRModule:
        """The kernels of the main target so far."""
        own = [kernel for kernel in self.kernels if not kernel.source.attrs.get(PLACE)]
        module = IRModule({kernel.name: kernel.func for kernel in own})
        if not self.versions:
            keys = {kernel.name: kernel.key for kernel in own if kernel.key is not None}
            return module.with_attr(FUNCTION_KEYS, keys) if keys else module
        versions = {
            target.mcpu: IRModule({kernel.name: kernel.versions[i] for kernel in own})
            for i, target in enumerate(self.versions)
        }
        return module.with_attr(KERNEL_VERSIONS, versions)

    def elsewhere(self) -> dict[Target, IRModule]:
        """Those of the other targets."""
        found: dict[Target, IRModule] = {}
        for kernel in self.kernels:
            if (place := kernel.source.attrs.get(PLACE)) is not None:
                found.setdefault(place.target, IRModule())[kernel.name] = kernel.func
        return found


def _lower_into_cache(item: tuple[Function, str, Target]) -> None:
    with suppress(TVMError):  # left to be raised where the kernel is asked for
        keep_kernel(lower_kernel(*item), item[2])


def build_kernels(
    kernels: IRModule, target: Target, elsewhere: Mapping[Target, IRModule]
) -> Module:
    """The library of the main target's functions; those of other targets are imported."""
    # a model may only hand on its inputs; its library is then empty
    lib = (build_lowered if kernels.functions else build_module)(kernels, target)
    for other, functions in elsewhere.items():
        lib.import_module(build_lowered(functions, other))
    return lib


def check_operators(functions: Sequence[Function]) -> None:
    """Raise one error that lists all operators that cannot be compiled."""
    missing: dict[str, int] = {}
    for func in functions:
        for op in operators_of(func):
            if not is_computable(op):
                missing[op.name] = missing.get(op.name, 0) + 1
    if missing:
        listed = ", ".join([f"{name} (used {n} times)" for name, n in missing.items()])
        raise OpNotImplemented(f"these operators have no compute definition: {listed}")
