"""The kinds of knobs: which values each may take, and how a value is applied to a schedule.

SplitSpace     factors of an axis            SplitEntity([-1, 4, 8])
ReorderSpace   orders of axes                ReorderEntity([1, 0, 2])
AnnotateSpace  what each axis becomes        AnnotateEntity(["none", "vec"])
OtherOptionSpace  any list of values         OtherOptionEntity(16)
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

from tvm.autotvm.utils import get_const_int
from tvm.te.declare import thread_axis
from tvm.tir.expr import IterVar

# an axis that a knob makes: the knob's space, and which of its outputs
Axis = namedtuple("Axis", ["space", "index"])


class InstantiationError(ValueError):
    """A configuration does not suit the template: the schedule cannot be made."""


class TransformSpace:
    """The values that one knob may take.

    Attributes
    ----------
    num_output : int
        How many axes an application yields.
    entities : list
        The values.
    """

    num_output: int
    entities: list[Any]

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Any:
        return self.entities[index]

    @staticmethod
    def get_num_output() -> int:
        """How many axes an application yields."""
        return 0


class VirtualAxis(TransformSpace):
    """An axis, of which only the length is known.

    Parameters
    ----------
    var : int, IterVar or VirtualAxis
        The length, or an axis that has it.
    name : str, optional
        A name for messages.
    """

    def __init__(self, var: Any, name: str | None = None) -> None:
        self.num_output = 1
        self.entities = []
        if isinstance(var, IterVar):
            self.name = var.var.name
            # an axis that was made by splitting has no domain before the bounds are inferred
            self.length = -1 if var.dom is None else get_const_int(var.dom.extent)
        elif isinstance(var, VirtualAxis):
            self.name, self.length = var.name, var.length
        elif isinstance(var, int):
            self.name, self.length = "axis", var
        else:
            raise RuntimeError(
                f"Invalid type of axis: {type(var)}; an int, IterVar or VirtualAxis is required"
            )
        self.name = name or self.name

    @staticmethod
    def get_num_output(var: Any = None, name: str | None = None) -> int:
        return 1

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


def get_factors(n: int) -> list[int]:
    """All divisors of a number in increasing order."""
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return low + [n // d for d in reversed(low) if d * d != n]


def get_pow2s(n: int) -> list[int]:
    """All powers of two up to a number."""
    return [1 << power for power in range(n.bit_length())]


class SplitSpace(TransformSpace):
    """The ways to split an axis.

    Parameters
    ----------
    axes : list of VirtualAxis
        The one axis.
    policy : str
        ``"factors"`` takes divisors, ``"power2"`` powers of two, ``"verbose"`` both, ``"candidate"``
        a list that is given.
    num_outputs : int
        How many parts there are.
    max_factor : int
        No part but the outermost is longer.
    filter : function
        Which of the :class:`SplitEntity` to keep.
    no_tail : bool
        Whether the parts must divide the axis; by default they must for ``"factors"`` only.
    candidate : list of list of int
        The parts of each split.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        _require_known(kwargs, ("num_outputs", "max_factor", "filter", "no_tail", "candidate"))
        self.axis = axes[0]
        self.policy = policy
        if not isinstance(self.axis, VirtualAxis):
            raise ValueError(f"define_split needs an axis of known length, got {self.axis}")
        self.product = self.axis.length
        self.num_output = int(kwargs.get("num_outputs", 0))
        if self.num_output < 1:
            raise ValueError(f"define_split needs num_outputs of at least 1, got {self.num_output}")
        if policy == "candidate":
            self.entities = [SplitEntity(list(size)) for size in kwargs["candidate"]]
            for entity in self.entities:
                if len(entity.size) != self.num_output:
                    raise ValueError(f"num_outputs is {self.num_output}, got the split {entity}")
            return
        if self.product < 1:
            raise ValueError(f"define_split needs an axis of known length, got {self.axis}")
        limit = kwargs.get("max_factor", 1 << 31)
        self.factors = [factor for factor in self._factors() if factor <= limit]
        no_tail = kwargs.get("no_tail", policy == "factors")
        wanted = kwargs.get("filter") or (lambda entity: True)
        self.entities = [entity for entity in self._splits(no_tail) if wanted(entity)]

    def _factors(self) -> list[int]:
        if self.policy == "factors":
            return get_factors(self.product)
        if self.policy == "power2":
            return get_pow2s(self.product)
        if self.policy == "verbose":
            return sorted({*get_factors(self.product), *get_pow2s(self.product)})
        raise RuntimeError(
            f"Invalid policy: {self.policy}; a split is by factors, power2, verbose or candidate"
        )

    def _splits(self, no_tail: bool) -> Iterator[SplitEntity]:
        """Each choice of the inner parts, the innermost varying slowest."""
        for parts in itertools.product(self.factors, repeat=self.num_output - 1):
            inner = math.prod(parts)
            if inner <= self.product and (self.product % inner == 0 or not no_tail):
                yield SplitEntity([-1, *reversed(parts)])

    @staticmethod
    def get_num_output(axes: Any = (), policy: str = "", **kwargs: Any) -> int:
        return int(kwargs["num_outputs"])

    def __repr__(self) -> str:
        return (
            f"Split(policy={self.policy}, product={self.product}, num_outputs={self.num_output}) "
            f"len={len(self)}"
        )


