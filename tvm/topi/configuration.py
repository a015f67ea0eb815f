"""Which configuration a kernel gets: that of a tuned record, of the nearest one, or the cost model's.

    choices = Choices({"tile_y": "rows", "tile_x": "columns"}, tiles, cycles)
    tile = choices.choose(workload_of(anchor))

A configuration is a frozen record, and some of its fields are the knobs that tuners turn. While a task
is made its space is filled with the candidates, so that what the model ranks, what tuners try and what a
record may say are one list. A record need not name all knobs: the model decides about the others.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tvm.autotvm.task.dispatcher import ApplyHistoryBest, DispatchContext, FallbackContext
from tvm.autotvm.task.space import ConfigEntity, ConfigSpace
from tvm.autotvm.task.task import args_to_workload
from tvm.autotvm.task.topi_integration import TaskExtractEnv
from tvm.target import Target

from .choice import Origin, tell_origin, tell_ranking

_LOG = logging.getLogger("autotvm")

C = TypeVar("C")
Workload = tuple[Any, ...]

# a record of another workload is taken if the model thinks it at most so much slower than its own choice
NEAR_COST = 1.15
# and if the extents differ by no more than this factor, all together
NEAR_EXTENTS = 16


@dataclass(frozen=True)
class Choices(Generic[C]):
    """The configurations that a kernel may have, and what the cost model thinks of them.

    Of those that cost the same, the model takes the first.
    """

    knobs: Mapping[str, str]  # fields of the configurations, by the knobs' names
    configs: Callable[[], Sequence[C]]
    cost: Callable[[C], float]
    likely: Callable[[], Sequence[C]] | None = None  # those among which the best one is
    absent: Mapping[str, Any] = field(default_factory=dict)  # of knobs that a record does not name

    def choose(
        self,
        workload: Workload | None,
        derived: Callable[[C], Workload | None] | None = None,
    ) -> C:
        """The configuration for a workload.

        Parameters
        ----------
        workload : tuple, optional
            The workload; without one the model decides.
        derived : callable, optional
            Gives the workload that the program has by this decision. The record holds for it too.
        """
        config = self._chosen(workload, derived)
        tell_ranking(config, self._ranking)
        return config

    def _ranking(self) -> Iterator[tuple[object, float]]:
        return ((config, self.cost(config)) for config in (self.likely or self.configs)())

    def _chosen(
        self, workload: Workload | None, derived: Callable[[C], Workload | None] | None
    ) -> C:
        if workload is None:
            return self.best()
        trace(workload)
        found = recorded(workload)
        config, record = self._decided(workload, found)
        if derived is not None:
            _adopt(derived(config), record)
        return config

    def _decided(
        self, workload: Workload, found: ConfigSpace | None
    ) -> tuple[C, ConfigEntity | None]:
        """The configuration, and the record that it comes from."""
        if isinstance(found, ConfigEntity):
            named = self.named(found)
            if agreeing := self.agreeing(named):
                origin = Origin.NEAR if found.is_near else Origin.TUNED
                return self._told(self.best(agreeing), origin), found
            _reject(workload, named)
        elif found is not None:
            self.fill(found)
        else:
            for record in near_records(workload):
                config = self._from_near(record)
                if config is not None:
                    borrowed = copy(record)
                    borrowed.is_near = True
                    return self._told(config, Origin.NEAR), borrowed
        return self.best(), None

    def best(self, configs: Sequence[C] | None = None) -> C:
        """The one that the model likes best."""
        return min((self.likely or self.configs)() if configs is None else configs, key=self.cost)

    def fill(self, space: ConfigSpace) -> None:
        """Make knobs of a task's space out of the candidates."""
        if space.space_map:
            return  # by a decision above this one
        points = [self._point(config) for config in self.configs()]
        usual = self._point(self.best())
        knob = []
        for i, name in enumerate(self.knobs):
            values = sorted({point[i] for point in points})
            knob.append(values.index(usual[i]))
            if name.startswith("tile_"):
                sizes = [[-1, value] for value in values]
                extent = max(values)
                space.define_split(name, extent, policy="candidate", candidate=sizes, num_outputs=2)
            else:
                space.define_knob(name, values)
        space.start = space.knob2point(knob)
        space.multi_filter(_Among(tuple(self.knobs), frozenset(points)))

    def named(self, record: ConfigEntity) -> dict[str, Any]:
        """The values that a record gives to these knobs."""
        values = {name: knob_value(record, name, self.absent.get(name)) for name in self.knobs}
        return {name: value for name, value in values.items() if value is not None}

    def agreeing(self, named: Mapping[str, Any]) -> list[C]:
        """The configurations with these values."""
        wanted = [(self.knobs[name], value) for name, value in named.items()]
        return [c for c in self.configs() if all([getattr(c, f) == v for f, v in wanted])]

    def _point(self, config: C) -> tuple[Any, ...]:
        return tuple([getattr(config, field) for field in self.knobs.values()])

    def _from_near(self, record: ConfigEntity) -> C | None:
        """What another workload's record asks for, if it is legal here and seems good."""
        agreeing = self.agreeing(self.named(record))
        if not agreeing:
            return None
        found = self.best(agreeing)
        return found if self.cost(found) <= NEAR_COST * self.cost(self.best()) else None

    @staticmethod
    def _told(config: C, origin: Origin) -> C:
        tell_origin(config, origin)
        return config


