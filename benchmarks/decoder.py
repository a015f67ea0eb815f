"""A decoder of 125 million parameters with a paged cache, in relax, beside PyTorch with a cache.

usage: python -m benchmarks.decoder [--layers N] [--prompts N ...] [--tokens N] [--threads N] [--repeat N]

Both have the same random weights. A step of either takes turns with one of the other; the first logits
are compared.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any

import numpy as np

WIDTH, HEADS, VOCABULARY, POSITIONS, PAGE = 768, 12, 50257, 1024, 16
DEPTH = WIDTH // HEADS


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    import torch
    from rich.console import Console
    from rich.table import Table

    from benchmarks.timing import shortest

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    theirs = torch_decoder(arguments.layers)
    ours = Relax(theirs.state_dict(), arguments.layers)
    table = Table(
        "prompt", "prefill torch", "prefill relax", "ratio", "torch tokens/s", "relax tokens/s",
        "ratio", "max error", title=f"milliseconds and tokens, {arguments.threads} threads",
    )  # fmt: skip
    for length in arguments.prompts:
        ids = np.random.default_rng(0).integers(0, VOCABULARY, (1, length)).astype("int32")
        engines = {"torch": Torch(theirs), "relax": ours}
        first = {name: engine.prefill(ids) for name, engine in engines.items()}
        error = np.abs(first["torch"] - first["relax"]).max() / np.abs(first["torch"]).max()
        prefill = shortest(
            {name: partial(engine.prefill, ids) for name, engine in engines.items()},
            arguments.repeat,
        )
        decode = shortest({name: e.step for name, e in engines.items()}, arguments.tokens)
        table.add_row(
            str(length),
            *[f"{1e3 * prefill[name]:.1f}" for name in engines],
            f"{prefill['torch'] / prefill['relax']:.2f}",
            *[f"{1 / decode[name]:.1f}" for name in engines],
            f"{decode['torch'] / decode['relax']:.2f}",
            f"{error:.1e}",
        )
    Console().print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--prompts", type=int, nargs="*", default=[32, 256])
    parser.add_argument(
        "--tokens", type=int, default=30, help="rounds of steps, of which the best counts"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=8, help="prefills, of which the best counts")
    return parser.parse_args()


def torch_decoder(layers: int) -> Any:
    """The model of PyTorch: its layers take and extend the cache."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any, cache: Any, at: int, turns: Any) -> Any:
            count = x.shape[1]
            q, k, v = self.qkv(self.ln_1(x)).view(1, count, 3, HEADS, DEPTH).unbind(2)
            q, k = turned(q, turns), turned(k, turns)
            cache[0][:, :, at : at + count] = k.transpose(1, 2)
            cache[1][:, :, at : at + count] = v.transpose(1, 2)
            keys, values = [part[:, :, : at + count] for part in cache]
            mixed = F.scaled_dot_product_attention(
                q.transpose(1, 2), keys, values, is_causal=count > 1
            )
            x = x + self.out(mixed.transpose(1, 2).reshape(1, count, WIDTH))
            return x + self.down(F.gelu(self.up(self.ln_2(x))))

    def turned(x: Any, turns: Any) -> Any:
        a, b = x.chunk(2, -1)
        return torch.cat([a * turns[0] - b * turns[1], b * turns[0] + a * turns[1]], -1)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, ids: Any, caches: Any, at: int, turns: Any) -> Any:
            x = self.embedding(ids)
            for layer, cache in zip(self.layers, caches, strict=True):
                x = layer(x, cache, at, turns)
            return self.head(self.ln(x[:, -1:]))

    return Decoder().eval()


