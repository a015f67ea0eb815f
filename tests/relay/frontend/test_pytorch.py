from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tvm import relay
from tvm.error import OpNotImplemented, TVMError

from .running import assert_close, run

torch.manual_seed(0)
X = torch.randn(2, 3, 4)
Y = torch.randn(2, 3, 4)
POSITIVE = X.abs() + 0.5
IMAGE = torch.randn(1, 4, 9, 10)
INTS = torch.tensor([[1, 0, 2], [3, -1, 0]])


class Wrap(torch.nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor):
        return self.function(*args)


def check(function, *inputs: torch.Tensor, relative: float = 1e-4) -> None:
    """Import a traced function and compare all outputs with PyTorch's."""
    module = function if isinstance(function, torch.nn.Module) else Wrap(function)
    module.eval()
    with torch.no_grad():
        expected = module(*inputs)
        script = torch.jit.trace(module, inputs, check_trace=False)
    infos = [(f"x{i}", (tuple(t.shape), str(t.dtype).split(".")[1])) for i, t in enumerate(inputs)]
    mod, params = relay.frontend.from_pytorch(script, infos)
    outputs = run(mod, params, {f"x{i}": t.numpy() for i, t in enumerate(inputs)})
    wanted = _flat(expected)
    assert len(outputs) == len(wanted)
    for actual, tensor in zip(outputs, wanted, strict=True):
        assert_close(actual, tensor.numpy(), relative)


def _flat(outputs) -> list[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [tensor for item in outputs for tensor in _flat(item)]


POINTWISE = {
    "arithmetic": lambda x, y: (x + y) * x - y / (x.abs() + 1),
    "scalars": lambda x, y: 2 * x - 3 + y / 4 + (1 - x),
    "alpha": lambda x, y: torch.add(x, y, alpha=2) - torch.sub(x, y, alpha=0.5),
    "pow": lambda x, y: x**2 + x.abs() ** 1.5,
    "trigonometry": lambda x, y: torch.sin(x) + torch.cos(y) + torch.tanh(x),
    "exponentials": lambda x, y: torch.exp(x) + torch.log(y.abs() + 1) + torch.sqrt(x.abs()),
    "comparison": lambda x, y: (x > y) & (x != 0) | (y <= 1),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, -1.0),
    "clamp": lambda x, y: x.clamp(-0.5, 0.5) + y.clamp(min=0.0),
    "floor_division": lambda x, y: torch.floor_divide(x, 0.3) + torch.remainder(y, 0.7),
    "rounding": lambda x, y: x.floor() + y.ceil() + x.round() + y.trunc(),
    "activations": lambda x, y: F.relu(x) + F.gelu(x) + F.silu(y) + F.softplus(x) + F.elu(y),
    "more_activations": lambda x, y: F.hardswish(x) + F.leaky_relu(y, 0.2) + F.mish(x) + F.selu(y),
    "gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "logsigmoid": lambda x, y: F.logsigmoid(x) + F.hardsigmoid(y) + F.hardtanh(x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3) + torch.addcmul(x, y, y, value=0.5),
    "maximum": lambda x, y: torch.maximum(x, y) - torch.minimum(x, y),
    "glu": lambda x, y: F.glu(x, -1),
    "rsub": lambda x, y: torch.rsub(x, 1.5),
    "type_change": lambda x, y: (x * 10).to(torch.int32) + 1,
    "type_of_another": lambda x, y: (x * 10).to(torch.int32).to(y) + y.type_as(x),
    "int_division": lambda x, y: (x * 10).to(torch.int64) / 3,
}


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name: str) -> None:
    check(POINTWISE[name], X, Y)


