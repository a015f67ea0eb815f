"""Gradients of operators against finite differences, and the pass that makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, te
from tvm.error import TVMError
from tvm.relax import op
from tvm.relax.training import register_te_gradient
from tvm.script import ir as I
from tvm.script import relax as R

Row = tuple[Callable[..., Any], Sequence[tuple[int, ...]]]


def _tensor(*shape: int, dtype: str = "float64") -> Any:
    return relax.TensorStructInfo(shape, dtype)


def _function(builder: Any, name: str, row: Row) -> None:
    """The sum of an operator's result, each element with a weight of its own."""
    function, shapes = row
    params = [relax.Var(f"x{i}", _tensor(*shape)) for i, shape in enumerate(shapes)]
    with builder.function(name, params):
        with builder.dataflow():
            found = builder.emit(function(*params))
            fields = found.struct_info
            results = [found] if not hasattr(fields, "fields") else list(found)
            total = relax.const(0.0, "float64")
            for part in results:
                extents = [int(d) for d in part.struct_info.shape.values]
                weights = np.cos(np.arange(np.prod(extents, dtype=int))).reshape(extents)
                product = op.multiply(part, relax.const(weights, "float64"))
                total = op.add(total, op.sum(product))
            result = builder.emit_output(total)
        builder.emit_func_output(result)


def _differences(run: Callable[..., float], arrays: list[np.ndarray]) -> list[np.ndarray]:
    found = []
    for which, array in enumerate(arrays):
        grad = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            values = []
            for step in (1e-5, -1e-5):
                moved = [a.copy() for a in arrays]
                moved[which][at] += step
                values.append(run(*moved))
            grad[at] = (values[0] - values[1]) / 2e-5
        found.append(grad)
    return found


