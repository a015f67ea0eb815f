"""Help for tests of models in C, under the classic names."""

from . import aot_test_utils, utils
from .utils import get_target

__all__ = ["aot_test_utils", "get_target", "utils"]
