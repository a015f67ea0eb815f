"""What a context requires of patterns beside what each of them looks like: who uses whose value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.error import TVMError
from tvm.support import Scoped


@dataclass(frozen=True)
class PairConstraint:
    """A value is used by another one.

    Parameters
    ----------
    is_only_use : whether nothing else in the block uses it.
    index : the argument that it is, -1 for any.
    is_part : whether the pattern of the user contains that of the value.
    """

    is_only_use: bool = False
    index: int = -1
    is_part: bool = False


@dataclass
class Constraints:
    """Those of one context, in the order in which they were added."""

    # used pattern -> using pattern -> what is required of the use
    edges: dict[Any, dict[Any, list[PairConstraint]]] = field(default_factory=dict)
    validations: list[Any] = field(default_factory=list)
    owner: Any = None  # the context

    def copy(self) -> Constraints:
        """The same constraints, to which others may be added."""
        edges = {
            used: {user: list(pairs) for user, pairs in users.items()}
            for used, users in self.edges.items()
        }
        return Constraints(edges, list(self.validations))

    def patterns(self) -> list[Any]:
        """The patterns that are in constraints, used ones first."""
        users = [user for by_user in self.edges.values() for user in by_user]
        validated = [arg for constraint in self.validations for arg in constraint.args]
        return list(dict.fromkeys([*self.edges, *users, *validated]))


CURRENT: Scoped[Constraints] = Scoped("relax_pattern_context")


def required_constraints() -> Constraints:
    """The constraints of the innermost context."""
    if (current := CURRENT.current()) is None:
        raise TVMError(
            "a constraint between patterns requires a context, there is none",
            hint="with tvm.relax.dpl.PatternContext() as ctx: ...",
        )
    return current


def add_edge(used: Any, user: Any, constraint: PairConstraint) -> None:
    """Require of the current context that a value is used by another one."""
    pairs = required_constraints().edges.setdefault(used, {}).setdefault(user, [])
    if constraint not in pairs:
        pairs.append(constraint)
