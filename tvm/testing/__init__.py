"""Help for tests of compiled programs, under the classic names."""

from tvm.support.later import provide as _provide

from . import attrs, conversions
from ._ffi_api import (
    ErrorTest,
    device_test,
    echo,
    identity_cpp,
    nop,
    object_use_count,
    run_check_signal,
    test_check_eq_callback,
    test_raise_error_callback,
    test_wrap_callback,
)
from .compare import CompareBeforeAfter
from .feature import (
    IS_IN_CI,
    Feature,
    is_ampere_or_newer,
    requires_arm_dot,
    requires_cascadelake,
    requires_cuda,
    requires_cuda_compute_version,
    requires_ethosn,
    requires_gpu,
    requires_libtorch,
    requires_llvm,
    requires_micro,
    requires_nvcc_version,
    requires_opencl,
    requires_rpc,
    requires_x86,
    skip_if_wheel_test,
    slow,
    uses_gpu,
)
from .hardware import (
    requires_aarch64,
    requires_aarch64_sme,
    requires_aarch64_sve,
    requires_aprofile_aem_fvp,
    requires_arm_fp16,
    requires_cmsisnn,
    requires_corstone300,
    requires_cublas,
    requires_cudagraph,
    requires_cudnn,
    requires_cutlass,
    requires_ethosu,
    requires_hexagon,
    requires_hipblas,
    requires_matrixcore,
    requires_metal,
    requires_mrvl,
    requires_multi_gpu,
    requires_nccl,
    requires_nnapi,
    requires_openclml,
    requires_rocm,
    requires_tensorcore,
    requires_vitis_ai,
    requires_vulkan,
    requires_x86_amx,
    requires_x86_avx512,
    requires_x86_vnni,
)
from .parametrize import (
    exclude_targets,
    fixture,
    known_failing_targets,
    parameter,
    parameters,
    skip_parameterizations,
    xfail_parameterizations,
)
from .popen_pool import (
    after_initializer,
    call_cpp_ffi,
    call_cpp_py_ffi,
    call_py_ffi,
    fast_summation,
    identity_py,
    initializer,
    register_ffi,
    slow_summation,
    timeout_job,
)
from .spans import disable_span_filling, enable_span_filling
from .targets import (
    device_enabled,
    enabled_targets,
    parametrize_targets,
    requires_package,
    skip_if_32bit,
)
from .utils import (
    assert_allclose,
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
    check_numerical_grads,
    identity_after,
    main,
    strtobool,
    terminate_self,
)

__all__ = [
    "IS_IN_CI", "requires_arm_dot", "skip_if_wheel_test",
    "requires_aarch64", "requires_aarch64_sme", "requires_aarch64_sve", "requires_aprofile_aem_fvp", "requires_arm_fp16", "requires_cmsisnn", "requires_corstone300", "requires_cublas", "requires_cudagraph", "requires_cudnn", "requires_cutlass", "requires_ethosu", "requires_hexagon", "requires_hipblas", "requires_matrixcore", "requires_metal", "requires_mrvl", "requires_multi_gpu", "requires_nccl", "requires_nnapi", "requires_openclml", "requires_rocm", "requires_tensorcore", "requires_vitis_ai", "requires_vulkan", "requires_x86_amx", "requires_x86_avx512", "requires_x86_vnni", "after_initializer", "call_cpp_ffi", "call_cpp_py_ffi", "call_py_ffi", "fast_summation", "identity_py", "initializer", "register_ffi", "slow_summation", "timeout_job",
    "Feature", "disable_span_filling", "enable_span_filling", "identity_after",
    "is_ampere_or_newer", "requires_cascadelake", "requires_cuda_compute_version",
    "requires_ethosn", "requires_libtorch", "requires_micro", "requires_nvcc_version",
    "requires_rpc", "slow", "terminate_self",
    "ErrorTest", "device_test", "echo", "identity_cpp", "nop", "object_use_count", "run_check_signal",
    "test_check_eq_callback", "test_raise_error_callback", "test_wrap_callback",
    "CompareBeforeAfter", "check_int_constraints_trans_consistency",
    "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true",
    "check_numerical_grads", "device_enabled", "enabled_targets", "fixture", "main", "parameter",
    "parametrize_targets", "requires_cuda", "requires_gpu", "requires_llvm",
    "requires_package", "uses_gpu", "exclude_targets", "known_failing_targets", "parameters",
    "skip_parameterizations", "xfail_parameterizations", "requires_opencl", "requires_x86",
    "skip_if_32bit", "strtobool",
]  # fmt: skip

# the classic module of that name had all of them
_provide(f"{__name__}.utils", {name: f"{__name__}:{name}" for name in __all__})
