"""``tvm.build_module`` of old."""

from tvm.driver import build, get_binds, lower
from tvm.tir.function import PrimFunc as LoweredFunc

from .api import BuildConfig, build_config, current_build_config

__all__ = [
    "BuildConfig", "LoweredFunc", "build", "build_config", "current_build_config", "get_binds", "lower",
]  # fmt: skip
