"""What a store does with memory: bytes, cache lines, strides, and how soon data is used again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..affine import AffineForm
from .program import Access, AccessType, Program, Store

# buffer -> (elements, bytes of one) of each access within an iteration of a loop
Touched = dict[int, list[tuple[int, int]]]
LOOP_MULTIPLE_READ, SERIAL_MULTIPLE_READ_WRITE, NO_REUSE = range(3)


@dataclass(slots=True)
class Memory:
    """What has been touched inside each loop, by all stores so far."""

    program: Program
    cache_line: int
    touched: dict[int, Touched] = field(default_factory=dict)
    bytes_in: dict[int, float] = field(default_factory=dict)

    def note(self, store: Store) -> list[float]:
        """Add a store; the bytes that it touches inside each loop, from the innermost."""
        sizes = [
            _touched_sizes(access, store.loops, self.program.extents) for access in store.accesses
        ]
        totals = []
        for place, loop in enumerate(reversed(store.loops)):
            touched = self.touched.setdefault(loop, {})
            total = 0.0
            for access, size in zip(store.accesses, sizes, strict=True):
                elements, width = size[place], access.element_bytes
                total += elements * width
                touched.setdefault(access.buffer, []).append((elements, width))
            self.bytes_in[loop] = self.bytes_in.get(loop, 0.0) + total
            totals.append(total)
        return totals

    def features(self, store: Store, access: Access, outer: float) -> list[float]:
        """The features of one access of a store that was noted."""
        width, loops = access.element_bytes, store.loops
        traffic = outer * width
        if not loops:
            row = [traffic, float(width), 1.0, 1.0]
            return _row(access.kind, row, NO_REUSE, 0.0, 0.0, 0.0, _own_stride(access))
        unique = float(self.touched[loops[0]][access.buffer][-1][0] * width)
        stride, is_innermost, skipped = self._stride(access, loops)
        lines = outer / skipped * min(1.0, stride * width / self.cache_line)
        contiguous = self._contiguous(access, loops) * width
        unique_lines = max(unique / min(contiguous, self.cache_line), 1.0)
        row = [traffic, unique, max(lines, 1.0), unique_lines]
        reuse = self._reuse(access, loops)
        shown = stride if is_innermost else 0
        return _row(access.kind, row, *reuse, float(_own_stride(access) or shown))

    def _stride(self, access: Access, loops: Sequence[int]) -> tuple[int, bool, int]:
        """The stride of the innermost loop that moves the access, and iterations of loops inside it."""
        skipped = 1
        for place in range(len(loops) - 1, -1, -1):
            stride = _stride_of(access, loops[place])
            if stride:
                return stride, place == len(loops) - 1, skipped
            skipped *= self.program.extents[loops[place]]
        return 0, False, skipped

    def _contiguous(self, access: Access, loops: Sequence[int]) -> int:
        """Elements of the last dimension that is touched as a whole, or 1."""
        extents = self.program.extents
        inside = frozenset(loops)
        for form, extent in zip(reversed(access.indices[0]), reversed(access.shape), strict=True):
            if form.count(lambda loop: extents[loop] if loop in inside else 1) == extent:
                return extent
        return 1

    def _reuse(self, access: Access, loops: Sequence[int]) -> tuple[int, float, float, float]:
        """The kind of reuse, the distance in iterations and in bytes, and how often."""
        iterations = 1.0
        inner: float | None = None
        used = {loop for forms in access.indices for form in forms for loop in form.loops()}
        extents = self.program.extents
        for loop in reversed(loops):
            extent = extents[loop]
            if loop not in used:
                # of one iteration; of the innermost loop, all
                distance = inner if inner is not None else self.bytes_in[loop]
                return LOOP_MULTIPLE_READ, iterations, distance, float(extent)
            iterations *= extent
            distance = inner = self.bytes_in[loop]
            found = self.touched[loop][access.buffer]
            if len(found) > 1 and extent:
                nearest = min([elements for elements, _ in found])
                count = float(len(found) - 1)
                return (
                    SERIAL_MULTIPLE_READ_WRITE, nearest / extent, distance / extent, count
                )  # fmt: skip
        return NO_REUSE, 0.0, 0.0, 0.0


def _row(
    kind: AccessType,
    amounts: list[float],
    reuse: int,
    iterations: float,
    distance: float,
    count: float,
    stride: float,
) -> list[float]:
    kinds = [0.0, 0.0, 0.0]
    kinds[kind] = 1.0
    reuses = [0.0, 0.0, 0.0]
    reuses[reuse] = 1.0
    # what is not used again counts twice
    divisor = count if count > 0.5 else 0.5
    shared = [amount / divisor for amount in amounts]
    return [*kinds, *amounts, *reuses, iterations, distance, count, *shared, stride]


def _own_stride(access: Access) -> int:
    """1 for a single element, which lies beside itself."""
    return int(access.elements == 1)


def _stride_of(access: Access, loop: int) -> int:
    """By how many elements an access moves with a loop, at least."""
    found = []
    for forms in access.indices:
        stride = 1
        for form, extent in zip(reversed(forms), reversed(access.shape), strict=True):
            step = form.stride(loop)
            if step is not None:
                found.append(step * stride)
                break
            stride *= extent
    return min(found) if found else 0


def _touched_sizes(access: Access, loops: Sequence[int], extents: dict[int, int]) -> list[int]:
    """Elements that an access touches inside each loop, from the innermost."""
    first = access.indices[0]
    counts = [1] * len(first)
    irregular = [place for place, form in enumerate(first) if not _is_sum(form)]
    spread = _spread(access.indices)
    found = []
    inside: set[int] = set()
    for loop in reversed(loops):
        extent = extents[loop]
        inside.add(loop)
        for place, form in enumerate(first):
            coefficient = form.terms.get(loop)
            if coefficient is not None:
                counts[place] += abs(coefficient) * (extent - 1)
        for place in irregular:
            counts[place] = first[place].count(lambda each: extents[each] if each in inside else 1)
        size = 1
        for count, more, dim in zip(counts, spread, access.shape, strict=True):
            size *= min(count + more, dim) if extent else 0
        found.append(size)
    return found


def _is_sum(form: AffineForm) -> bool:
    return all([type(atom) is int for atom in form.terms])


def _spread(indices: Sequence[Sequence[AffineForm]]) -> list[int]:
    """How far accesses of one buffer lie from each other, in each dimension."""
    first = indices[0]
    spread = [0] * len(first)
    for place in range(len(first)) if len(indices) > 1 else ():
        consts = [
            forms[place].const for forms in indices if forms[place].terms == first[place].terms
        ]
        spread[place] = max(consts) - min(consts)
    return spread
