"""Where two sides part: the first tensor, and the nodes that it takes to see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from tvm.error import TVMError

from .compare import Difference, Tolerance, compare
from .engine import Engine
from .graph import ModelGraph

# how long nodes are left out before what there is counts as small enough
_MOST_SECONDS = 90.0
# a pass or kernel that is wrong shows among so many nodes; rounding needs more, and adds up slowly
_NEIGHBOURS = 16
_MOST_ROUNDING = 10.0


@dataclass(frozen=True)
class Reproducer:
    """A part of a model that shows the difference by itself."""

    model: onnx.ModelProto
    inputs: Mapping[str, Any]
    output: str
    expected: Any
    difference: Difference


@dataclass(frozen=True)
class Search:
    """A graph whose tensors have known values, and the side that is in doubt."""

    graph: ModelGraph
    engine: Engine
    tolerance: Tolerance
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]

    def first_tensor(self, output: str) -> str | None:
        """A tensor that differs where what it is computed from does not.

        Each is compiled alone with all that it needs, fused as in the whole model. None if not even
        the output differs then.
        """
        if self._shown_by(self.graph.ancestors(output), output, self.inputs) is None:
            return None
        numbers = sorted(self.graph.ancestors(output))
        names = [
            name
            for number in numbers
            for name in self.graph.nodes[number].output
            if name in self.expected
        ]
        names = [*[name for name in names if name != output], output]
        good, bad = -1, len(names) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            numbers = self.graph.ancestors(names[middle])
            if self._shown_by(numbers, names[middle], self.inputs) is not None:
                bad = middle
            else:
                good = middle
        return str(names[bad])

    def smallest_part(
        self, output: str, error: float, tell: Callable[[str], None] = lambda _: None
    ) -> Reproducer | None:
        """The fewest nodes that show the difference when others are replaced by what is expected.

        None if nodes that are near do not show it, and the error is not larger than what rounding
        in many layers makes.
        """
        values = {**self.expected, **self.inputs}
        nearest = self.graph.ancestors(output)
        is_small = error < _MOST_ROUNDING * self.tolerance.share(self.expected[output])
        count, found = 1, None
        while found is None:
            tell(f"cutting out {min(count, len(nearest))} of {len(nearest)} nodes")
            found = self._shown_by(nearest[:count], output, values)
            if found is None and (count >= len(nearest) or (is_small and count >= _NEIGHBOURS)):
                return None
            count *= 2
        return self._without_needless(nearest[: count // 2], found, values, tell)

    def _without_needless(
        self,
        numbers: Sequence[int],
        found: Reproducer,
        values: Mapping[str, Any],
        tell: Callable[[str], None],
    ) -> Reproducer:
        kept = list(numbers)
        # large chunks first: most of what was added is needless
        chunk, end = max(len(kept) // 2, 1), time.monotonic() + _MOST_SECONDS
        while len(kept) > 1:
            shrunk = False
            for start in range(max(len(kept) - chunk, 1), 0, -chunk):
                if time.monotonic() > end:
                    return found
                fewer = [*kept[:start], *kept[start + chunk :]]
                tell(f"leaving out nodes: {len(kept)} left")
                smaller = self._shown_by(fewer, found.output, values)
                if smaller is not None:
                    kept, found, shrunk = fewer, smaller, True
            if chunk == 1 and not shrunk:
                break
            chunk = max(chunk // 2, 1)
        return found

    def _shown_by(
        self, numbers: Sequence[int], output: str, values: Mapping[str, Any]
    ) -> Reproducer | None:
        """The nodes as a model, if its output differs."""
        model = self.graph.part(numbers, output, {**values, output: self.expected[output]})
        if model is None:
            return None
        inputs = {value.name: values[value.name] for value in model.graph.input}
        try:
            result = self.engine.run(model, inputs)[output]
        except TVMError:
            return None  # an error of its own is another matter
        difference = compare(result, self.expected[output], self.tolerance)
        if difference is None:
            return None
        return Reproducer(model, inputs, output, self.expected[output], difference)
