"""A network of choices: costs of each choice, and of pairs of choices of neighbours.

The sum of all costs is to be smallest. Choices of one neighbour or two are eliminated exactly: what the
best of them adds becomes a cost of the neighbours. Eliminating one of many neighbours is either exact too,
at the price of a table of all their choices, or a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm.error import TVMError

Table = np.ndarray[Any, Any]
Scope = tuple[int, ...]

# entries of the largest table of the exact solution
_LARGEST_TABLE = 1 << 22


class ChoiceNetwork:
    """The costs.

    Attributes
    ----------
    choices : dict of int to array
        Of each variable, the cost of each choice.
    pairs : dict of (int, int) to array
        Of two variables, the cost of each pair of choices.
    """

    def __init__(self) -> None:
        self.choices: dict[int, Table] = {}
        self.pairs: dict[tuple[int, int], Table] = {}

    def add_variable(self, variable: int, costs: Any) -> None:
        """A variable with the costs of its choices."""
        self.choices[variable] = np.asarray(costs, dtype="float64")

    def add_costs(self, variable: int, costs: Any) -> None:
        """More costs of a variable's choices."""
        self.choices[variable] = self.choices[variable] + np.asarray(costs)

    def add_pair(self, a: int, b: int, costs: Any) -> None:
        """Costs of the pairs of two variables' choices."""
        table = np.asarray(costs, dtype="float64")
        if a == b:
            self.add_costs(a, np.diagonal(table))
            return
        key, table = ((a, b), table) if a < b else ((b, a), table.T)
        self.pairs[key] = self.pairs[key] + table if key in self.pairs else table

    def cost(self, chosen: Mapping[int, int]) -> float:
        """The cost of a choice for each variable."""
        own = sum([float(costs[chosen[v]]) for v, costs in self.choices.items()])
        return own + sum([float(t[chosen[a], chosen[b]]) for (a, b), t in self.pairs.items()])


def solve_exactly(network: ChoiceNetwork) -> dict[int, int]:
    """The cheapest choices, by dynamic programming over the variables.

    Raises
    ------
    TVMError
        If a table of the choices of many variables would be needed.
    """
    tables: list[tuple[Scope, Table]] = [((v,), costs) for v, costs in network.choices.items()]
    tables += list(network.pairs.items())
    sizes = {v: len(costs) for v, costs in network.choices.items()}
    decisions: list[tuple[int, Scope, Table]] = []
    left = set(sizes)
    while left:
        variable = min(left, key=lambda v: (_table_size(_joint(tables, v), sizes), v))
        scope = _joint(tables, variable)
        if _table_size(scope, sizes) > _LARGEST_TABLE:
            raise TVMError(
                f"dynamic programming needs a table of the choices of {len(scope)} operators",
                hint="use PBQPTuner, or fewer records: max_sch_num",
            )
        total = np.zeros([sizes[v] for v in scope])
        for own, table in tables:
            if variable in own:
                total = total + _spread(own, table, scope)
        tables = [(own, table) for own, table in tables if variable not in own]
        place = scope.index(variable)
        rest = tuple([v for v in scope if v != variable])
        decisions.append((variable, rest, total.argmin(axis=place)))
        tables.append((rest, total.min(axis=place)))
        left.discard(variable)
    chosen: dict[int, int] = {}
    for variable, rest, best in reversed(decisions):
        chosen[variable] = int(best[tuple([chosen[v] for v in rest])])
    return chosen


def _joint(tables: list[tuple[Scope, Table]], variable: int) -> Scope:
    """The variables of all tables that a variable is in."""
    return tuple(sorted({v for scope, _ in tables if variable in scope for v in scope}))


def _table_size(scope: Scope, sizes: Mapping[int, int]) -> int:
    return math.prod([sizes[v] for v in scope])


def _spread(own: Scope, table: Table, scope: Scope) -> Table:
    """A table with axes for more variables; scopes are sorted."""
    shape = [table.shape[own.index(v)] if v in own else 1 for v in scope]
    return table.reshape(shape)


def solve_by_reduction(network: ChoiceNetwork) -> dict[int, int]:
    """Cheap choices, as for a partitioned Boolean quadratic problem.

    Variables of up to two neighbours are eliminated exactly; if all have more, one takes the choice that
    looks cheapest with the best of each neighbour.
    """
    costs = dict(network.choices)
    pairs = {v: {} for v in costs}  # type: dict[int, dict[int, Table]]
    for (a, b), table in network.pairs.items():
        pairs[a][b], pairs[b][a] = table, table.T
    decisions: list[Callable[[dict[int, int]], None]] = []
    left = dict.fromkeys(costs)
    while left:
        variable = min(left, key=lambda v: len(pairs[v]))
        neighbours = pairs[variable]
        if len(neighbours) > 2:
            variable = max(left, key=lambda v: len(pairs[v]))
            _guess(variable, costs, pairs, decisions)
        else:
            _eliminate(variable, costs, pairs, decisions)
        del left[variable]
    chosen: dict[int, int] = {}
    for decide in reversed(decisions):
        decide(chosen)
    return chosen


def _eliminate(
    variable: int,
    costs: dict[int, Table],
    pairs: dict[int, dict[int, Table]],
    decisions: list[Callable[[dict[int, int]], None]],
) -> None:
    """Let the neighbours, at most two, pay for the best choice that they leave."""
    neighbours = tuple(pairs[variable])
    total = costs[variable].reshape([-1] + [1] * len(neighbours))
    for place, other in enumerate(neighbours, 1):
        table = pairs[variable][other]
        shape = [table.shape[0]] + [1] * len(neighbours)
        shape[place] = table.shape[1]
        total = total + table.reshape(shape)
        del pairs[other][variable]
    best, value = total.argmin(axis=0), total.min(axis=0)

    def decide(chosen: dict[int, int]) -> None:
        chosen[variable] = int(best[tuple([chosen[other] for other in neighbours])])

    decisions.append(decide)
    if len(neighbours) == 1:
        costs[neighbours[0]] = costs[neighbours[0]] + value
    elif len(neighbours) == 2:
        a, b = neighbours
        joined = value + pairs[a].get(b, 0.0)
        pairs[a][b], pairs[b][a] = joined, joined.T


def _guess(
    variable: int,
    costs: dict[int, Table],
    pairs: dict[int, dict[int, Table]],
    decisions: list[Callable[[dict[int, int]], None]],
) -> None:
    """Take the choice that is cheapest if each neighbour follows it."""
    total = costs[variable].copy()
    for other, table in pairs[variable].items():
        total = total + (table + costs[other]).min(axis=1)
    best = int(total.argmin())
    for other, table in pairs[variable].items():
        costs[other] = costs[other] + table[best]
        del pairs[other][variable]
    decisions.append(lambda chosen: chosen.__setitem__(variable, best))
