"""Marks on values: hints, positions, and where regions for an external compiler begin and end."""

from .annotation import *
from .annotation import COMPILER_BEGIN, COMPILER_END, CompilerAttrs, __all__
