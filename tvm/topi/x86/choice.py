"""What the cost model chose for a kernel, told to those who ask.

with noted() as choices:
    s = schedule_dense_pack(outs)
choices        # [Choice(tile=MatmulConfig(rows=8, columns=48, lanes=16), share=0.89)]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tvm.support import Scoped


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile, and the share of the peak of multiplications that the model predicts for it."""

    tile: object
    share: float


_CHOICES: Scoped[list[Choice]] = Scoped("choices")


def note(tile: object, share: float) -> None:
    """Tell a choice to the innermost scope of `noted`."""
    found = _CHOICES.current()
    if found is not None:
        found.append(Choice(tile, min(share, 1.0)))


@contextmanager
def noted() -> Iterator[list[Choice]]:
    """Collect the choices made inside the block."""
    with _CHOICES.scope([]) as found:
        yield found
