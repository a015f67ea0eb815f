"""What the passes that lower blocks require of them; each pass brings them one step nearer to plain loops."""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.stmt import Block


def require_no_init(block: Block, who: str) -> None:
    """Raise an error if a block still has an initialisation: it runs at the first point of the reduction alone."""
    if block.init is not None:
        raise LoweringError(
            f"{who} requires blocks without initialisation, got {_name(block)} with T.init()",
            at=block.init,
            hint="run tir.transform.LowerInitBlock() first",
        )


def require_opaque(block: Block, who: str) -> None:
    """Raise an error if a block still has axes: nothing else gives them values."""
    if block.iter_vars:
        axes = ", ".join([axis.var.name for axis in block.iter_vars])
        raise LoweringError(
            f"{who} requires opaque blocks, got {_name(block)} with the axes {axes}",
            hint="run tir.transform.ConvertBlocksToOpaque() first",
        )


def require_no_match(block: Block, who: str) -> None:
    """Raise an error if a block still matches views of buffers: nothing else says where they lie."""
    if block.match_buffers:
        views = ", ".join([match.buffer.name for match in block.match_buffers])
        raise LoweringError(
            f"{who} requires blocks without matched buffers, got {_name(block)} that matches {views}",
            hint="run tir.transform.LowerMatchBuffer() first",
        )


def _name(block: Block) -> str:
    return f"block {block.name_hint}" if block.name_hint else "a block without a name"
