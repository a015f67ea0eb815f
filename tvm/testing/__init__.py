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
from .parametrize import (
    exclude_targets,
    fixture,
    known_failing_targets,
    parameter,
    parameters,
    skip_parameterizations,
    xfail_parameterizations,
)
from .targets import (
    device_enabled,
    enabled_targets,
    parametrize_targets,
    requires_cuda,
    requires_gpu,
    requires_llvm,
    requires_opencl,
    requires_package,
    requires_x86,
    skip_if_32bit,
    uses_gpu,
)
from .utils import (
    assert_allclose,
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
    check_numerical_grads,
    main,
    strtobool,
)

__all__ = [
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