@dataclass(frozen=True)
class _Among:
    """Keeps the points of a space that are candidates."""

    names: tuple[str, ...]
    points: frozenset[tuple[Any, ...]]

    def __call__(self, entity: ConfigEntity) -> bool:
        return tuple([knob_value(entity, name) for name in self.names]) in self.points


def knob_value(record: ConfigEntity, name: str, absent: Any = None) -> Any:
    """The value of a knob: the inner size of a split, or the chosen option."""
    entity = record._entity_map.get(name)
    if entity is None:
        return absent
    sizes = getattr(entity, "size", None)
    return sizes[-1] if sizes else getattr(entity, "val", None)


def is_active() -> bool:
    """Whether anyone has records, or wants to know the tasks."""
    if not isinstance(DispatchContext.current, FallbackContext):
        return True
    env = TaskExtractEnv.current
    return env is not None and env.tracing


def workload_attrs(task: str, *args: Any) -> dict[str, Any]:
    """Attributes for a task's main operation: its workload, if anyone asks for workloads."""
    found = workload(task, *args) if is_active() else None
    return {} if found is None else {"workload": found}


def workload(task: str, *args: Any) -> Workload | None:
    """A task's name and arguments in the form of records; None if an extent is left to the run."""
    found = args_to_workload(args, task)
    return found if _is_static(found) else None


def _is_static(value: Any) -> bool:
    if isinstance(value, tuple):
        return all([_is_static(item) for item in value])
    return value is None or isinstance(value, (int, float, str))


def workload_of(operation: Any) -> Workload | None:
    """The workload that `workload_attrs` left at an operation."""
    found = operation.attrs.get("workload")
    return None if found is None else args_to_workload(found)


def recorded(wanted: Workload) -> ConfigSpace | None:
    """The configuration of the exact record in the contexts that are active."""
    target = Target.current()
    for context in DispatchContext.current.around():
        found = context.query_inside(target, wanted)
        if found is not None:
            return None if found.is_fallback else found
    return None


def trace(wanted: Workload) -> None:
    """Tell those who collect tasks."""
    env = TaskExtractEnv.current
    if env is not None and env.tracing and wanted not in env.derived:
        env.add_task(wanted[0], wanted[1:])


def _adopt(derived_workload: Workload | None, record: ConfigEntity | None) -> None:
    """What was recorded for a decision holds for the workload that came out of it."""
    if derived_workload is None:
        return
    env = TaskExtractEnv.current
    if env is not None and env.tracing:
        env.derived.add(derived_workload)
    if record is not None:
        DispatchContext.current.update(Target.current(), derived_workload, copy(record))


def near_records(wanted: Workload) -> list[ConfigEntity]:
    """Records of the same task for other extents, the closest first."""
    kind, extents = kind_and_extents(wanted)
    found: list[tuple[float, int, ConfigEntity]] = []
    target = Target.current()
    for context in DispatchContext.current.around():
        if isinstance(context, ApplyHistoryBest):
            for other, config in _records_of(context, target, wanted[0]):
                other_kind, other_extents = kind_and_extents(other)
                if other_kind == kind:
                    far = distance(extents, other_extents)
                    found.append((far, len(found), config))
    limit = math.log(NEAR_EXTENTS)
    return [config for far, _, config in sorted(found, key=lambda row: row[:2]) if far <= limit]


def _records_of(
    context: ApplyHistoryBest, target: Target | None, task: str
) -> Iterator[tuple[Workload, ConfigEntity]]:
    """The workloads of a task that have a record, and the fastest one of each."""
    names = () if target is None else (target.model, *target.keys)
    for best in (context.best_by_model, context.best_by_targetkey):
        for (name, other), (inp, _) in best.items():
            if name in names and other[0] == task:
                yield other, inp.config


def distance(one: Sequence[int], other: Sequence[int]) -> float:
    """How far extents are from others: the sum of the logarithms of their ratios."""
    pairs = zip(one, other, strict=True)
    return sum([abs(math.log(max(a, 1) / max(b, 1))) for a, b in pairs])


def kind_and_extents(wanted: Workload) -> tuple[Workload, tuple[int, ...]]:
    """What has to agree for a record to hold for another workload, and what may differ.

    Extents of tensors may differ, the window of a convolution excepted.
    """
    kind: list[Any] = []
    extents: list[int] = []
    rank = len(wanted[3]) if len(wanted) > 3 and isinstance(wanted[3], tuple) else 0
    first = 0 if wanted[0].endswith("wc.x86") else 2  # HWIO or OIHW
    window = slice(first, first + rank) if "conv" in wanted[0] else slice(0, 0)
    for i, arg in enumerate(wanted):
        if not (isinstance(arg, tuple) and arg and arg[0] == "TENSOR"):
            kind.append(arg)
            continue
        _, shape, dtype = arg
        fixed = window if i == 2 else slice(0, 0)
        kind.append((len(shape), dtype, shape[fixed]))
        extents += [*shape[: fixed.start], *shape[fixed.stop :]]
    return tuple(kind), tuple(extents)


def _reject(wanted: Workload, named: Mapping[str, Any]) -> None:
    """Warn, once for a workload, of a record that cannot be used."""
    key = (str(Target.current()), wanted)
    rejected = DispatchContext.current.rejected
    if key not in rejected:
        rejected.add(key)
        text = ", ".join([f"{name}={value}" for name, value in named.items()])
        _LOG.warning(
            "the record of %s cannot be used on %s: no legal configuration has %s; the cost model "
            "decides",
            wanted,
            Target.current(),
            text,
        )
