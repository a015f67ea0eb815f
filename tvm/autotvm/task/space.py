"""Configurations of a template: all that it may have, and one of them.

    cfg = autotvm.get_config()          # a ConfigSpace when tuning begins, later a ConfigEntity
    cfg.define_split("tile_y", y, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, C, y)

A template is written once. Run on a :class:`ConfigSpace` it collects the knobs, run on a
:class:`ConfigEntity` it applies their values. A point of the space is one integer, in which the first
knob varies fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from tvm.autotvm.task.points import PointSpace
from tvm.autotvm.task.transforms import (
    AnnotateEntity,
    AnnotateSpace,
    Axis,
    InstantiationError,
    OtherOptionEntity,
    OtherOptionSpace,
    ReorderEntity,
    ReorderSpace,
    SplitEntity,
    SplitSpace,
    TransformSpace,
    VirtualAxis,
    get_factors,
    get_pow2s,
)
from tvm.error import or_similar

__all__ = [
    "AnnotateEntity",
    "AnnotateSpace",
    "Axis",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackConfigEntity",
    "InstantiationError",
    "OtherOptionEntity",
    "OtherOptionSpace",
    "ReorderEntity",
    "ReorderSpace",
    "SplitEntity",
    "SplitSpace",
    "TransformSpace",
    "VirtualAxis",
    "get_factors",
    "get_pow2s",
]


class ConfigSpace(PointSpace):
    """All configurations of a template: collects the knobs that the template defines.

    Attributes
    ----------
    space_map : dict of str to TransformSpace
        The knobs in the order of definition.
    is_fallback : bool
        Whether this stands in for a configuration that nobody tuned.
    flop : int or float
        The floating-point operations of the task, as far as the template has told.
    code_hash : str, optional
        A hash of the template's text, if it attaches one.
    cost : float, optional
        The seconds that were measured.
    start : int, optional
        The point that the template itself would take; tuners try it early.
    start : int, optional
        The point that the template takes without a record, if it has told.
    """

    Axis = Axis
    is_fallback = False
    is_near = False  # whether it was recorded for another workload than that which it is used for

    def __init__(self) -> None:
        super().__init__()
        self._entity_map: dict[str, Any] = {}
        self._constraints: list[Any] = []
        self.errors: list[str] = []
        self.code_hash: str | None = None
        self.flop: float = 0
        self.cost: float | None = None
        self.start: int | None = None

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """An axis, of which only the length is known.

        Parameters
        ----------
        var : int or IterVar
            The length, or an axis of a schedule.
        """
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(
        self, name: str, axis: Any, policy: str = "factors", **kwargs: Any
    ) -> list[Any]:
        """Define a knob that splits an axis; the options as of :class:`SplitSpace`.

        Parameters
        ----------
        name : str
            The knob's name.
        axis : int, IterVar or VirtualAxis
            The axis.
        policy : str
            "factors", "power2", "verbose" or "candidate".
        num_outputs : int
            How many parts there are.

        Returns
        -------
        list of Axis
            The parts, for knobs that order or annotate them.
        """
        return self._define(SplitSpace, name, [axis], policy, kwargs)

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Any]:
        """Define a knob that orders axes; the options as of :class:`ReorderSpace`.

        Parameters
        ----------
        name : str
            The knob's name.
        axes : list of Axis, VirtualAxis or IterVar
            The axes.
        policy : str
            "identity", "all", "interval_all", "candidate", "interleave" or "interleave_cuda".
        """
        return self._define(ReorderSpace, name, axes, policy, kwargs)

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Any]:
        """Define a knob that annotates axes; the options as of :class:`AnnotateSpace`.

        Parameters
        ----------
        name, axes :
            As of :meth:`define_reorder`.
        policy : str
            Words such as "try_unroll_vec", or "bind_gpu", "bind_gpu_virtual", "locate_cache".
        """
        return self._define(AnnotateSpace, name, axes, policy, kwargs)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """Define a knob of any values; ``cfg[name].val`` is the value.

        Parameters
        ----------
        name : str
            The knob's name.
        candidate : list
            The values.
        """
        self._define(OtherOptionSpace, name, [], None, {"candidate": candidate})

    def add_flop(self, flop: float) -> None:
        """Add to the floating-point operations of the task.

        Parameters
        ----------
        flop : int or float or IntImm
            How many.
        """
        self.flop += float(getattr(flop, "value", flop))

    def raise_error(self, msg: str) -> None:
        """Call this configuration illegal for the template.

        Parameters
        ----------
        msg : str
            The reason.
        """
        self.errors.append(msg)

    def valid(self) -> bool:
        """Whether the template has not called this configuration illegal."""
        return not self.errors

    def _entity(self, index: int) -> ConfigEntity:
        places = self.point2knob(index)
        named = zip(self.space_map.items(), places, strict=True)
        values = {name: space[place] for (name, space), place in named}
        return ConfigEntity(index, self.code_hash, values, self._constraints)

    def _define(
        self,
        space_class: type[TransformSpace],
        name: str,
        axes: Sequence[Any],
        policy: str | None,
        options: dict[str, Any],
    ) -> list[Any]:
        # a value that was set before the definition stays in a configuration that nobody tuned
        if not self._collect or (self.is_fallback and name in self._entity_map):
            count = space_class.get_num_output(axes, policy, **options)  # type: ignore[call-arg]
            return [Axis(None, place) for place in range(count)]
        known = [ax if isinstance(ax, (VirtualAxis, Axis)) else self.axis(ax) for ax in axes]
        space = space_class(known, policy, **options)  # type: ignore[call-arg]
        if not len(space):
            raise ValueError(f"the knob {name!r} has no value that its options allow")
        self._add_knob(name, space)
        self._entity_map[name] = space[0]
        return [Axis(space, place) for place in range(space.num_output)]

    def __getitem__(self, name: str) -> Any:
        """The value of a knob."""
        if name not in self._entity_map:
            raise KeyError(
                f"the configuration has no knob {name!r}{or_similar(name, self._entity_map)}"
            )
        return self._entity_map[name]

    def __setitem__(self, name: str, entity: Any) -> None:
        """Give a knob a value."""
        if not isinstance(entity, _ENTITY_CLASSES):
            raise TypeError(
                "a knob takes a SplitEntity, ReorderEntity, AnnotateEntity or OtherOptionEntity, "
                f"got {type(entity).__name__}"
            )
        self._entity_map[name] = entity

    def __contains__(self, name: object) -> bool:
        return name in self._entity_map

    def __repr__(self) -> str:
        rows = [
            f"  {i:2d} {name}: {space}\n" for i, (name, space) in enumerate(self.space_map.items())
        ]
        length = f"len={len(self)}, range_length={self.range_length}"
        return f"ConfigSpace ({length}, space_map=\n{''.join(rows)})"


class ConfigEntity(ConfigSpace):
    """One configuration: a value for each knob.

    Parameters
    ----------
    index : int
        Its index in the space.
    code_hash : str, optional
        A hash of the template's text.
    entity_map : dict of str to entity
        The values.
    constraints : list
        Kept with the configuration.
    """

    def __init__(
        self,
        index: int,
        code_hash: str | None,
        entity_map: Mapping[str, Any],
        constraints: Sequence[Any],
    ) -> None:
        super().__init__()
        self.index = index
        self._collect = False
        self._entity_map = dict(entity_map)
        self._constraints = list(constraints)
        self.code_hash = code_hash

    def get_flatten_feature(self) -> np.ndarray[Any, Any]:
        """The values as a vector: the lengths of parts, and a number for each option."""
        features: list[float] = []
        for entity in self._entity_map.values():
            features += _numbers_of(entity)
        return np.array(features, dtype=np.float32)

    def get_other_option(self) -> dict[str, Any]:
        """The values of the knobs made by ``define_knob``."""
        named = self._entity_map.items()
        return {name: e.val for name, e in named if isinstance(e, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, Any]:
        """The configuration in the form in which logs hold it."""
        rows = []
        for name, entity in self._entity_map.items():
            kind = next(k for k, (cls, _) in _ENTITY_KINDS.items() if isinstance(entity, cls))
            rows.append((name, kind, getattr(entity, _ENTITY_KINDS[kind][1])))
        return {"index": int(self.index), "code_hash": self.code_hash, "entity": rows}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """The configuration of :meth:`to_json_dict`.

        Parameters
        ----------
        json_dict : dict
            What a log holds.
        """
        values = {}
        for name, kind, value in json_dict["entity"]:
            if kind not in _ENTITY_KINDS:
                raise RuntimeError(
                    f"Invalid config knob type: {kind!r} of {name!r}; "
                    f"one of {', '.join(_ENTITY_KINDS)} is required"
                )
            values[name] = _ENTITY_KINDS[kind][0](value)
        return ConfigEntity(json_dict["index"], json_dict["code_hash"], values, [])

    def __repr__(self) -> str:
        return f"{list(self._entity_map.items())},{self.code_hash},{self.index}"


class FallbackConfigEntity(ConfigSpace):
    """What a template gets if nobody tuned its workload: its own first values, or those it sets."""

    is_fallback = True

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Choose the longest parts of a split that bounds allow, from the innermost.

        The bounds ``[-1, 8, 4]`` give ``[4, 8, 4]`` for an axis of 128 and ``[7, 7, 1]`` for 49.

        Parameters
        ----------
        name : str
            The knob's name.
        constraints : list of int
            The longest each part may be; -1 is any length.
        """
        space = self.space_map.get(name)
        if not isinstance(space, SplitSpace):
            raise ValueError(f"fallback_split needs a knob made by define_split, got {name!r}")
        if len(constraints) != space.num_output:
            raise ValueError(
                f"fallback_split of {name!r} needs {space.num_output} bounds, got {len(constraints)}"
            )
        left = space.product
        sizes: list[int] = []
        for bound in reversed(constraints):
            fitting = [factor for factor in get_factors(left) if bound == -1 or factor <= bound]
            if not fitting:
                raise RuntimeError(
                    f"Cannot find feasible fallback split entity for node {name}: no part fits {bound}"
                )
            sizes.insert(0, fitting[-1])
            left //= fitting[-1]
        self._entity_map[name] = SplitEntity(sizes)

    def fallback_with_reference_log(self, ref_log: Sequence[Any]) -> None:
        """Take over the record whose splits are most like those of this space.

        Parameters
        ----------
        ref_log : list of (MeasureInput, MeasureResult)
            Records of the same template for other workloads.
        """
        splits = {n: s for n, s in self.space_map.items() if isinstance(s, SplitSpace)}

        def likeness(config: ConfigEntity) -> float:
            """How many of the axes' factors are factors of the record's parts too."""
            total = 0.0
            for name, space in splits.items():
                own = {*get_factors(space.product)}
                total += len(own & {*get_factors(abs(math.prod(config[name].size)))}) / len(own)
            return total

        configs = [inp.config for inp, _ in ref_log]
        usable = [config for config in configs if all(name in config for name in self.space_map)]
        best = max(usable, key=likeness, default=None)
        if best is None or not likeness(best):
            return
        for name in self.space_map:
            if name in splits:
                self.fallback_split(name, best[name].size)
            else:
                self._entity_map[name] = best[name]

    def __repr__(self) -> str:
        return f"{list(self._entity_map.items())},{self.code_hash}"


# for each kind of knob its name in logs, its class, and the attribute that is written
_ENTITY_KINDS: dict[str, tuple[type, str]] = {
    "sp": (SplitEntity, "size"),
    "re": (ReorderEntity, "perm"),
    "an": (AnnotateEntity, "anns"),
    "ot": (OtherOptionEntity, "val"),
}
_ENTITY_CLASSES = (SplitEntity, ReorderEntity, AnnotateEntity, OtherOptionEntity)


def _numbers_of(entity: Any) -> list[float]:
    if isinstance(entity, SplitEntity):
        return [float(part) for part in entity.size]
    if isinstance(entity, ReorderEntity):
        return [float(place) for place in entity.perm]
    if isinstance(entity, AnnotateEntity):
        return [_number_of(ann) for ann in entity.anns]
    return [_number_of(entity.val)]


def _number_of(value: Any) -> float:
    """A number itself; for other values one that tells them apart."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    return crc32(str(value).encode()) / 2**32
