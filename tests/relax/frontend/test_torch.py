"""PyTorch's graphs and programs as modules of relax: what they compute, and how they read."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tvm
from tvm import relax
from tvm.error import OpNotImplemented, TVMError
from tvm.ir import assert_structural_equal
from tvm.relax.frontend.torch import (
    dynamo_capture_subgraphs,
    from_exported_program,
    from_fx,
    relax_dynamo,
)
from tvm.script import ir as I
from tvm.script import relax as R


class OfOne(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class OfTwo(OfOne):
    def forward(self, x, y):
        return self.function(x, y)


class Held(OfOne):
    """A module with a tuple of results, of which the first counts."""

    def __init__(self, module, function) -> None:
        super().__init__(function)
        self.module = module

    def forward(self, x):
        return self.function(self.module, x)[0]


def wrapped(function) -> nn.Module:
    return (OfOne if function.__code__.co_argcount == 1 else OfTwo)(function)


def random(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype("float32"))


def info_of(tensors):
    return [(tuple(t.shape), t.dtype) for t in tensors]


def run(mod, tensors):
    mod, params = relax.frontend.detach_params(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](*[tvm.nd.array(t.numpy()) for t in tensors], *params.get("main", []))
    return [r.numpy() for r in (result if isinstance(result, (list, tvm.ir.Array)) else [result])]


def check(model, *tensors, tolerance=1e-5) -> None:
    """Both importers give what PyTorch computes."""
    model = model if isinstance(model, nn.Module) else wrapped(model)
    model.eval()
    with torch.no_grad():
        expected = model(*[t.clone() for t in tensors])
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    graph = from_fx(torch.fx.symbolic_trace(model), info_of(tensors))
    program = from_exported_program(torch.export.export(model, tensors))
    for mod in (graph, program):
        found = run(mod, tensors)
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.shape == tuple(theirs.shape)
            assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=tolerance, atol=tolerance)


X = random(2, 3, 8, 6)
ROW = random(2, 12)
INTEGERS = torch.arange(24).reshape(2, 12) % 7
MASK = ROW > 0


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x: x.mul(2).add_(1) / 3 - x**2, [X]),
        (lambda x, i: (x + i, i * 2.5, i / 2, i // 2, i % 3, 1 - i), [ROW, INTEGERS]),
        (lambda x: (torch.clamp(x, -0.5, 0.5), torch.clamp(x, min=0.1), x.clip(max=0)), [ROW]),
        (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.hardswish(x)), [ROW]),
        (lambda x: (F.hardsigmoid(x), F.hardtanh(x), F.leaky_relu(x, 0.3), F.relu6(x)), [ROW]),
        (lambda x: (F.softmax(x, dim=1), torch.log_softmax(x, 0), x.exp().sqrt()), [ROW]),
        (lambda x, m: (torch.where(m, x, 0), x.masked_fill(m, -1), m & ~m, m.float()), [ROW, MASK]),
        (lambda x: (x.sum(1), x.mean((0, 1), keepdim=True), x.argmax(1), x.sum()), [ROW]),
        (lambda i: (i.sum(1), i.cumsum(1), i.float().mean(), i.max()), [INTEGERS]),
        (lambda x: (x.var(1), x.std(0), x.amax(1), x.prod(1), torch.logsumexp(x, 1)), [ROW]),
        (lambda x: (x[0], x[:, 1:4:2], x[..., None], x[:, -1], x[1, None, 2:]), [ROW]),
        (lambda x: (x.view(2, -1), x.flatten(1, 2), x.permute(0, 2, 3, 1), x.transpose(1, 3)), [X]),
        (lambda x: (x.unsqueeze(0).squeeze(0), x.squeeze(1), x.expand(3, -1, 4, -1)), [ROW[:, None]]),
        (lambda x: (x.split(5, 1)[2], x.chunk(5, 1)[3], x.unbind(0)[1], x.split([4, 8], 1)[1]), [ROW]),
        (lambda x, y: (torch.cat([x, y], 1), torch.stack([x, y], -1), x.repeat(2, 1)), [ROW, ROW]),
        (lambda x: x + torch.arange(12) + torch.full((1, 12), 2.0) + x.new_ones(12), [ROW]),
        (lambda x, m: x.masked_scatter(m, x * 2), [ROW, MASK]),
        (lambda x, y: (x @ y.t(), torch.einsum("ij,kj->ik", x, y)), [ROW, ROW]),
        (lambda x, y: torch.addmm(x[:, :2], x, y.t(), beta=0.5, alpha=2), [ROW, ROW]),
        (lambda x, y: torch.baddbmm(y, x, x.transpose(1, 2)), [X[0], random(3, 8, 8)]),
        (lambda x: F.interpolate(x, size=(4, 3)), [X]),
        (lambda x: F.interpolate(x, scale_factor=2), [X]),
        (lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True), [X]),
        (lambda x: F.avg_pool2d(x, 3, 2, 1), [X]),
        (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), [X]),
        (lambda x: (F.max_pool2d(x, 2), F.adaptive_avg_pool2d(x, (4, None))), [X]),
        (lambda q: F.scaled_dot_product_attention(q, q, q), [X]),
        (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), [X]),
        (lambda x, i: F.cross_entropy(x, i), [ROW, INTEGERS[:, 1]]),
        (lambda x: (torch.sort(x, 1)[0], torch.topk(x, 3)[1], x.roll(1, 1), x.flip(1)), [ROW]),
        (lambda x: (torch.round(x, decimals=2), torch.round(x * 100, decimals=-1)), [ROW]),
    ],
)  # fmt: skip
def test_functions_agree_with_pytorch(function, tensors) -> None:
    check(function, *tensors)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, groups=1), nn.BatchNorm2d(4), nn.ReLU()), X.shape),
        (nn.Sequential(nn.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1), nn.SiLU()), X.shape),
        (nn.Conv2d(3, 4, 3, padding="same", padding_mode="reflect"), X.shape),
        (nn.Sequential(nn.Conv1d(3, 6, 3), nn.GroupNorm(2, 6)), (2, 3, 9)),
        (nn.Sequential(nn.LayerNorm([8, 6]), nn.Flatten(), nn.Linear(144, 5)), X.shape),
        (nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Dropout(), nn.LogSoftmax(1)), X.shape),
        (Held(nn.MultiheadAttention(6, 2, batch_first=True), lambda f, x: f(x, x, x)), (2, 4, 6)),
        (Held(nn.GRU(6, 5, batch_first=True), lambda f, x: f(x)), (2, 4, 6)),
    ],
)
def test_modules_agree_with_pytorch(module, shape) -> None:
    check(module, random(*shape), tolerance=1e-4)


def test_embeddings() -> None:
    check(nn.Embedding(7, 4), INTEGERS)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(4, 3)

    def forward(self, x):
        return F.relu(self.dense(x))


@I.ir_module
class Expected:
    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), b: R.Tensor((3,), "float32"), w: R.Tensor((3, 4), "float32")
    ) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv = R.permute_dims(w, axes=None)
            lv1 = R.matmul(x, lv, out_dtype="float32")
            lv2 = R.add(lv1, b)
            lv3 = R.nn.relu(lv2)
            gv = lv3
            R.output(gv)
        return gv


def test_parameters_are_inputs_on_demand() -> None:
    model = Block().eval()
    graph = torch.fx.symbolic_trace(model)
    mod = from_fx(graph, [((2, 4), "float32")], keep_params_as_input=True)
    assert_structural_equal(mod["main"].without_attr("params"), Expected["main"])
    (values,) = relax.frontend.detach_params(mod)[1].values()
    np.testing.assert_array_equal(values[1].numpy(), model.dense.weight.detach().numpy())
    program = torch.export.export(model, (random(2, 4),))
    kept = from_exported_program(program, keep_params_as_input=True)
    (result,) = run(kept, [random(2, 4)])
    np.testing.assert_allclose(result, model(random(2, 4)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_forms_of_results() -> None:
    graph = torch.fx.symbolic_trace(wrapped(lambda x: (x + 1,)))
    shape = [((2,), "float32")]
    assert isinstance(from_fx(graph, shape)["main"].ret_struct_info, relax.TupleStructInfo)
    for options in ({"unwrap_unit_return_tuple": True},):
        info = from_fx(graph, shape, **options)["main"].ret_struct_info
        assert isinstance(info, relax.TensorStructInfo)
    body = from_fx(graph, shape, no_bind_return_tuple=True)["main"].body.body
    assert isinstance(body, relax.Tuple)
    sizes = from_fx(torch.fx.symbolic_trace(wrapped(lambda x: x.size())), shape)
    assert isinstance(sizes["main"].ret_struct_info, relax.ShapeStructInfo)


def test_dimensions_are_symbolic() -> None:
    model = wrapped(lambda x, y: torch.cat([x, y], 0).reshape(-1, 2).sum(1)).eval()
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(
        model, (random(3, 4), random(3, 4)), dynamic_shapes=({0: rows}, {0: rows})
    )
    mod = from_exported_program(program, unwrap_unit_return_tuple=True)
    for count in (2, 5):
        x = random(count, 4)
        (found,) = run(mod, [x, x])
        np.testing.assert_allclose(found, model(x, x).numpy(), rtol=1e-5, atol=1e-6)
    n = tvm.tir.Var("n", "int64")
    graph = torch.fx.symbolic_trace(wrapped(lambda x: x.reshape(x.size(0) * 2, -1) + 1))
    dims = from_fx(graph, [((n, 4), "float32")])["main"].ret_struct_info.shape.values
    assert tvm.arith.Analyzer().can_prove_equal(dims[0], n * 2)


def test_converters_of_the_user_come_first() -> None:
    def negated(node, importer):
        return importer.block_builder.emit(relax.op.negative(importer.env[node.args[0]]))

    graph = torch.fx.symbolic_trace(wrapped(lambda x: torch.relu(x)))
    mod = from_fx(graph, info_of([ROW]), custom_convert_map={"relu": negated})
    np.testing.assert_array_equal(run(mod, [ROW])[0], -ROW.numpy())


def test_errors() -> None:
    graph = torch.fx.symbolic_trace(wrapped(lambda x, y: x + y))
    with pytest.raises(TVMError, match="requires a shape for each input, got 1"):
        from_fx(graph, [((2,), "float32")])
    with pytest.raises(TypeError, match=r"requires a torch\.export\.ExportedProgram, got Block"):
        from_exported_program(Block())
    with pytest.raises(OpNotImplemented, match="of symbolic shapes is not supported"):
        logits = torch.fx.symbolic_trace(wrapped(lambda x: torch.special.i0(x)))
        from_fx(logits, [((tvm.tir.Var("n", "int64"),), "float32")])


def test_compiled_models_and_their_gradients() -> None:
    model = Block()
    compiled = torch.compile(model, backend=relax_dynamo())
    x = random(2, 4)
    for _ in range(2):
        with torch.no_grad():
            np.testing.assert_allclose(compiled(x), model(x), rtol=1e-5, atol=1e-6)
            model.dense.weight.mul_(2)
    compiled(x).square().mean().backward()
    found = model.dense.weight.grad.clone()
    model.zero_grad()
    model(x).square().mean().backward()
    np.testing.assert_allclose(found, model.dense.weight.grad, rtol=1e-4, atol=1e-6)


def test_compiled_functions_of_symbolic_shapes_that_write() -> None:
    def function(x, y):
        x.add_(1)
        return (x + y).reshape(-1, 2).sum(1)

    compiled = torch.compile(function, backend=relax_dynamo("zero"), dynamic=True)
    for count in (2, 4):
        x, y = random(count, 8), random(count, 8)
        same = x.clone()
        np.testing.assert_allclose(compiled(x, y), function(same, y), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(x, same)


def test_graphs_that_torchdynamo_makes() -> None:
    def function(a, b):
        x = a / (torch.sin(a) + 1)
        if torch.sum(b) < 1:
            b = b * -1
        return x * b

    mod = dynamo_capture_subgraphs(function, random(10), torch.ones(10))
    assert [v.name_hint for v in mod.get_global_vars()] == ["subgraph_0", "subgraph_1"]
    block = dynamo_capture_subgraphs(Block(), random(2, 4))["subgraph_0"]
    assert [p.name_hint for p in block.params] == ["inp_0"]