MOVEMENT = {
    "view": lambda x: x.view(2, -1),
    "permute": lambda x: x.permute(2, 0, 1).contiguous() + 1,
    "transpose": lambda x: x.transpose(1, 2).reshape(6, 4),
    "flatten": lambda x: torch.flatten(x, 1),
    "unsqueeze": lambda x: x.unsqueeze(1).unsqueeze(-1).squeeze(1),
    "slices": lambda x: x[:, 1:, ::2] + x[:, :2, -2:],
    "select": lambda x: x[:, 0] + x[:, -1],
    "cat": lambda x: torch.cat([x, x * 2], dim=1),
    "stack": lambda x: torch.stack([x, x + 1], dim=-1),
    "split": lambda x: torch.split(x, 2, dim=-1)[1] + x.chunk(2, dim=2)[0],
    "split_sizes": lambda x: torch.split(x, [1, 3], dim=-1),
    "unbind": lambda x: x.unbind(1),
    "expand": lambda x: x[:, :1].expand(-1, 5, 4) + 0.0,
    "repeat": lambda x: x.repeat(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=1),
    "flip": lambda x: x.flip(0, 2),
    "roll": lambda x: x.roll(1, 1),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    "negative_pad": lambda x: F.pad(x, (-1, 1)),
    "circular_cut": lambda x: F.pad(x, (-1, 1), mode="circular"),
    "edges_cut": lambda x: F.pad(x, (-4, 5), mode="replicate"),
    "reflect_pad": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "tril": lambda x: x.tril() + x.triu(1),
    "index": lambda x: x[:, torch.tensor([0, 2, -1])],
    "index_pairs": lambda x: x[torch.tensor([0, 1]), torch.tensor([2, 0])],
    "index_inner": lambda x: x[:, torch.tensor([0, 1]), torch.tensor([2, 0])],
    "gather": lambda x: torch.gather(x, 2, torch.zeros(2, 3, 1, dtype=torch.int64)),
    "sizes": lambda x: x.reshape(x.size(0), x.size(1) * x.size(2)) * x.size(1),
    "new_tensors": lambda x: x.new_zeros(2, 3, 4) + torch.ones_like(x) + torch.full((4,), 2.0),
    "arange": lambda x: x + torch.arange(4) + torch.arange(0, 8, 2),
    "diff": lambda x: torch.diff(x, dim=2),
    "movedim": lambda x: x.movedim(0, -1),
    "einops_like": lambda x: x.unflatten(2, (2, 2)).permute(0, 2, 1, 3).flatten(2),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    check(MOVEMENT[name], X)


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum_axes": lambda x: x.sum((0, 2)) + x.sum(-1, keepdim=True).sum(0).squeeze(-1),
    "mean": lambda x: x.mean(1) + x.mean(),
    "max": lambda x: x.max(),
    "max_indices": lambda x: torch.max(x, dim=1),
    "min_indices": lambda x: torch.min(x, dim=2, keepdim=True),
    "amax": lambda x: x.amax(-1) - x.amin(-1),
    "argmax": lambda x: x.argmax(1),
    "var": lambda x: x.var(1) + x.var(1, unbiased=False),
    "std": lambda x: x.std(),
    "norm": lambda x: x.norm(dim=1) + x.norm(p=1, dim=1),
    "softmax": lambda x: x.softmax(-1) + x.softmax(1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "log_softmax_inner": lambda x: F.log_softmax(x, 1),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1),
    "all_any": lambda x: torch.stack([(x > -9).all(), (x > 9).any()]),
    "int_sum": lambda x: (x * 4).to(torch.int32).sum(),
    "prod": lambda x: x.prod(1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)) + F.layer_norm(x, (3, 4)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    check(REDUCTIONS[name], X)


COMPOSED = {
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x) + torch.einsum("...ij->...", x).sum(),
    "einsum_batches": lambda x: torch.einsum("bhid,bhjd->bhij", x[None], x[None]),
    "einsum_three": lambda x: torch.einsum("bij,bj,k->ik", x, x[:, 0], x[0, 0]),
    "einsum_diagonal": lambda x: torch.einsum("iji->j", x[0, :3, :3].expand(3, 3, 3) * 1),
    "einsum_implicit": lambda x: torch.einsum("ij,jk", x[0], x[1].T),
    "products": lambda x: torch.outer(x[0, 0], x[0, 1]) @ torch.addr(x[0].T, x[0, 0], x[0, :, 0]),
    "tensordot": lambda x: torch.tensordot(x, x, ([2, 1], [2, 1])),
    "stacks": lambda x: torch.vstack([x[0], x[1]]) + torch.hstack([x[0], x[1]]).sum(),
    "diagonal": lambda x: torch.diagonal(x, 1, 1, 2) + torch.diag(x[0, 0, :2], 0).sum(),
    "diag": lambda x: torch.diag(x[0, 0], -1),
    "trace": lambda x: torch.trace(x[0]),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "indices": lambda x: (
        x.index_add(1, torch.tensor([0, 2]), x[:, :2])
        + x.index_fill(1, torch.tensor([0, 2]), 1.5)
        + x.index_copy(1, torch.tensor([0, 2]), x[:, :2])
    ),
    "take_along": lambda x: torch.take_along_dim(x, (x > 0).long()[:, :, :2], 2),
    "moments": lambda x: torch.std_mean(x, dim=1),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
    "cosine": lambda x: F.cosine_similarity(x, x + 1, dim=1),
    "cumprod": lambda x: x.cumprod(1),
    "losses": lambda x: F.mse_loss(x, x + 1) + F.l1_loss(x, x * 2),
    "circular_pad": lambda x: F.pad(x, (1, 2), mode="circular"),
    "repeat_by_counts": lambda x: x.repeat_interleave(torch.tensor([1, 2, 1]), dim=1),
    "mT": lambda x: x.mT @ x,
    "shifts": lambda x: ((x * 10).int() << 2) >> 1,
    "shrinks": lambda x: F.softshrink(x) + F.hardshrink(x) + F.tanhshrink(x),
    "floats": lambda x: torch.exp2(x) + torch.hypot(x, x + 1) + torch.logaddexp(x, x * 2),
    "nan_to_num": lambda x: torch.nan_to_num(torch.log(x) / (x > 0)),
    "isclose": lambda x: torch.isclose(x, x.abs()),
    "logit": lambda x: torch.logit(torch.sigmoid(x)) + torch.frac(x) + torch.sgn(x),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_operators(name: str) -> None:
    check(COMPOSED[name], X)


def test_images_in_blocks() -> None:
    check(lambda x: F.unfold(x, (3, 2), padding=1, stride=2), IMAGE)
    check(lambda x: F.pixel_unshuffle(x[:, :, :8], 2), IMAGE)
    check(lambda x: F.channel_shuffle(x, 2), IMAGE)


LAYERS = {
    "conv": (torch.nn.Conv2d(4, 6, 3, padding=1), IMAGE),
    "conv_stride": (torch.nn.Conv2d(4, 6, 3, stride=2, bias=False), IMAGE),
    "conv_dilated": (torch.nn.Conv2d(4, 6, 3, dilation=2, padding=2), IMAGE),
    "conv_grouped": (torch.nn.Conv2d(4, 6, 3, groups=2), IMAGE),
    "conv_depthwise": (torch.nn.Conv2d(4, 4, 3, groups=4, padding=1), IMAGE),
    "conv_same": (torch.nn.Conv2d(4, 5, 3, padding="same"), IMAGE),
    "conv1d": (torch.nn.Conv1d(3, 5, 3, padding=1), X),
    "max_pool": (torch.nn.MaxPool2d(3, 2, 1), IMAGE),
    "max_pool_ceil": (torch.nn.MaxPool2d(2, 2, ceil_mode=True), IMAGE),
    "avg_pool": (torch.nn.AvgPool2d(3, 2, 1), IMAGE),
    "avg_pool_exclude": (torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "max_pool1d": (torch.nn.MaxPool1d(2), X),
    "avg_pool1d": (torch.nn.AvgPool1d(3, 2, 1), X),
    "adaptive_pool1d": (torch.nn.AdaptiveAvgPool1d(2), X),
    "adaptive_max_pool1d": (torch.nn.AdaptiveMaxPool1d(3), X),
    "pool_without_batch": (torch.nn.MaxPool2d(2), IMAGE[0]),
    "conv_transpose": (torch.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), IMAGE),
    "conv_transpose_dilated": (torch.nn.ConvTranspose2d(4, 3, 3, dilation=2), IMAGE),
    "conv_transpose1d": (torch.nn.ConvTranspose1d(3, 5, 4, 2, 1), X),
    "upsample": (torch.nn.Upsample(scale_factor=2, mode="nearest"), IMAGE),
    "upsample_bilinear": (torch.nn.Upsample(size=(5, 7), mode="bilinear"), IMAGE),
    "upsample_bicubic": (torch.nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE),
    "upsample_linear1d": (torch.nn.Upsample(scale_factor=2, mode="linear"), X),
    "upsample_nearest1d": (torch.nn.Upsample(scale_factor=2), X),
    "max_pool_ceil_padded": (torch.nn.MaxPool2d(2, 2, 1, ceil_mode=True), IMAGE),
    "avg_pool_ceil_padded": (
        torch.nn.AvgPool2d(2, 2, 1, ceil_mode=True, count_include_pad=False), IMAGE
    ),
    "upsample_odd": (torch.nn.Upsample(scale_factor=1.7), IMAGE),
    "upsample_bilinear_odd": (torch.nn.Upsample(scale_factor=1.3, mode="bilinear"), IMAGE),
    "upsample_bicubic_odd": (torch.nn.Upsample(scale_factor=1.6, mode="bicubic"), IMAGE),
    "upsample_exact": (torch.nn.Upsample(size=(5, 11), mode="nearest-exact"), IMAGE),
    "adaptive_pool": (torch.nn.AdaptiveAvgPool2d((1, 1)), IMAGE),
    "adaptive_pool_3": (torch.nn.AdaptiveAvgPool2d((3, 5)), IMAGE),
    "batch_norm": (torch.nn.BatchNorm2d(4), IMAGE),
    "group_norm": (torch.nn.GroupNorm(2, 4), IMAGE),
    "instance_norm": (torch.nn.InstanceNorm2d(4, affine=True), IMAGE),
    "layer_norm": (torch.nn.LayerNorm(4), X),
    "linear": (torch.nn.Linear(4, 7), X),
    "embedding": (torch.nn.Embedding(5, 3), INTS.abs()),
    "prelu": (torch.nn.PReLU(4), IMAGE),
    "pixel_shuffle": (torch.nn.PixelShuffle(2), IMAGE),
    "attention": (
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 5, 8)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    check(*LAYERS[name])


def test_recurrent_layers() -> None:
    check(torch.nn.LSTM(4, 5, num_layers=2, batch_first=True), X)
    check(torch.nn.LSTM(4, 5, bidirectional=True), X)
    check(torch.nn.GRU(4, 5, batch_first=True), X)
    check(torch.nn.LSTM(4, 5, proj_size=2), X)
    check(torch.nn.RNN(4, 5, nonlinearity="relu"), X)
    check(torch.nn.RNN(4, 5, bias=False), X)
    check(torch.nn.GRUCell(4, 5), X[0])


def test_matrix_products() -> None:
    a, b = torch.randn(2, 3, 4, 5), torch.randn(3, 5, 6)
    check(lambda p, q: p @ q, a, b)
    check(lambda p, q: p @ q[0], a, b)
    check(lambda p, q: torch.bmm(p[0], q), a, b)
    check(lambda p, q: p[0, 0] @ q[0, :, 0], a, b)
    check(lambda p, q: torch.addmm(q[0, 0], p[0, 0], q[0]), a, b)


def test_attention_with_masks() -> None:
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
    mask = torch.rand(4, 6) > 0.3
    mask[:, 0] = True
    check(lambda x, y: F.scaled_dot_product_attention(x, y, y), q, k)
    check(lambda x, y: F.scaled_dot_product_attention(x, x, x, is_causal=True), q, k)
    check(lambda x, y: F.scaled_dot_product_attention(x, y, y, attn_mask=mask), q, k)


def test_fused_attention_with_masks_and_weights() -> None:
    x = torch.randn(2, 4, 8)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval().requires_grad_(False)
    padding, causal = torch.arange(4) > torch.tensor([[2], [1]]), torch.ones(4, 4).triu(1) > 0
    check(lambda y: layer(y, y, y, padding), x)
    check(lambda y: layer(y, y, y, padding, attn_mask=causal, average_attn_weights=False), x)
    check(lambda y: layer(y, y, y, need_weights=False, attn_mask=causal)[0], x)
    encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder.eval().requires_grad_(False)
    check(lambda y: encoder(y, src_key_padding_mask=padding), x)


def test_in_place_operators_change_their_input() -> None:
    def double(x):
        y = x + 1
        y.mul_(2)
        y.relu_()
        return y + x

    check(double, X)


def _shift(x):
    y = x.new_zeros(x.shape)
    y[:, 1:] = x[:, :-1]
    y[:, 0] = 7
    return y


def _strided(x):
    y = x.clone()
    y[..., ::2] += 1
    return y, x


def _through_views(x):
    y = x * 2
    rows = y.view(6, 4).transpose(0, 1)
    other = y[0]
    rows[1].mul_(3)
    return y, other, rows


def _masked(x):
    y = x.clone()
    y[y > 0] = 0
    y[torch.tensor([0, 1]), torch.tensor([2, 0])] = x[0, 0]
    return y


def _copied(x):
    y = x.transpose(0, 1).reshape(-1)  # not a view: the rows are not contiguous
    z = x + 1
    y.zero_()
    return y, z, x


WRITES = {f.__name__: f for f in (_shift, _strided, _through_views, _masked, _copied)}


@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_all_that_share_memory(name: str) -> None:
    check(WRITES[name], X)


def test_reading_after_an_unsupported_write_is_refused() -> None:
    def written(x):
        y = x + 1
        y.tensor_split(2, 2)[0].relu_()
        return y

    with pytest.raises(TVMError, match="written to in place through aten::tensor_split"):
        check(written, X)


def test_scatters() -> None:
    index = torch.tensor([[[0, 1, 1, 0]]])
    check(lambda x, y: x.scatter(1, index, y) + x.scatter_add(1, index, y), X, Y)
    check(lambda x, y: x.scatter(2, index, 0.5), X, Y)


def test_scripted_control_flow_with_constants_is_unrolled() -> None:
    class Loop(torch.nn.Module):
        def forward(self, x):
            for i in range(3):
                if i == 1:
                    x = x * 2
                else:
                    x = x + i
            return x

    script = torch.jit.script(Loop())
    mod, params = relay.frontend.from_pytorch(script, [("x", (2, 3, 4))])
    assert_close(run(mod, params, {"x": X.numpy()})[0], Loop()(X).numpy())


def test_type_promotion_follows_torch() -> None:
    check(lambda x, i: x[0, :2, :3] * i + i * 2, X, INTS)
    check(lambda x, i: i + 1.5, X, INTS)
    check(lambda x, i: (i > 0) + i, X, INTS)


def test_integers_stay_integers_or_become_floats_as_in_torch() -> None:
    check(lambda i: (i.cumprod(1), torch.nan_to_num(i), torch.cov(i), torch.corrcoef(i)), INTS)


def test_weights_have_their_names_in_the_state_dict() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    _, params = relay.frontend.from_pytorch(torch.jit.trace(model, X), [("x", (2, 3, 4))])
    assert set(params) == {"0.weight", "0.bias"}
    np.testing.assert_array_equal(params["0.bias"].numpy(), model[0].bias.detach().numpy())
    _, renamed = relay.frontend.from_pytorch(
        torch.jit.trace(model, X), [("x", (2, 3, 4))], use_parser_friendly_name=True
    )
    assert set(renamed) == {"0_weight", "0_bias"}


def test_all_unsupported_operators_are_listed() -> None:
    script = torch.jit.trace(
        lambda x: torch.linalg.ldl_factor(x @ x.mT)[0].sum() + torch.special.airy_ai(x), X
    )
    with pytest.raises(OpNotImplemented) as info:
        relay.frontend.from_pytorch(script, [("x", (2, 3, 4))])
    text = str(info.value)
    assert "aten::linalg_ldl_factor" in text and "aten::special_airy_ai" in text
    assert "[2, 3, 4]" in text and "custom_convert_map" in text


def test_custom_converters_are_used() -> None:
    script = torch.jit.trace(lambda x: torch.special.i0(x), X)
    mod, params = relay.frontend.from_pytorch(
        script, [("x", (2, 3, 4))], {"aten::i0": lambda inputs, types: relay.exp(inputs[0])}
    )
    assert_close(run(mod, params, {"x": X.numpy()})[0], torch.exp(X).numpy())


def test_wrong_inputs_are_refused() -> None:
    script = torch.jit.trace(lambda x, y: x + y, (X, Y))
    with pytest.raises(TVMError, match="one input_info for each"):
        relay.frontend.from_pytorch(script, [("x", (2, 3, 4))])
    with pytest.raises(TypeError, match=r"torch\.jit\.trace"):
        relay.frontend.from_pytorch(torch.nn.ReLU(), [("x", (2, 3, 4))])
    with pytest.raises(TypeError, match="input_info is"):
        relay.frontend.from_pytorch(script, ["x", "y"])


def check_scripted(module: torch.nn.Module, *examples: torch.Tensor) -> None:
    """Import a scripted module and run it in the interpreter, for each example."""
    script = torch.jit.script(module)
    mod, params = relay.frontend.from_pytorch(script, [("x", tuple(examples[0].shape))])
    function = relay.create_executor("debug", mod=mod).evaluate()
    for example in examples:
        actual, expected = function(example.numpy(), **params), script(example)
        actual = [actual] if isinstance(expected, torch.Tensor) else actual
        expected = [expected] if isinstance(expected, torch.Tensor) else expected
        for ours, theirs in zip(actual, expected, strict=True):
            assert_close(ours.numpy(), np.asarray(theirs))


class Branch(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y, n = x * 2, 1
        else:
            y, n = x - 1, 0
        return y, n


class UntilLarge(torch.nn.Module):
    def forward(self, x):
        n = 0
        while bool(x.sum() < 100):
            x = x * 2
            n += 1
        return x, n


class AsOftenAsSaid(torch.nn.Module):
    def forward(self, x):
        for i in range(int(x[0, 0])):
            x = x + i
        return x


class InPlaceBranch(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        if x.sum() > 0:
            y[0] = 0.0
        return y


def test_branches_on_data() -> None:
    check_scripted(Branch(), torch.ones(2, 3), -torch.ones(2, 3))


def test_loops_until_data_says_so() -> None:
    check_scripted(UntilLarge(), torch.ones(2, 3), torch.ones(2, 3) * 1000)


def test_loops_as_often_as_data_says() -> None:
    check_scripted(AsOftenAsSaid(), torch.ones(2, 3) * 3, -torch.ones(2, 3))


def test_writes_in_branches_on_data_are_results_of_the_branch() -> None:
    check_scripted(InPlaceBranch(), torch.ones(2, 3), -torch.ones(2, 3))


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = (
            torch.ao.quantization.QuantStub(),
            torch.ao.quantization.DeQuantStub(),
        )
        self.first = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU())
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.add = torch.ao.nn.quantized.FloatFunctional()
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(self.first(self.enter(x)), 2)
        x = self.add.add_relu(self.second(x), x)
        x = torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.leave(self.head(x))


@pytest.mark.filterwarnings("ignore")
def test_quantised_modules_agree_within_a_step() -> None:
    torch.manual_seed(0)
    torch.backends.quantized.engine = "fbgemm"
    model = Small().eval()
    torch.ao.quantization.fuse_modules(model, [["first.0", "first.1"]], inplace=True)
    model.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.ao.quantization.prepare(model, inplace=True)
    for _ in range(4):
        model(torch.randn(2, 3, 8, 8))
    torch.ao.quantization.convert(model, inplace=True)
    x = torch.randn(2, 3, 8, 8)
    script = torch.jit.trace(model, x)
    mod, params = relay.frontend.from_pytorch(script, [("x", tuple(x.shape))])
    assert "qnn.conv2d" in str(mod) and "qnn.dense" in str(mod)
    actual, expected = run(mod, params, {"x": x.numpy()})[0], model(x).numpy()
    assert np.abs(actual - expected).max() <= 1.01 * model.head.scale


def test_random_numbers_have_their_distribution() -> None:
    script = torch.jit.trace(lambda x: (torch.rand_like(x), torch.randn_like(x)), torch.empty(4000))
    mod, params = relay.frontend.from_pytorch(script, [("x", (4000,))])
    even, normal = run(mod, params, {"x": np.zeros(4000, "float32")})
    assert even.min() >= 0 and even.max() < 1 and abs(even.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
    assert np.unique(even).size > 3000


def test_dropout_in_training_draws_and_warns() -> None:
    script = torch.jit.trace(lambda x: torch.dropout(x, 0.25, True), POSITIVE, check_trace=False)
    with pytest.warns(UserWarning, match=r"model\.eval"):
        mod, params = relay.frontend.from_pytorch(script, [("x", (2, 3, 4))])
    (found,) = run(mod, params, {"x": POSITIVE.numpy()})
    kept = found != 0
    assert 0 < kept.sum() < kept.size
    np.testing.assert_allclose(found[kept], POSITIVE.numpy()[kept] / 0.75, rtol=1e-5)


def test_elements_are_picked_by_masks_and_counts() -> None:
    x, counts = torch.arange(12.0).reshape(3, 4), torch.tensor([0, 2, 1, 3])
    mask = torch.tensor([[True, False, True, True]] * 2 + [[False] * 4])
    tensors = (x, mask, counts)

    def picked(x, mask, counts):
        y = x.clone()
        y[mask] = x.new_zeros(6) + 7
        return x[mask], y, x.repeat_interleave(counts, dim=1), mask.nonzero()

    script = torch.jit.trace(picked, tensors, check_trace=False)
    infos = [("x", (3, 4)), ("mask", ((3, 4), "bool")), ("counts", ((4,), "int64"))]
    mod, params = relay.frontend.from_pytorch(script, infos)
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    found = call(*[t.numpy() for t in tensors], **params)
    for actual, expected in zip(found, picked(*tensors), strict=True):
        assert_close(actual.numpy(), expected.numpy())


def test_values_are_put_at_indices_of_inner_axes() -> None:
    def put(x, y):
        inner, apart = x.clone(), x.clone()
        inner[:, torch.tensor([2, 0])] = y[:, :2] * 2
        apart[torch.tensor([1, 0]), :, torch.tensor([3, 1])] = y[:, 0, :3]
        return inner, apart

    check(put, X, Y)


def test_graph_is_written_with_the_names_of_spans(tmp_path) -> None:
    script = torch.jit.trace(lambda x: (F.linear(x, x[0]).relu().sum() + x).relu(), X)
    infos, folder = [("x", (2, 3, 4))], tmp_path / "made" / "here"
    relay.frontend.from_pytorch(script, infos, export_renamed_c_graph_path=str(folder))
    (path,) = folder.glob("tvm_exported_c_graph_*.txt")
    text = path.read_text()
    assert "%aten::relu_0" in text and "%aten::relu_1" in text and "%aten::add_0" in text
    assert "%aten::linear_0" in text


def test_corners_that_are_aligned_do_not_depend_on_the_scale() -> None:
    check(lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True,
                                  recompute_scale_factor=False), IMAGE)  # fmt: skip
