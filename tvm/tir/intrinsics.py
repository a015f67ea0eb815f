"""The intrinsics of the loop level: one row each.

name   arguments (-1: any number)   effect   whether a vector may take the place of each scalar
"""

from __future__ import annotations

from tvm.ir.op import Op, register_op

from .expr import CallEffectKind

_ANNOTATION = CallEffectKind.ExprAnnotation
_PURE = CallEffectKind.Pure
_READS = CallEffectKind.ReadState
_OPAQUE = CallEffectKind.Opaque
_ARGUMENT = CallEffectKind.SpecialCallArg
_EMBED = CallEffectKind.EmbedInfo
_JUMP = CallEffectKind.ControlJump

# pure functions of scalars, applied lane by lane to vectors
ELEMENTWISE = {
    1: """abs acos acosh asin asinh atan atanh bitwise_not ceil clz cos cosh erf exp exp10 exp2 fabs floor
          isfinite isinf isnan log log10 log1p log2 nearbyint popcount round rsqrt sigmoid sin sinh sqrt tan
          tanh trunc""",
    2: """atan2 bitwise_and bitwise_or bitwise_xor copysign fmod hypot ldexp nextafter pow shift_left
          shift_right""",
    3: "fma",
    4: "q_multiply_shift",
    7: "q_multiply_shift_per_axis",
}  # fmt: skip

