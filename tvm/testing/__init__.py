"""Help for tests of compiled programs, under the classic names."""

from . import conversions
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
    Feature,
    is_ampere_or_newer,
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
    slow,
    uses_gpu,
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
