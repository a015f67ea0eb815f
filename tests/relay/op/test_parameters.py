"""Every parameter of every operator is set to more than its default by some case or drawn call."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.op.registry import all_ops

from .drawing import Draw
from .test_all_ops import CASES, THROUGH_OTHERS, _function
from .test_drawn_calls import FAMILIES, _params
from .test_dyn import CASES as DYNAMIC
from .test_dyn import _function as _dynamic_function

DRAWS = 4
# the static form's attribute stands for the argument of these names
ARGUMENTS = {
    "dyn.broadcast_to": {"shape", "dtype"}, "dyn.zeros": {"shape"}, "dyn.ones": {"shape"},
    "dyn.full": {"shape"}, "dyn.topk": {"k"}, "dyn.reshape": {"newshape"},
    "dyn.squeeze": {"axis"}, "dyn.tile": {"reps"}, "dyn.one_hot": {"depth"},
    "dyn.strided_slice": {"begin", "end", "strides"}, "dyn.sparse_to_dense": {"output_shape"},
    "dyn.nn.pad": {"pad_width"}, "dyn.image.resize2d": {"size", "roi"},
    "dyn.nn.upsampling": {"scale_h", "scale_w"},
    "dyn.nn.upsampling3d": {"scale_d", "scale_h", "scale_w"},
}  # fmt: skip
# rejected but for one value, with an error that names it
OF_ONE_VALUE = {
    "nn.correlation": {"layout"},
    "nn.contrib_conv2d_gemm_without_weight_transform": {"groups"},
    "nn.contrib_conv3d_winograd_without_weight_transform": {
        "strides", "dilation", "groups", "data_layout", "kernel_layout",
    },
    "dyn.strided_slice": {"axes"},
}  # fmt: skip
# of the attributes that operators share, those that no function sets
UNSET = {"broadcast_to": {"dtype"}, "contrib_reverse_reshape": {"allowzero"}}
ELSEWHERE = {
    "on_device": {"virtual_device"},  # tests/relay/transform: plans of devices
    "device_copy": {"src_virtual_device", "dst_virtual_device"},
    "debug": {"debug_func"},  # test_marks.py
}


class RandomDraw(Draw):
    """Choices without a search for the simplest."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def flag(self) -> bool:
        return self._random.random() < 0.5

    def order(self, count: int) -> tuple[int, ...]:
        return tuple(self._random.sample(range(count), count))


def _as_expr(built: Any) -> RelayExpr:
    if isinstance(built, relay.expr.TupleWrapper):
        return built.astuple()
    return relay.Tuple(list(built)) if isinstance(built, Sequence) else built


def _drawn_calls() -> list[RelayExpr]:
    found = []
    for family in FAMILIES.values():
        for seed in range(DRAWS):
            build, arrays, _ = family(RandomDraw(seed))
            found.append(_as_expr(build(*_params(arrays, False))))
    return found


def _values_seen() -> dict[tuple[str, str], set[str]]:
    """What each attribute of each operator is in the cases and in some drawn calls."""
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def note(expr: RelayExpr) -> None:
        if isinstance(expr, relay.Call) and isinstance(expr.op, Op) and expr.attrs is not None:
            for name, value in expr.attrs.items():
                seen[expr.op.name, name].add(repr(value))

    bodies = [_function(case).body for case in CASES]
    bodies += [_dynamic_function(case).body for case in DYNAMIC]
    for body in (*bodies, *_drawn_calls()):
        relay.analysis.post_order_visit(body, note)
    return seen


def _is_varied(field: Any, values: set[str]) -> bool:
    return len(values - {repr(field.default)}) > int(field.required)


def test_every_parameter_is_varied() -> None:
    seen = _values_seen()
    allowed = (ARGUMENTS, OF_ONE_VALUE, UNSET, ELSEWHERE)
    missing = [
        f"{op.name}.{field.name}"
        for op in all_ops()
        if op.attrs_type is not None and op.name not in THROUGH_OTHERS
        for field in op.attrs_type.node_fields
        if not any(field.name in table.get(op.name, ()) for table in allowed)
        and not _is_varied(field, seen[op.name, field.name])
    ]
    assert missing == []