# name: (arguments, effect, vectorizable)
ROWS: dict[str, tuple[int, CallEffectKind, bool]] = {
    # annotations and choices
    "likely": (1, _ANNOTATION, True),
    "if_then_else": (3, _PURE, False),
    "reinterpret": (1, _PURE, True),
    "large_uint_imm": (2, _PURE, True),
    "dp4a": (3, _PURE, False),
    "isnullptr": (1, _PURE, False),
    "vscale": (0, _PURE, False),
    "get_active_lane_mask": (2, _PURE, False),
    "vectorlow": (1, _PURE, False),
    "vectorhigh": (1, _PURE, False),
    "vectorcombine": (2, _PURE, False),
    "undef": (0, _READS, False),
    "assume": (1, _EMBED, False),
    "ret": (1, _JUMP, False),
    # calls of functions
    "call_extern": (-1, _OPAQUE, False),
    "call_pure_extern": (-1, _PURE, True),
    "call_llvm_intrin": (-1, _OPAQUE, True),
    "call_llvm_pure_intrin": (-1, _PURE, True),
    "call_spirv_pure_glsl450": (-1, _PURE, False),
    "tvm_call_packed": (-1, _OPAQUE, False),
    "tvm_call_cpacked": (-1, _OPAQUE, False),
    "tvm_call_packed_lowered": (-1, _OPAQUE, False),
    "tvm_call_cpacked_lowered": (-1, _OPAQUE, False),
    "tvm_call_trace_packed": (-1, _OPAQUE, False),
    "tvm_call_trace_packed_lowered": (-1, _OPAQUE, False),
    "tvm_check_return": (3, _OPAQUE, False),
    "tvm_throw_last_error": (0, _OPAQUE, False),
    # memory
    "address_of": (1, _PURE, False),
    "tvm_access_ptr": (5, _ARGUMENT, False),
    "tvm_static_handle": (0, _ARGUMENT, False),
    "tvm_tuple": (-1, _EMBED, False),
    "tvm_struct_get": (3, _READS, False),
    "tvm_tensors_match": (-1, _READS, False),
    "tvm_struct_set": (4, _OPAQUE, False),
    "tvm_stack_alloca": (2, _OPAQUE, False),
    "tvm_stack_make_shape": (-1, _OPAQUE, False),
    "tvm_stack_make_array": (6, _OPAQUE, False),
    "lookup_param": (1, _PURE, False),
    "nd_mem_alloc_with_scope": (-1, _OPAQUE, False),
    "TVMBackendAllocWorkspace": (5, _OPAQUE, False),
    "TVMBackendFreeWorkspace": (3, _OPAQUE, False),
    "prefetch": (4, _OPAQUE, False),
    "texture2d_load": (-1, _OPAQUE, True),
    "texture2d_store": (-1, _OPAQUE, True),
    "atomic_add": (2, _OPAQUE, False),
    "anylist_getitem": (2, _READS, False),
    "anylist_resetitem": (2, _OPAQUE, False),
    "anylist_setitem_call_packed": (-1, _OPAQUE, False),
    "anylist_setitem_call_cpacked": (-1, _OPAQUE, False),
    "dma_copy": (-1, _OPAQUE, False),
    "dma_wait": (-1, _OPAQUE, False),
    "dma_start_group": (-1, _OPAQUE, False),
    "dma_end_group": (-1, _OPAQUE, False),
    # threads
    "tvm_context_id": (0, _READS, False),
    "tvm_thread_context": (1, _PURE, False),
    "tvm_thread_invariant": (1, _PURE, False),
    "tvm_thread_allreduce": (-1, _OPAQUE, False),
    "tvm_storage_sync": (-1, _OPAQUE, False),
    "tvm_global_barrier_kinit": (-1, _OPAQUE, False),
    "tvm_warp_shuffle": (5, _OPAQUE, False),
    "tvm_warp_shuffle_up": (5, _OPAQUE, False),
    "tvm_warp_shuffle_down": (5, _OPAQUE, False),
    "tvm_warp_activemask": (0, _OPAQUE, False),
    "start_profile_intrinsic": (1, _OPAQUE, False),
    "end_profile_intrinsic": (1, _OPAQUE, False),
    # matrix units
    "tvm_load_matrix_sync": (8, _OPAQUE, False),
    "tvm_mma_sync": (8, _OPAQUE, False),
    "tvm_bmma_sync": (8, _OPAQUE, False),
    "tvm_fill_fragment": (6, _OPAQUE, False),
    "tvm_store_matrix_sync": (8, _OPAQUE, False),
    "mma_store": (6, _OPAQUE, False),
    "mma_fill": (3, _OPAQUE, False),
    "make_filled_simdgroup_matrix": (5, _OPAQUE, False),
    "simdgroup_load": (7, _OPAQUE, False),
    "simdgroup_store": (7, _OPAQUE, False),
    "simdgroup_multiply_accumulate": (8, _OPAQUE, False),
    # PTX
    "ptx_mma": (-1, _OPAQUE, False),
    "ptx_mma_sp": (-1, _OPAQUE, False),
    "ptx_ldmatrix": (7, _OPAQUE, False),
    "ptx_ldg32": (4, _OPAQUE, False),
    "ptx_cp_async": (-1, _OPAQUE, False),
    "ptx_cp_async_bulk": (6, _OPAQUE, False),
    "ptx_commit_group": (0, _OPAQUE, False),
    "ptx_wait_group": (1, _OPAQUE, False),
    "ptx_cp_async_barrier": (1, _OPAQUE, False),
    "ptx_init_barrier_thread_count": (2, _OPAQUE, False),
    "ptx_arrive_barrier": (1, _OPAQUE, False),
    "ptx_arrive_barrier_expect_tx": (2, _OPAQUE, False),
    "ptx_wait_barrier": (1, _OPAQUE, False),
    "create_barriers": (1, _OPAQUE, False),
    # the type of memory that tvm_access_ptr points to
    "type_annotation": (0, _PURE, False),
}


def _define(name: str, arity: int, effect: CallEffectKind, vectorizable: bool) -> Op:
    return register_op(f"tir.{name}").set_facets(
        num_inputs=arity, effect=effect, vectorizable=vectorizable
    )


INTRINSICS: dict[str, Op] = {
    **{
        name: _define(name, arity, _PURE, True)
        for arity, names in ELEMENTWISE.items()
        for name in names.split()
    },
    **{name: _define(name, *row) for name, row in ROWS.items()},
}


def effect_of(op: object) -> CallEffectKind:
    """What a call of ``op`` may do; functions of the module may do anything."""
    effect = getattr(op, "effect", None)
    return _OPAQUE if effect is None else effect
