"""Help for tests of models in C, under the classic names."""

from . import aot_test_utils, utils

__all__ = ["aot_test_utils", "utils"]
