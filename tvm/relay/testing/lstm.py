"""An unrolled long short-term memory, after Hochreiter and Schmidhuber (1997)."""

from __future__ import annotations

from tvm import relay
from tvm.ir.module import IRModule
from tvm.ir.type import TupleType
from tvm.relay.scope_builder import ScopeBuilder
from tvm.runtime.ndarray import NDArray

from .init import create_workload


def _parameters(
    num_hidden: int, batch_size: int, dtype: str, suffix: str = ""
) -> tuple[relay.Var, ...]:
    """Weights and biases of one cell: from the input, then from the hidden state."""
    weight = relay.TensorType((4 * num_hidden, num_hidden), dtype)
    bias = relay.TensorType((batch_size, 4 * num_hidden), dtype)
    names = (("i2h", "weight", weight), ("i2h", "bias", bias),
             ("h2h", "weight", weight), ("h2h", "bias", bias))  # fmt: skip
    return tuple(relay.Var(f"{source}_{suffix}{kind}", ty) for source, kind, ty in names)


def lstm_cell(
    num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = ""
) -> relay.Function:
    """A function of one step.

    Its parameters are the input, the pair (hidden, cell), and the cell's four weights and
    biases; it returns the output and the next pair. Values of shape (batch_size, num_hidden).
    """
    builder = ScopeBuilder()
    state = relay.TensorType((batch_size, num_hidden), dtype)
    pair = TupleType([state, state])
    inputs, states = relay.Var("inputs", state), relay.Var("states", pair)
    weights = _parameters(num_hidden, batch_size, dtype)
    i2h_weight, i2h_bias, h2h_weight, h2h_bias = weights
    units = 4 * num_hidden

    def let(suffix: str, value: relay.Expr) -> relay.Expr:
        return builder.let(f"{name}{suffix}", value)

    i2h = let("i2h", relay.add(relay.nn.dense(inputs, i2h_weight, units=units), i2h_bias))
    hidden = relay.TupleGetItem(states, 0)
    h2h = let("h2h", relay.add(relay.nn.dense(hidden, h2h_weight, units=units), h2h_bias))
    gates = let("gates", relay.split(relay.add(i2h, h2h), indices_or_sections=4, axis=1).astuple())
    activations = (relay.sigmoid, relay.sigmoid, relay.tanh, relay.sigmoid)
    in_gate, forget_gate, in_transform, out_gate = (
        let(suffix, activation(relay.TupleGetItem(gates, index)))
        for index, (suffix, activation) in enumerate(
            zip(("i", "f", "c", "o"), activations, strict=True)
        )
    )
    next_c = let(
        "next_c",
        relay.add(
            relay.multiply(forget_gate, relay.TupleGetItem(states, 1)),
            relay.multiply(in_gate, in_transform),
        ),
    )
    next_h = let("next_h", relay.multiply(out_gate, relay.tanh(next_c)))
    builder.ret(relay.Tuple([next_h, relay.Tuple([next_h, next_c])]))
    return relay.Function([inputs, states, *weights], builder.get(), TupleType([state, pair]))


def get_net(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> relay.Function:
    """`iterations` cells with weights of their own, each fed `data`; returns the last output."""
    state = relay.TensorType((batch_size, num_hidden), dtype)
    builder = ScopeBuilder()
    data = builder.let(("inputs", state), relay.Var("data", state))
    zeros = builder.let(("zeros", state), relay.zeros((batch_size, num_hidden), dtype))
    states = builder.let(("init_states", TupleType([state, state])), relay.Tuple([zeros, zeros]))
    output: relay.Expr = zeros
    for index in range(iterations):
        weights = _parameters(num_hidden, batch_size, dtype, suffix=f"{index}_")
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{index}")
        step = builder.let(f"call_{index}", relay.Call(cell, [data, states, *weights]))
        output = builder.let((f"out_{index}", state), relay.TupleGetItem(step, 0))
        states = builder.let(
            (f"states_{index}", TupleType([state, state])), relay.TupleGetItem(step, 1)
        )
    builder.ret(output)
    body = builder.get()
    return relay.Function(relay.analysis.free_vars(body), body, state)


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
