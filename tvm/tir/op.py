"""The functions of ``tvm.tir`` that build expressions: arithmetic, mathematics, reductions, intrinsics."""

from __future__ import annotations

import sys

from tvm.support.later import names_from_above

from .arithmetic import *  # noqa: F403
from .builtin import *  # noqa: F403
from .gpu_op import *  # noqa: F403
from .math_op import *  # noqa: F403
from .operators import install_functions
from .reduction import *  # noqa: F403

install_functions(sys.modules[__name__])
__getattr__ = names_from_above(__name__)
