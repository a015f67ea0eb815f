"""The way of a loop-level program from a schedule to the code generator, on one page.

    te schedule or blocks -> flat memory -> vectors and threads -> clean code -> packed functions -> code

``lower`` runs the numbered phases; users' passes (``tir.add_lower_pass``) go behind the phase they name, those
of phase 0 in front of everything. ``build`` then runs the host phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.function import CallingConv
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.transform import ModulePass, Pass, PassInfo, Sequential
from tvm.tir import transform as tir
from tvm.tir.transform.hoist_if_then_else import hoist_if_then_else
from tvm.tir.transform.verify_predicates import VerifyPredicates
from tvm.tir.verify import Stage, verified

register_pass_config("tir.add_lower_pass", list)  # [(phase, pass or function)], run within lower
register_pass_config("tir.disable_vectorize", bool)  # vectorized loops become serial ones
register_pass_config("tir.disable_storage_rewrite", bool)  # allocations stay apart and in place
# common subexpressions are left to the code generator, unless one of these is given
register_pass_config("tir.disable_cse_tir", bool)  # False: bind them before
register_pass_config(
    "tir.enable_equiv_terms_in_cse_tir", bool
)  # True: also what is equal by algebra
register_pass_config("tir.noalias", bool)  # arguments of a function do not overlap
register_pass_config("tir.disable_assert", bool)  # compile no assertions
register_pass_config("tir.instrument_bound_checkers", bool)  # check every access while running
register_pass_config(
    "tir.enable_debug", bool, "TVM_DUMP_IR=folder writes the text of the program after each pass"
)
register_pass_config("tir.instrument_lwp", bool)  # mark loops for the light-weight profiler
register_pass_config("tir.vtcm_capacity", int)  # bytes of fast memory that functions may allocate
# True: bounds of vectorized loops become get_active_lane_mask; False: such loops stay loops
register_pass_config("tir.enable_buffer_level_predication", bool)
register_pass_config("tir.is_entry_func", bool, "the entry is the only function, or main")
register_pass_config("tir.use_async_copy", bool)  # copies in asynchronous scopes do not wait
register_pass_config("tir.ptx_ldg32", bool)  # guarded loads are predicated instructions of PTX
register_pass_config(
    "tir.detect_global_barrier", bool, "no built-in code generator has barriers of all blocks"
)

# Blocks become loops over buffers that are as small as they get.
LOWER_BLOCKS = (
    tir.LowerInitBlock(),
    tir.PlanAndUpdateBufferAllocationLocation(),
    tir.ConvertBlocksToOpaque(),
    tir.ManifestSharedMemoryLocalStage(),
    tir.CompactBufferAllocation(),
    tir.LowerAutoCopy(),
    tir.LowerMatchBuffer(),
    tir.InjectPermutedLayout(),
    tir.InjectSoftwarePipeline(),
    tir.TransformMmaBufferLayout(),
    tir.LowerOpaqueBlock(),
)

# Phase 1: from stages and blocks to flat memory.
FLATTEN = (
    tir.InjectRollingBuffer(),
    tir.InjectPrefetch(),
    tir.StorageFlatten(64),
    tir.LowerCrossThreadReduction(),
    *LOWER_BLOCKS,
    tir.UnifyThreadBinding(),
    tir.FlattenBuffer(),
    tir.NarrowDataType(32),
    tir.Simplify(thorough=False),
)

# Phase 2: loops become what their marks say; memory is planned.
PARTITION = (tir.LoopPartition(),)
VECTORIZE = (tir.VectorizeLoop(True, masked=True),)
SERIALIZE = (tir.VectorizeLoop(False),)
PLAN = (tir.InjectVirtualThread(), tir.InjectDoubleBuffer())
REUSE = (tir.StorageRewrite(small_bytes=1024, for_kernels=True),)
UNROLL = (tir.UnrollLoop(),)

# Phase 3: what the phases before have left is made small.
CLEAN = (
    tir.Simplify(thorough=False),
    tir.RemoveNoOp(),
    tir.RewriteUnsafeSelect(),
    hoist_if_then_else.factory(nested=False),
    tir.SelectLocalLanes(),
)

# Build for devices with threads: these wait for each other where they share memory.
THREADS = (
    tir.ThreadSync("shared"),
    tir.ThreadSync("shared.dyn"),
    tir.ThreadSync("warp"),
    tir.InferFragment(),
    tir.LowerThreadAllreduce(),
)

# Build, on the whole module: the calling convention.
CONVENTION = (
    tir.VerifyMemory(),
    VerifyPredicates(),
    tir.AnnotateDeviceRegions(),
    tir.SplitHostDevice(),
    tir.MergeSharedMemoryAllocations(),
    tir.MakePackedAPI(),
    tir.LowerDeviceKernelLaunch(),
)

# The same for functions that programs in C call with plain pointers.
UNPACKED_CONVENTION = (
    tir.VerifyMemory(),
    VerifyPredicates(),
    tir.AnnotateDeviceRegions(),
    tir.SplitHostDevice(),
    tir.MakeUnpackedAPI(),
    tir.LowerDeviceKernelLaunch(),
)

# Build, on functions of the host: what the code generator knows.
HOST = (
    tir.TransposeTiles(),
    tir.LowerTVMBuiltin(),
    tir.LowerCustomDatatypes(),
    tir.LowerNarrowIntegers(),
    tir.LowerIntrin(),
    tir.CombineContextCall(),
)

# Build, on kernels: what the languages of devices know.
KERNEL = (
    tir.LowerWarpMemory(),
    tir.LowerCustomDatatypes(),
    tir.LowerNarrowIntegers(),
    tir.LowerDeviceStorageAccessInfo(),
    tir.LowerIntrin(),
)


def lower_passes(simple_mode: bool = False) -> list[Pass]:
    """The passes of ``lower`` under the current context, users' own among them."""
    context = PassContext.current()
    own = user_passes(context.get("tir.add_lower_pass", []))
    second = [
        *(() if simple_mode else PARTITION),
        *(SERIALIZE if context.get("tir.disable_vectorize", False) else VECTORIZE),
        *PLAN,
        *(() if context.get("tir.disable_storage_rewrite", False) else REUSE),
        *UNROLL,
    ]
    third: list[Pass] = [*CLEAN]
    equivalent = context.get("tir.enable_equiv_terms_in_cse_tir", False)
    if not context.get("tir.disable_cse_tir", not equivalent):
        third.append(tir.CommonSubexprElimTIR(identify_equiv_terms=equivalent))
    if context.get("tir.vtcm_capacity", 0):
        third.append(tir.VerifyVTCMLimit())
    if context.get("tir.instrument_lwp", False):
        third.append(tir.InstrumentProfileIntrinsics())
    if context.get("tir.instrument_bound_checkers", False):
        third.append(tir.InstrumentBoundCheckers())
    return [*own[0], *FLATTEN, *own[1], *second, *own[2], *third, *own[3]]