def _check(rows: dict[str, Row], low: float = 0.1, high: float = 0.9) -> None:
    """Compile all functions and their adjoints at once, and compare."""
    builder = relax.BlockBuilder()
    for name, row in rows.items():
        _function(builder, name, row)
    mod = builder.get()
    for name in rows:
        mod = relax.transform.Gradient(name)(mod)
    assert relax.analysis.well_formed(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    for name, (_, shapes) in rows.items():
        arrays = [rng.uniform(low, high, shape) for shape in shapes]

        def run(*values: np.ndarray, name: str = name) -> float:
            return float(vm[name](*[tvm.nd.array(v) for v in values]).numpy())

        result, grads = vm[f"{name}_adjoint"](*[tvm.nd.array(a) for a in arrays])
        assert result.numpy() == pytest.approx(run(*arrays))
        for grad, wanted in zip(grads, _differences(run, arrays), strict=True):
            np.testing.assert_allclose(grad.numpy(), wanted, 1e-5, 1e-6, err_msg=name)


_UNARY = (
    "abs", "acos", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "negative",
    "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "square", "tan", "tanh",
)  # fmt: skip


def test_gradients_of_functions_of_one_tensor() -> None:
    rows = {name: (getattr(op, name), [(2, 3)]) for name in _UNARY}
    rows["acosh"] = (lambda x: op.acosh(op.add(x, relax.const(1.5, "float64"))), [(2, 3)])
    rows["clip"] = (lambda x: op.clip(x, 0.3, 0.6), [(3, 4)])
    _check(rows)
    nn = ("relu", "silu", "gelu", "gelu_tanh", "leakyrelu", "softmax", "log_softmax")
    _check({name: (getattr(op.nn, name), [(2, 3)]) for name in nn}, -1.5, 1.5)


def test_gradients_of_functions_of_two_tensors_are_summed_to_their_shapes() -> None:
    names = ("add", "divide", "maximum", "minimum", "multiply", "power", "subtract")
    rows: dict[str, Row] = {}
    for name in names:
        rows[name] = (getattr(op, name), [(2, 3), (2, 3)])
        rows[f"{name}_broadcast"] = (getattr(op, name), [(3,), (2, 1)])
    _check(rows)


def test_gradients_of_reductions_and_scans() -> None:
    rows: dict[str, Row] = {}
    for name in ("sum", "mean", "variance", "std", "max", "min"):
        function = getattr(op, name)
        rows[name] = (function, [(2, 3)])
        rows[f"{name}_axis"] = (lambda x, f=function: f(x, [-1, 0]), [(2, 3, 2)])
        rows[f"{name}_kept"] = (lambda x, f=function: f(x, 1, keepdims=True), [(2, 3, 2)])
    rows["cumsum"] = (lambda x: op.cumsum(x, 1), [(2, 3)])
    rows["cumsum_flat"] = (lambda x: op.cumsum(x), [(2, 3)])
    rows["cumsum_exclusive"] = (lambda x: op.cumsum(x, 0, exclusive=True), [(3, 2)])
    _check(rows)


def test_gradients_of_shapes_and_indices() -> None:
    numbers = relax.const(np.array([1, 0, 1]), "int64")
    mask = relax.const(np.array([[True], [False]]))
    _check({
        "reshape": (lambda x: op.reshape(x, (3, 2)), [(2, 3)]),
        "flatten": (op.flatten, [(2, 3)]),
        "squeeze": (lambda x: op.squeeze(x, 1), [(2, 1, 3)]),
        "expand_dims": (lambda x: op.expand_dims(x, [0, 2]), [(2, 3)]),
        "permute_dims": (lambda x: op.permute_dims(x, [2, 0, 1]), [(2, 3, 4)]),
        "transpose": (op.permute_dims, [(2, 3)]),
        "broadcast_to": (lambda x: op.broadcast_to(x, (2, 2, 3)), [(2, 1)]),
        "concat": (lambda x, y: op.concat([x, y, x], 1), [(2, 3), (2, 1)]),
        "split": (lambda x: op.split(x, [1, 3], 1), [(2, 4)]),
        "flip": (lambda x: op.flip(x, 1), [(2, 3)]),
        "triu": (lambda x: op.triu(x, 1), [(3, 3)]),
        "tril": (lambda x: op.tril(x, -1), [(3, 3)]),
        "take": (lambda x: op.take(x, numbers, axis=1), [(2, 3)]),
        "take_first": (lambda x: op.take(x, numbers, axis=0), [(3, 2)]),
        "where": (lambda x, y: op.where(mask, x, y), [(2, 3), (3,)]),
    })  # fmt: skip


def test_gradients_of_products() -> None:
    _check({
        "matmul": (op.matmul, [(2, 3), (3, 4)]),
        "batch": (op.matmul, [(2, 2, 3), (2, 3, 4)]),
        "broadcast": (op.matmul, [(2, 1, 2, 3), (3, 3, 2)]),
        "vectors": (op.matmul, [(3,), (3,)]),
        "vector_matrix": (op.matmul, [(3,), (2, 3, 4)]),
        "matrix_vector": (op.matmul, [(2, 2, 3), (3,)]),
        "transposed": (lambda x, y: op.matmul(op.permute_dims(x), op.permute_dims(y)), [(3, 2), (4, 3)]),
    })  # fmt: skip


def test_gradients_of_convolutions_and_pooling() -> None:
    def conv(**attrs: Any) -> Callable[..., Any]:
        return lambda x, w: op.nn.conv2d(x, w, **attrs)

    _check({
        "conv": (conv(padding=1), [(1, 2, 4, 4), (2, 2, 3, 3)]),
        "strided": (conv(strides=2, padding=(1, 0, 0, 1)), [(2, 1, 5, 6), (2, 1, 2, 3)]),
        "grouped": (conv(groups=2), [(2, 4, 3, 3), (2, 2, 2, 2)]),
        "max_pool2d": (lambda x: op.nn.max_pool2d(x, (2, 2), strides=(2, 2)), [(1, 2, 4, 4)]),
        "avg_pool2d": (lambda x: op.nn.avg_pool2d(x, (2, 2), padding=1), [(1, 1, 3, 3)]),
    })  # fmt: skip


def test_gradients_of_losses() -> None:
    labels = relax.const(np.array([2, 0]), "int64")
    weights = relax.const(np.array([0.5, 1.0, 2.0]), "float64")
    _check({
        "cross_entropy": (op.nn.cross_entropy_with_logits, [(2, 3), (2, 3)]),
        "nll": (lambda x: op.nn.nll_loss(x, labels), [(2, 3)]),
        "weighted": (lambda x: op.nn.nll_loss(x, labels, weights, "none"), [(2, 3)]),
    })  # fmt: skip


def test_values_of_checkpoints_are_computed_again() -> None:
    @I.ir_module
    class Kept:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(a)
                gv = R.sum(b)
                R.output(gv)
            return gv

    @I.ir_module
    class Again:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                start = R.grad.start_checkpoint(x)
                a = R.exp(start)
                b = R.exp(a)
                end = R.grad.end_checkpoint(b)
                gv = R.sum(end)
                R.output(gv)
            return gv

    found = [relax.transform.Gradient("main")(mod) for mod in (Kept, Again)]
    counts = [str(mod["main_adjoint"]).count("R.exp") for mod in found]
    assert counts == [2, 4]
    x = tvm.nd.array(np.array([0.1, 0.2, 0.3], "float32"))
    grads = []
    for mod in found:
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
        grads.append(vm["main_adjoint"](x)[1][0].numpy())
    np.testing.assert_array_equal(*grads)
    np.testing.assert_allclose(grads[0], np.exp(np.exp(x.numpy()) + x.numpy()), 1e-5)


def test_values_without_gradient_stop_it() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.multiply(x, R.grad.no_grad(x))
                gv = R.sum(y)
                R.output(gv)
            return gv

    mod = relax.transform.Gradient("main")(Mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = np.array([1, 2, 3], "float32")
    np.testing.assert_array_equal(vm["main_adjoint"](tvm.nd.array(x))[1][0].numpy(), x)


def test_gradients_of_symbolic_shapes() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.multiply(x, w)
                gv = R.mean(y)
                R.output(gv)
            return gv

    mod = relax.transform.Gradient("main")(Mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x, w = np.ones((4, 3), "float32"), np.array([1, 2, 3], "float32")
    to_x, to_w = vm["main_adjoint"](tvm.nd.array(x), tvm.nd.array(w))[1]
    np.testing.assert_allclose(to_x.numpy(), np.broadcast_to(w / 12, (4, 3)), 1e-6)
    np.testing.assert_allclose(to_w.numpy(), np.full(3, 4 / 12), 1e-6)


def test_loop_programs_take_registered_gradients() -> None:
    @register_te_gradient("tripled_grad")
    def tripled_grad(output_grad: te.Tensor, x: te.Tensor, k: Any) -> list[te.Tensor]:
        return [te.compute(x.shape, lambda i: output_grad[i] * k)]

    builder = relax.BlockBuilder()
    x = relax.Var("x", _tensor(3, dtype="float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(
                builder.call_te_with_grad(
                    lambda x: te.compute(x.shape, lambda i: x[i] * 3.0), x,
                    primfunc_name_hint="tripled", te_grad_name="tripled_grad",
                    te_grad_kwargs={"k": tvm.tir.const(3, "float32")},
                )
            )  # fmt: skip
            gv = builder.emit_output(op.sum(y))
        builder.emit_func_output(gv)
    mod = relax.transform.Gradient("main")(builder.get())
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    data = tvm.nd.array(np.ones(3, "float32"))
    np.testing.assert_array_equal(vm["main_adjoint"](data)[1][0].numpy(), np.full(3, 3.0))


def test_gradient_says_what_it_requires() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32"), n: R.Tensor((3,), "int32")):
            with R.dataflow():
                y = R.sort(x)
                gv = R.sum(y)
                R.output(gv)
            return gv

    with pytest.raises(TVMError, match="requires float tensors and tuples of such, got n"):
        relax.transform.Gradient("main")(Mod)
    with pytest.raises(TVMError, match=r"requires operators with a gradient, got .*sort"):
        relax.transform.Gradient("main", Mod["main"].params[0])(Mod)
    with pytest.raises(TVMError, match="target_index below 1, got 2"):
        relax.transform.Gradient("main", Mod["main"].params[0], target_index=2)(Mod)
