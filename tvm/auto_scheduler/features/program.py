"""Programs as features see them: stores, the loops around them, and what they access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ..affine import AffineForm
from ..loops import Annotation


class AccessType(IntEnum):
    """How a store uses a buffer."""

    READ = 0
    WRITE = 1
    READ_WRITE = 2


@dataclass(slots=True)
class Access:
    """A buffer that a store uses, and all the indices at which it does."""

    buffer: int
    kind: AccessType
    indices: list[Sequence[AffineForm]]
    shape: Sequence[int]
    element_bytes: int

    @property
    def elements(self) -> int:
        """Of the buffer."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total


@dataclass(slots=True)
class Store:
    """A statement, with the loops around it from the outermost."""

    buffer: int
    loops: list[int]
    accesses: list[Access]
    operations: list[float]
    auto_unroll_max_step: int = 0
    # of a buffer that is allocated for it: bytes, and iterations around and inside
    allocated: tuple[int, float] | None = None


@dataclass(slots=True)
class Program:
    """Stores in their order, and what is known of the loops."""

    extents: dict[int, int]
    kinds: dict[int, Annotation]
    stores: list[Store] = field(default_factory=list)
