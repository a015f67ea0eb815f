"""Places for the nodes of a graph that has no cycles, in layers: what a node uses stands above it.

    layers by longest path -> long edges get a bend in each layer -> few crossings -> straight edges

All steps take time in proportion to nodes and bends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 6
_LONGEST = 64  # layers; longer edges are drawn straight, whatever they cross
_BEND = 0.25  # the room of a bend, where a node has 1


@dataclass
class Layout:
    """Where nodes are, in units of a node's width and of a layer's height, and the bends of edges."""

    x: list[float]
    layer: list[int]
    bends: dict[int, list[tuple[float, int]]] = field(default_factory=dict)  # by index of the edge


def layered_layout(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out nodes 0 .. count - 1, which are numbered so that edges lead to higher numbers.

    Parameters
    ----------
    count : int
        The number of nodes.
    edges : list of (int, int)
        From a node to one that uses it.
    """
    layer = _layers(count, edges)
    chains: dict[int, list[int]] = {}
    spans: list[tuple[int, int]] = []  # edges between neighbouring layers, bends included
    sizes = [1.0] * count
    for number, (start, end) in enumerate(edges):
        gap = layer[end] - layer[start]
        if gap > _LONGEST:
            continue
        inner = list(range(len(layer), len(layer) + gap - 1))
        layer += [layer[start] + 1 + i for i in range(len(inner))]
        sizes += [_BEND] * len(inner)
        path = [start, *inner, end]
        spans += pairwise(path)
        if inner:
            chains[number] = inner
    x = _positions(layer, sizes, spans)
    bends = {number: [(x[i], layer[i]) for i in inner] for number, inner in chains.items()}
    return Layout(x[:count], layer[:count], bends)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """One below the lowest node used; sources stand just above the first that uses them."""
    layer = [0] * count
    users: list[list[int]] = [[] for _ in range(count)]
    used = [False] * count
    for start, end in edges:
        users[start].append(end)
        used[end] = True
    for node in range(count):
        for user in users[node]:
            layer[user] = max(layer[user], layer[node] + 1)
    for node in reversed(range(count)):
        if not used[node] and users[node]:
            layer[node] = min([layer[user] for user in users[node]]) - 1
    lowest = min(layer, default=0)
    return [number - lowest for number in layer]


def _positions(
    layer: Sequence[int], sizes: Sequence[float], spans: Sequence[tuple[int, int]]
) -> list[float]:
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for start, end in spans:
        above[end].append(start)
        below[start].append(end)
    place = [0.0] * len(layer)
    for row in rows:
        _number(row, place)
    for _ in range(_SWEEPS):
        for row in rows:
            _sort(row, place, above)
        for row in reversed(rows):
            _sort(row, place, below)
    x = list(place)
    for _ in range(_SWEEPS):
        for row in rows:
            _align(row, x, sizes, above)
        for row in reversed(rows):
            _align(row, x, sizes, below)
    for row in rows:
        _align(row, x, sizes, above)
    left = min(x, default=0.0)
    return [value - left for value in x]


def _number(row: Sequence[int], place: list[float]) -> None:
    for position, node in enumerate(row):
        place[node] = float(position)


def _sort(row: list[int], place: list[float], neighbours: Sequence[Sequence[int]]) -> None:
    """Order a row by the medians of its nodes' neighbours."""
    medians = {
        node: _median([place[other] for other in neighbours[node]], place[node]) for node in row
    }
    row.sort(key=medians.__getitem__)
    _number(row, place)


def _median(values: list[float], otherwise: float) -> float:
    values.sort()
    half = len(values) // 2
    if not values:
        return otherwise
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _align(
    row: Sequence[int],
    x: list[float],
    sizes: Sequence[float],
    neighbours: Sequence[Sequence[int]],
) -> None:
    """Put a row's nodes as near to their neighbours as their order and their sizes allow.

    The sum of squared distances is least: neighbours that want to overlap form blocks, each at the
    mean of what its members want.
    """
    offsets: list[float] = []
    end = 0.0
    for node in row:
        offsets.append(end + sizes[node] / 2)
        end += sizes[node]
    blocks: list[tuple[float, int]] = []  # mean of the wanted left ends, number of nodes
    for node, offset in zip(row, offsets, strict=True):
        mean = _median([x[other] for other in neighbours[node]], x[node]) - offset
        size = 1
        while blocks and blocks[-1][0] > mean:
            other, others = blocks.pop()
            mean = (mean * size + other * others) / (size + others)
            size += others
        blocks.append((mean, size))
    starts = [mean for mean, size in blocks for _ in range(size)]
    for node, offset, start in zip(row, offsets, starts, strict=True):
        x[node] = start + offset
