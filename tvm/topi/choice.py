"""What was chosen for a kernel, and by whom, told to those who ask.

with noted() as choices:
    s = schedule_dense_pack(outs)
choices        # [Choice(tile=MatmulConfig(rows=8, columns=48, lanes=16), share=0.89)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from tvm.support import Scoped


class Origin(Enum):
    """Who decided."""

    MODEL = "cost model"
    TUNED = "tuned record"
    NEAR = "nearest record"


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile, and the share of the peak of multiplications that the model predicts for it."""

    tile: object
    share: float
    origin: Origin = Origin.MODEL
    candidates: tuple[tuple[object, float], ...] = ()  # with costs, inside `ranked` alone


_CHOICES: Scoped[list[Choice]] = Scoped("choices")
_ORIGINS: Scoped[dict[object, Origin]] = Scoped("origins of choices")
# what each tile was chosen among; a dictionary where someone wants to know
_RANKINGS: Scoped[dict[object, tuple[tuple[object, float], ...]]] = Scoped("rankings of choices")


def note(tile: object, share: float) -> None:
    """Tell a choice to the innermost scope of `noted`."""
    found = _CHOICES.current()
    if found is not None:
        candidates = (_RANKINGS.current() or {}).get(tile, ())
        found.append(Choice(tile, min(share, 1.0), origin_of(tile), candidates))


def origin_of(tile: object) -> Origin:
    """Who chose a tile inside the innermost scope."""
    return (_ORIGINS.current() or {}).get(tile, Origin.MODEL)


def tell_origin(tile: object, origin: Origin) -> None:
    """Say who chose a tile that is going to be noted."""
    origins = _ORIGINS.current()
    if origins is not None:
        origins[tile] = origin


def tell_ranking(tile: object, candidates: Callable[[], Iterator[tuple[object, float]]]) -> None:
    """Say among which candidates a tile was chosen, and what each costs; if anyone asks."""
    rankings = _RANKINGS.current()
    if rankings is not None:
        rankings[tile] = tuple(sorted(candidates(), key=lambda row: row[1]))


@contextmanager
def ranked() -> Iterator[None]:
    """Let the choices that are noted inside the block know their candidates."""
    with _RANKINGS.scope({}):
        yield


@contextmanager
def noted() -> Iterator[list[Choice]]:
    """Collect the choices made inside the block."""
    with _CHOICES.scope([]) as found, _ORIGINS.scope({}):
        yield found
