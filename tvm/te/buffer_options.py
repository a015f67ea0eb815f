"""How the buffers are laid out that tensors get where the caller names none.

with PassContext(config={"te.offset_factor": 1}):
    tvm.lower(s, [A, B])        # A and B may begin anywhere in the memory they are given in
"""

from __future__ import annotations

from typing import Any

from tvm.ir.pass_context import PassContext, register_pass_config

register_pass_config("te.data_alignment", int)  # bytes; -1: as much as arrays have
register_pass_config("te.offset_factor", int)  # 0: tensors begin where the memory begins


def buffer_options() -> dict[str, Any]:
    """The parameters of ``tir.decl_buffer`` that hold here."""
    context = PassContext.current()
    options = {
        name: context.get(f"te.{name}", None) for name in ("data_alignment", "offset_factor")
    }
    return {name: value for name, value in options.items() if value is not None}