def get_vtcm_compaction_passes() -> list[Pass]:
    """The passes after which the allocations of a block program are as small as they get."""
    return [
        *LOWER_BLOCKS,
        tir.FlattenBuffer(),
        tir.Simplify(thorough=False),
        *VECTORIZE,
        *REUSE,
    ]


def lower_module(mod: IRModule, simple_mode: bool = False) -> IRModule:
    """Run the phases of ``lower``."""
    passes = verified(lower_passes(simple_mode), Stage.STAGES)
    return Sequential(passes, name="tir.lower")(mod)


def build_passes(target: Any, unpacked: bool = False) -> list[Pass]:
    """The passes that bring a lowered module to the calling convention of ``target``'s host."""
    convention = UNPACKED_CONVENTION if unpacked else CONVENTION
    context = PassContext.current()
    threads: list[Pass] = []
    if not target.runs_on_processor:
        threads += THREADS
        if context.get("tir.use_async_copy", False):
            threads.append(tir.InjectPTXAsyncCopy())
        if context.get("tir.ptx_ldg32", False):
            threads.append(tir.InjectPTXLDG32())
    passes: list[Pass] = [
        tir.BindTarget(target),
        tir.AnnotateEntryFunc(),
        tir.SpecializeUnitStrides(),
        *threads,
        *convention,
    ]
    if context.get("tir.disable_assert", False):
        passes.append(tir.SkipAssert())
    return passes


def lower_for_host(mod: IRModule, target: Any) -> IRModule:
    """A lowered module as the code generator of ``target`` takes it."""
    unpacked = bool(mod.get_attr("unpacked_api"))
    convention = build_passes(target, unpacked)
    if target.runs_on_processor:
        return Sequential(verified([*convention, *HOST], Stage.FLAT), name="tir.build")(mod)
    mod = Sequential(verified(convention, Stage.FLAT), name="tir.build")(mod)
    kernels = {g: f for g, f in mod.functions.items() if is_launched(f)}
    host = {g: f for g, f in mod.functions.items() if g not in kernels}
    on_host = Sequential(HOST, name="tir.build.host")(mod.with_functions(host))
    on_device = Sequential(KERNEL, name="tir.build.kernels")(mod.with_functions(kernels))
    return mod.with_functions({**on_host.functions, **on_device.functions})


def is_launched(func: Any) -> bool:
    """Whether a function is a kernel that the host launches."""
    return int(func.get_attr("calling_conv", 0)) == CallingConv.DEVICE_KERNEL_LAUNCH


def user_passes(given: Sequence[Any]) -> list[list[Pass]]:
    """Users' passes by phase: passes, or functions of (function, module, context)."""
    phases: list[list[Pass]] = [[], [], [], []]
    for number, item in given:
        phase = int(number)
        if phase < 0:
            raise TVMError(f"tir.add_lower_pass requires a phase from 0 to 3, got {phase}")
        phases[min(phase, 3)].append(item if isinstance(item, Pass) else pass_of(item))
    return phases


def pass_of(function: Callable[..., Any]) -> Pass:
    """A pass made of a plain function of a module."""
    if not callable(function):
        raise TVMError(f"tir.add_lower_pass requires passes, got {type(function).__name__}")
    name = getattr(function, "__name__", "user_pass")
    return ModulePass(lambda mod, context: function(mod), PassInfo(0, name))