class SplitEntity:
    """The lengths of the parts of an axis, from the outermost; -1 is what is left.

    Parameters
    ----------
    size : list of int
        The lengths.
    """

    def __init__(self, size: Sequence[int]) -> None:
        self.size = size

    def apply(self, sch: Any, op: Any, axis: IterVar) -> list[IterVar]:
        """Split an axis.

        Parameters
        ----------
        sch : te.Schedule
            The schedule.
        op : te.Operation or te.Tensor
            The stage.
        axis : IterVar
            The axis.

        Returns
        -------
        list of IterVar
            The parts, from the outermost.
        """
        parts = []
        for place in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, math.prod(self.size[place:]))
            parts.append(outer)
        return [*parts, axis]

    def __repr__(self) -> str:
        return str(list(self.size))


class ReorderSpace(TransformSpace):
    """The orders of axes.

    Parameters
    ----------
    axes : list of Axis or VirtualAxis
        The axes.
    policy : str
        ``"identity"`` keeps them, ``"all"`` takes all orders, ``"interval_all"`` those of the axes
        ``interval``, ``"candidate"`` a list that is given, ``"interleave"`` and ``"interleave_cuda"``
        merge the chains of parts ``spatial`` and ``reduce``.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        _require_known(kwargs, ("interval", "candidate", "spatial", "reduce"))
        self.ins = list(axes)
        self.policy = policy
        self.num_output = len(self.ins)
        self.entities = [ReorderEntity(order) for order in self._orders(kwargs)]

    def _orders(self, options: dict[str, Any]) -> list[list[int]]:
        everything = list(range(self.num_output))
        if self.policy == "identity":
            return [everything]
        if self.policy == "all":
            return [list(order) for order in itertools.permutations(everything)]
        if self.policy == "interval_all":
            begin, end = options["interval"]
            orders = itertools.permutations(everything[begin:end])
            return [everything[:begin] + list(o) + everything[end:] for o in orders]
        if self.policy == "candidate":
            return [self._positions(order) for order in options["candidate"]]
        if self.policy not in ("interleave", "interleave_cuda"):
            raise RuntimeError(
                f"Invalid policy: {self.policy}; an order is by identity, all, interval_all, "
                "candidate, interleave or interleave_cuda"
            )
        spatial = [self._positions(chain) for chain in options["spatial"]]
        reduce = [self._positions(chain) for chain in options["reduce"]]
        outer = merge_chains([chain[:-1] for chain in spatial])
        if self.policy == "interleave":
            inner = merge_chains([chain[-1:] for chain in spatial] + reduce)
            return [o + i for o in outer for i in inner]
        last = [chain[-1] for chain in spatial]
        return [o + r + last for o in outer for r in merge_chains(reduce)]

    def _positions(self, axes: Sequence[Any]) -> list[int]:
        places = []
        for axis in axes:
            found = [place for place, own in enumerate(self.ins) if own is axis]
            found = found or [place for place, own in enumerate(self.ins) if own == axis]
            if not found:
                raise ValueError(f"define_reorder got an axis that is not in its list: {axis}")
            places.append(found[0])
        return places

    @staticmethod
    def get_num_output(axes: Any = (), policy: str = "", **kwargs: Any) -> int:
        return len(axes)

    def __repr__(self) -> str:
        return f"Reorder(policy={self.policy}) len={len(self)}"


def merge_chains(chains: Sequence[Sequence[int]]) -> list[list[int]]:
    """All ways to merge sequences, each keeping its order."""
    if not any(chains):
        return [[]]
    merged = []
    for place, chain in enumerate(chains):
        if chain:
            rest = [*chains[:place], chain[1:], *chains[place + 1 :]]
            merged += [[chain[0], *tail] for tail in merge_chains(rest)]
    return merged


class ReorderEntity:
    """An order of axes.

    Parameters
    ----------
    perm : list of int
        Which axis comes at each place.
    """

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[IterVar]) -> list[IterVar]:
        """Reorder axes; returns them in the new order.

        Parameters
        ----------
        sch, op :
            As of :meth:`SplitEntity.apply`.
        axes : list of IterVar
            The axes; fewer than were defined are reordered among themselves.
        """
        ordered = [axes[place] for place in self.perm if place < len(axes)]
        sch[op].reorder(*ordered)
        return ordered

    def __repr__(self) -> str:
        return str(self.perm)


_BLOCKS = ("blockIdx.z", "blockIdx.y", "blockIdx.x")
_THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")


class AnnotateSpace(TransformSpace):
    """What axes become.

    Parameters
    ----------
    axes : list of Axis or VirtualAxis
        The axes.
    policy : str
        Words of ``none``, ``unroll`` and ``vec`` (``try`` is ``none``) with underscores between, of
        which each axis takes one: ``"try_unroll_vec"``. ``"bind_gpu"`` and ``"bind_gpu_virtual"`` bind
        to threads; ``"locate_cache"`` chooses ``num_anchor`` of the axes.
    """

    def __init__(self, axes: Sequence[Any], policy: str, **kwargs: Any) -> None:
        _require_known(kwargs, ("num_anchor",))
        self.ins = list(axes)
        self.policy = policy
        self.num_axis = self.num_output = len(self.ins)
        self.entities = [AnnotateEntity(anns) for anns in self._annotations(kwargs)]

    def _annotations(self, options: dict[str, Any]) -> list[Sequence[Any]]:
        count = self.num_axis
        if self.policy in ("bind_gpu", "bind_gpu_virtual"):
            return [_threads_of(count, self.policy)]
        if self.policy == "locate_cache":
            return list(itertools.combinations(range(count), options["num_anchor"]))
        words = self.policy.replace("try", "none").split("_")
        if not {*words} <= {"none", "unroll", "vec"}:
            raise RuntimeError(
                f"Invalid policy: {self.policy}; its words are try, none, unroll and vec, or it is "
                "bind_gpu, bind_gpu_virtual or locate_cache"
            )
        # one axis at most is vectorised
        choices = itertools.product(words, repeat=count)
        return [list(anns) for anns in choices if anns.count("vec") <= 1]

    @staticmethod
    def get_num_output(axes: Any = (), policy: str = "", **kwargs: Any) -> int:
        return len(axes)

    def __repr__(self) -> str:
        return f"Annotate(policy={self.policy}) len={len(self)}"


def _threads_of(count: int, policy: str) -> list[str]:
    """Blocks (and virtual threads) and threads for the innermost axes; the rest is fused."""
    kinds = 3 if policy == "bind_gpu_virtual" else 2
    depth = min(count // kinds, 3)
    if depth == 0:
        raise RuntimeError(f"Unhandled case in {policy}: it needs {kinds} axes, got {count}")
    middle = ["vthread"] * depth if kinds == 3 else []
    return ["fuse"] * (count - kinds * depth) + [*_BLOCKS[-depth:], *middle, *_THREADS[-depth:]]


class AnnotateEntity:
    """What each axis becomes.

    Parameters
    ----------
    anns : list of str or of int
        A word for each axis; for ``locate_cache`` the places of the chosen axes.
    """

    def __init__(self, anns: Sequence[Any]) -> None:
        self.anns = list(anns)

    def apply(
        self,
        sch: Any,
        op: Any,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Sequence[Any]] | None = None,
    ) -> list[IterVar]:
        """Annotate axes; returns them.

        Parameters
        ----------
        sch, op :
            As of :meth:`SplitEntity.apply`.
        axes : list of IterVar
            The axes.
        axis_lens : list of int, optional
            Their lengths, for the two limits.
        max_unroll : int, optional
            The longest axis that may be unrolled.
        vec_size : list of int, optional
            The lengths that may be vectorised.
        cfg : ConfigEntity, optional
            Told of axes beyond the limits.
        source : list of list of te.Tensor, optional
            The tensors computed at each chosen axis.
        """
        axes = list(axes)
        if source is not None:
            for tensors, place in zip(source, self.anns, strict=True):
                for tensor in tensors:
                    sch[tensor].compute_at(sch[op], axes[place])
            return axes
        lengths = [None] * len(axes) if axis_lens is None else list(axis_lens)
        for place, ann in enumerate(self.anns):
            length = lengths[place] if place < len(lengths) else None
            if ann == "unroll" and max_unroll and length is not None and length > max_unroll:
                cfg.raise_error("Too large factor for unrolling")
            if ann == "vec" and vec_size and length is not None and length not in vec_size:
                cfg.raise_error("Wrong size of lanes in vectorization")
            _annotate(sch[op], axes, place, ann)
        return axes

    def __repr__(self) -> str:
        return str(self.anns)


def _annotate(stage: Any, axes: list[IterVar], place: int, ann: str) -> None:
    axis = axes[place]
    if ann == "unroll":
        stage.unroll(axis)
    elif ann == "vec":
        stage.vectorize(axis)
    elif ann == "fuse":
        axes[place + 1] = stage.fuse(axis, axes[place + 1])
    elif ann in (*_BLOCKS, *_THREADS, "vthread"):
        stage.bind(axis, thread_axis(ann))
    elif ann != "none":
        raise RuntimeError(f"Invalid annotation {ann}")


class OtherOptionSpace(TransformSpace):
    """A list of values.

    Parameters
    ----------
    axes : list
        None.
    policy : None
        None.
    candidate : list
        The values.
    """

    def __init__(self, axes: Sequence[Any], policy: str | None, **kwargs: Any) -> None:
        _require_known(kwargs, ("candidate",))
        self.num_output = 0
        self.entities = [OtherOptionEntity(value) for value in kwargs["candidate"]]

    @staticmethod
    def get_num_output(axes: Any = (), policy: str | None = None, **kwargs: Any) -> int:
        return 0

    def __repr__(self) -> str:
        return f"OtherOption({self.entities}) len={len(self)}"


class OtherOptionEntity:
    """A value.

    Parameters
    ----------
    val : object
        The value.
    """

    def __init__(self, val: Any) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)


def _require_known(options: dict[str, Any], known: Sequence[str]) -> None:
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"a knob takes the options {', '.join(known)}, got {unknown[0]!r}")
