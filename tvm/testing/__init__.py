"""Help for tests of compiled programs, under the classic names."""

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
    check_numerical_grads,
    main,
)

__all__ = [
    "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true",
    "check_numerical_grads", "device_enabled", "enabled_targets", "fixture", "main", "parameter",
    "parametrize_targets", "requires_cuda", "requires_gpu", "requires_llvm",
    "requires_package", "uses_gpu",
]  # fmt: skip
