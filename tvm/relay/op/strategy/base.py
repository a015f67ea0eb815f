"""Strategies: which ways there are to compute an operator on a target, and which is taken.

    @relay.op.register_strategy("my.op")
    def my_strategy(attrs, inputs, out_type, target):
        strategy = relay.op.OpStrategy()
        strategy.add_implementation(compute, schedule, name="my.generic", plevel=10)
        return strategy

Operators of this package have one way to be computed and schedules by target; a strategy that a
user registers takes their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

from tvm import te, tir
from tvm.arith import Analyzer
from tvm.autotvm.task.topi_integration import get_workload
from tvm.error import OpNotImplemented
from tvm.ir.attrs import Attrs
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.runtime.object import Object
from tvm.target import GenericFunc, Target
from tvm.te import SpecializedCondition
from tvm.topi import configuration

FCompute = Callable[[Attrs, Sequence[te.Tensor], Type], Any]
FSchedule = Callable[[Attrs, Sequence[te.Tensor], Target], te.Schedule]
FStrategy = Callable[[Attrs, Sequence[te.Tensor], Type, Target], "OpStrategy"]


class OpImplementation(Object):
    """One way to compute an operator.

    Parameters
    ----------
    fcompute : callable
        `fcompute(attrs, inputs, out_type)` gives the output tensors.
    fschedule : callable
        `fschedule(attrs, outs, target)` gives their schedule.
    name : str
        The implementation's name, for records of tuning.
    plevel : int
        Among those that fit, the one with the highest level is taken.
    """

    def __init__(
        self, fcompute: FCompute, fschedule: FSchedule, name: str = "default", plevel: int = 10
    ) -> None:
        self.fcompute = fcompute
        self.fschedule = fschedule
        self.name = name
        self.plevel = plevel

    def compute(self, attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        """The output tensors."""
        outputs = self.fcompute(attrs, inputs, out_type)
        return [outputs] if isinstance(outputs, te.Tensor) else list(outputs)

    def schedule(self, attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
        """A schedule of the output tensors."""
        return self.fschedule(attrs, outs, target)


class OpSpecialization(Object):
    """Implementations that hold under one condition; without one, always."""

    def __init__(self, condition: SpecializedCondition | None) -> None:
        self.condition = condition
        self.implementations: list[OpImplementation] = []

    def holds(self) -> bool:
        """Whether the condition is known to be true."""
        if self.condition is None:
            return True
        analyzer = Analyzer()
        return all([_is_true(analyzer, clause) for clause in self.condition.clauses])


class OpStrategy(Object):
    """The ways to compute an operator, by condition."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self, compute: FCompute, schedule: FSchedule, name: str = "default", plevel: int = 10
    ) -> None:
        """Add one; inside `with SpecializedCondition(...)`, for when that holds."""
        condition = SpecializedCondition.current()
        found = next((s for s in self.specializations if s.condition is condition), None)
        if found is None:
            found = OpSpecialization(condition)
            self.specializations.append(found)
        found.implementations.append(OpImplementation(compute, schedule, name, plevel))


def is_computable(op: Op) -> bool:
    """Whether there is a way to compute an operator."""
    return op.compute is not None or op.strategy is not None


class TargetStrategies(GenericFunc[FStrategy]):
    """The strategies of an operator by target key; other targets take the operator's own way."""

    def __init__(self, op: Op) -> None:
        super().__init__(f"{op.name}_strategy", partial(own_strategy, op))
        self.op = op

    def __call__(
        self, attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type, target: Target
    ) -> OpStrategy:
        return self.choose(target)(attrs, inputs, out_type, target)

    def register(self, *args: Any, **kwargs: Any) -> Any:
        """Set the strategy for target keys, as :meth:`tvm.target.GenericFunc.register` does."""
        self.op.set_facets(strategy=self)
        return super().register(*args, **kwargs)


def target_strategies(op: Op) -> TargetStrategies:
    """The strategies of an operator, to which more can be added by target key."""
    found: TargetStrategies = op.extra.setdefault("strategies", TargetStrategies(op))
    return found


def own_strategy(
    op: Op, attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type, target: Target
) -> OpStrategy:
    """The operator's compute facet, with its schedule for the target."""
    if op.compute is None:
        raise OpNotImplemented(f"operator {op.name} has no compute definition and no strategy")
    schedules = op.schedules or {}
    key = next((k for k in (*target.keys, "generic") if k in schedules), None)
    strategy = OpStrategy()
    strategy.add_implementation(
        op.compute,
        _plain_schedule if key is None else schedules[key],
        f"{op.name}.{key or 'plain'}",
    )
    return strategy


def strategy_of(
    op: Op, attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type, target: Target
) -> OpStrategy:
    """The strategy of an operator for a target."""
    if op.strategy is not None:
        with target:
            strategy = op.strategy(attrs, inputs, out_type, target)
        if not isinstance(strategy, OpStrategy):
            raise TypeError(
                f"the strategy of {op.name} must return an OpStrategy, got "
                f"{type(strategy).__name__}"
            )
        return strategy
    return own_strategy(op, attrs, inputs, out_type, target)


def _plain_schedule(_: Attrs, outs: Sequence[te.Tensor], __: Target) -> te.Schedule:
    return te.create_schedule([out.op for out in outs])


def get_valid_implementations(
    op: Op, attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type, target: Target
) -> list[OpImplementation]:
    """The implementations whose conditions hold for these inputs.

    Parameters
    ----------
    op : tvm.ir.Op
        The operator, which must have a strategy.
    attrs : Attrs
        The attributes of the call.
    inputs : list of te.Tensor
        Its arguments.
    out_type : Type
        The type of its result.
    target : Target
        For which machine.
    """
    strategy = strategy_of(op, attrs, inputs, out_type, target)
    return [
        implementation
        for specialization in strategy.specializations
        if specialization.holds()
        for implementation in specialization.implementations
    ]


def select_implementation(
    op: Op,
    attrs: Attrs,
    inputs: Sequence[te.Tensor],
    out_type: Type,
    target: Target,
    use_autotvm: bool = True,
) -> tuple[OpImplementation, list[te.Tensor]]:
    """The implementation with the fastest record, else the one of the highest level, and its outputs."""
    valid = get_valid_implementations(op, attrs, inputs, out_type, target)
    if not valid:
        shapes = ", ".join([str(tuple(tensor.shape)) for tensor in inputs])
        raise OpNotImplemented(
            f"operator {op.name} has no implementation on {target.kind} for inputs of shapes {shapes}"
        )
    best = max(valid, key=lambda implementation: implementation.plevel)
    with target:
        if not use_autotvm or len(valid) == 1 or not configuration.is_active():
            return best, best.compute(attrs, inputs, out_type)
        outputs = {way: way.compute(attrs, inputs, out_type) for way in valid}
        costs = {way: _recorded_seconds(outs) for way, outs in outputs.items()}
    best = min(valid, key=lambda way: (costs[way], way is not best))
    return best, outputs[best]


def _recorded_seconds(outputs: list[te.Tensor]) -> float:
    """The seconds of the record of a template's outputs; infinity without one."""
    workload = get_workload(outputs)
    record = None if workload is None else configuration.recorded(workload)
    if record is None:
        return inf
    return 0.0 if record.cost is None else record.cost


def _is_true(analyzer: Analyzer, clause: Any) -> bool:
    if isinstance(clause, bool):
        return clause
    simple = analyzer.simplify(clause)
    return isinstance(simple, tir.IntImm) and simple.value != 0
