"""Scripts to nodes."""

import tvm as _tvm

from . import core, ir, tir
from .core.entry import LANGUAGES, from_source, parse
from .ir.entry import ir_module
from .tir.entry import prim_func

LANGUAGES.update(T=tir, tir=tir, I=ir, ir=ir, tvm=_tvm)

__all__ = ["core", "from_source", "ir", "ir_module", "parse", "prim_func", "tir"]
