"""The operator library under its name of release 0.6: every module is one of ``tvm.topi``."""

import sys as _sys
from typing import Any as _Any

from tvm import topi as _topi
from tvm.compat.modules import OldPackage as _OldPackage
from tvm.support.deprecation import warn_renamed as _warn_renamed

# in front of the others, which would load the files of tvm.topi a second time
_sys.meta_path.insert(0, _OldPackage(__name__, "tvm.topi", {"util": "utils"}))
_warn_renamed("the package topi", "tvm.topi")


def __getattr__(name: str) -> _Any:
    return getattr(_topi, "utils" if name == "util" else name)
