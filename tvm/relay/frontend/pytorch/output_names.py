"""What outputs are called: by keys and fields of what a model returns, else by what computes them.

return {"logits": y, "past": (k, v)}     ->     logits, past.0, past.1
return y, z                              ->     addmm, relu
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import flat_names


def exported_names(program: Any, outputs: Sequence[tuple[RelayExpr, Any]]) -> list[str]:
    """Names of the tensors that an exported program returns, given each with its specification."""
    specs = program.graph_signature.output_specs
    users = [spec for spec in specs if spec.kind.name == "USER_OUTPUT"]
    paths = dict(zip(map(id, users), _paths(program), strict=False))
    called = [
        # of the buffer that is written, or of the node that computes the output
        paths.get(id(spec)) or str(spec.target or spec.arg.name) or f"output{position}"
        for position, (_, spec) in enumerate(outputs)
    ]
    return [n for c, (value, _) in zip(called, outputs, strict=True) for n in flat_names(c, value)]


def _paths(program: Any) -> list[str]:
    """Where each output is in what the model returns; empty for those of plain tuples."""
    from torch.utils import _pytree as pytree  # torch is there, since the program is

    spec = program.call_spec.out_spec
    try:
        nested = pytree.tree_unflatten(range(spec.num_leaves), spec)
        found = pytree.tree_flatten_with_path(nested)[0]
    except Exception:  # classes of users that cannot be made of numbers
        return []
    return [_joined(path) for path, _ in found]


def _joined(path: Sequence[Any]) -> str:
    if not any(_word(step) for step in path):
        return ""
    return ".".join([_word(step) or str(step.idx) for step in path])


def _word(step: Any) -> str:
    """The key or the field that a step goes by; nothing for positions in sequences."""
    key = getattr(step, "key", getattr(step, "name", None))
    return "" if key is None else str(key)


def scripted_names(result: Any) -> list[str]:
    """The keys of the dictionary that a TorchScript program returns; none for other results."""
    return [str(key) for key in result] if isinstance(result, dict) else []