class Torch:
    """One sequence in PyTorch."""

    def __init__(self, model: Any) -> None:
        import torch

        self.model, self.torch, self.at = model, torch, 0
        shape = (1, HEADS, POSITIONS, DEPTH)
        self.caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in model.layers]
        angle = torch.arange(POSITIONS)[:, None] * 1e4 ** (-torch.arange(DEPTH // 2) * 2 / DEPTH)
        self.turns = angle.cos()[:, None], angle.sin()[:, None]

    def prefill(self, ids: np.ndarray) -> Any:
        """The logits behind a prompt."""
        self.at = 0
        return self._run(self.torch.from_numpy(ids)).numpy()

    def step(self) -> None:
        """One more token, the likeliest."""
        self._run(self.token)

    def _run(self, ids: Any) -> Any:
        end = self.at + ids.shape[1]
        with self.torch.inference_mode():
            turns = [part[self.at : end] for part in self.turns]
            logits = self.model(ids, self.caches, self.at, turns)
        self.at = end
        self.token = logits[:, -1].argmax(-1, keepdim=True)
        return logits


class Relax:
    """One sequence in relax."""

    def __init__(self, weights: Any, layers: int) -> None:
        import tvm
        from tvm import relax
        from tvm.relax.frontend.nn import spec
        from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache
        from tvm.runtime import ShapeTuple

        model = relax_decoder(layers)
        model.load_state_dict({name: value.numpy() for name, value in weights.items()})
        cache = spec.Object(PagedKVCache)
        ids = {name: spec.Tensor([1, n], "int32") for name, n in (("prefill", "n"), ("decode", 1))}
        mod, params = model.export_tvm(
            {
                **{name: {"ids": tensor, "cache": cache} for name, tensor in ids.items()},
                "create_cache": {
                    "sequences": int,
                    "tokens": int,
                    "chunk": int,
                    "windows": int,
                    "$": {"param_mode": "none", "effect_mode": "none"},
                },
            }
        )
        values = {name: param.data for name, param in params}
        for name in ids:
            mod = relax.transform.BindParams(name, values)(mod)
        self.machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
        sizes = (1, POSITIONS, POSITIONS, 0)
        self.cache = self.machine["create_cache"](*[ShapeTuple([size]) for size in sizes])
        self.state = {
            name: tvm.get_global_func(f"vm.builtin.kv_state_{name}")
            for name in ("clear", "add_sequence", "begin_forward", "end_forward")
        }
        self.nd, self.shape = tvm.nd, ShapeTuple

    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """The logits behind a prompt."""
        self.state["clear"](self.cache)
        self.state["add_sequence"](self.cache, 0)
        return self._run("prefill", ids)

    def step(self) -> None:
        """One more token, the likeliest."""
        self._run("decode", self.token)

    def _run(self, name: str, ids: np.ndarray) -> np.ndarray:
        self.state["begin_forward"](self.cache, self.shape([0]), self.shape([ids.shape[1]]))
        logits = self.machine[name](self.nd.array(ids), self.cache).numpy()
        self.state["end_forward"](self.cache)
        self.token = logits[:, -1].argmax(-1, keepdims=True).astype("int32")
        return logits


def relax_decoder(layers: int) -> Any:
    """The same model with relax.frontend.nn."""
    import tvm
    from tvm import relax, te
    from tvm.relax.frontend import nn
    from tvm.relax.frontend.nn import op
    from tvm.relax.frontend.nn.llm.kv_cache import RopeMode, TIRPagedKVCache

    class Layer(nn.Module):
        def __init__(self) -> None:
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any, cache: Any, number: int) -> Any:
            b, s, _ = x.shape
            qkv = op.reshape(self.qkv(self.ln_1(x)), (b, s, 3 * HEADS, DEPTH))
            mixed = cache.attention_with_fused_qkv(number, qkv, HEADS)
            x = x + self.out(op.reshape(mixed, (b, s, WIDTH)))
            return x + self.down(op.gelu(self.up(self.ln_2(x))))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def prefill(self, ids: Any, cache: Any) -> Any:
            return self.decode(ids, cache)

        def decode(self, ids: Any, cache: Any) -> Any:
            x = self.embedding(ids)
            for number, layer in enumerate(self.layers):
                x = layer(x, cache, number)
            return self.head(self.ln(last_row(x)))

        def create_cache(self, sequences: Any, tokens: Any, chunk: Any, windows: Any) -> Any:
            return TIRPagedKVCache(
                sequences, tokens, chunk, PAGE, windows, relax.ShapeExpr([0, layers]), layers,
                HEADS, HEADS, RopeMode.NORMAL, DEPTH, 1.0, 1e4, {}, relax.PrimValue(0), DEPTH,
                "float32", tvm.target.Target("llvm"),
            )  # fmt: skip

    def last_row(x: Any) -> Any:
        def compute(rows: te.Tensor) -> te.Tensor:
            length = rows.shape[1]
            return te.compute((1, 1, WIDTH), lambda i, _, k: rows[i, length - 1, k], name="last")

        return op.tensor_expr_op(compute, "last_row", [x])

    return Decoder()


if __name__ == "__main__":
    main()
