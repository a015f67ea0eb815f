"""Parts of a function whose values the backward pass computes again instead of keeping them.

x_scp = start_checkpoint(x)                  lv1 = power(x, 3)
lv1 = power(x_scp, 3)             ->         lv2 = power(lv1, 3)
lv2 = power(lv1, 3)                          (lv1 and lv2 are computed again)
lv2_ecp = end_checkpoint(lv2)

What is computed again: all that an end's value comes from, up to the values of starts and to parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.ir.op import Op
from tvm.relax.analysis.variables import used_vars
from tvm.relax.bind import substituted
from tvm.relax.expr import Binding, Call, DataflowVar, Var, VarBinding

_START, _END = Op.get("relax.grad.start_checkpoint"), Op.get("relax.grad.end_checkpoint")


@dataclass
class Forward:
    """Bindings without marks of checkpoints."""

    bindings: list[Binding] = field(default_factory=list)
    # what marked variables stand for
    aliases: dict[Var, Var] = field(default_factory=dict)
    # the definitions of variables that the backward pass computes again
    recomputed: dict[Var, Binding] = field(default_factory=dict)


def without_checkpoints(bindings: Sequence[Binding]) -> Forward:
    """Bindings without marks of checkpoints, and what they mean."""
    forward = Forward()
    starts: dict[Var, None] = {}
    ends: dict[Var, None] = {}
    for binding in bindings:
        value = binding.value
        if not (isinstance(value, Call) and value.op in (_START, _END)):
            value = substituted(value, forward.aliases) if forward.aliases else value
            same = value is binding.value
            forward.bindings.append(binding if same else binding.replace(value=value))
            continue
        var = value.args[0]
        assert isinstance(var, Var)
        var = forward.aliases.get(var, var)
        (starts if value.op is _START else ends)[var] = None
        forward.aliases[binding.var] = var
        if not isinstance(binding.var, DataflowVar):
            forward.bindings.append(VarBinding(binding.var, var, binding.span))
    _collect(forward, starts, ends)
    return forward


def _collect(forward: Forward, starts: dict[Var, None], ends: dict[Var, None]) -> None:
    definitions = {b.var: b for b in forward.bindings}
    pending, seen = list(ends), dict.fromkeys(ends)
    while pending:
        var = pending.pop()
        if var not in definitions:
            continue
        if var not in starts:
            forward.recomputed[var] = definitions[var]
        elif var not in ends:
            continue
        found = [v for v in used_vars(definitions[var].value) if v not in seen]
        pending.extend(found)
        seen.update(dict.fromkeys(found))
