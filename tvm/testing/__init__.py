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
from .parametrize import fixture, parameter
from .targets import (
    device_enabled,
    enabled_targets,
    parametrize_targets,
    requires_cuda,
    requires_gpu,
    requires_llvm,
    requires_package,
    uses_gpu,
)
from .utils import (
    assert_allclose,
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
    check_numerical_grads,
    main,
)

__all__ = [
    "ErrorTest", "device_test", "echo", "identity_cpp", "nop", "object_use_count", "run_check_signal",
    "test_check_eq_callback", "test_raise_error_callback", "test_wrap_callback",
    "CompareBeforeAfter", "check_int_constraints_trans_consistency",
    "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true",
    "check_numerical_grads", "device_enabled", "enabled_targets", "fixture", "main", "parameter",
    "parametrize_targets", "requires_cuda", "requires_gpu", "requires_llvm",
    "requires_package", "uses_gpu",
]  # fmt: skip
