"""GPT-2 with a paged cache of keys and values, written with relax.frontend.nn, and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm
from tvm import relax, te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache
from tvm.runtime import ShapeTuple

PAGE = 16  # tokens
SEQUENCE = 0  # the number of the one conversation


@dataclass(frozen=True)
class Config:
    """Sizes of a model, named as in the config.json of a checkpoint."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    layer_norm_epsilon: float = 1e-5

    @property
    def depth(self) -> int:
        """Of a head."""
        return self.n_embd // self.n_head


class Block(nn.Module):
    """A layer."""

    def __init__(self, config: Config) -> None:
        self.config, width = config, config.n_embd
        self.ln_1 = nn.LayerNorm(width, eps=config.layer_norm_epsilon)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width, eps=config.layer_norm_epsilon)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_out = nn.Linear(4 * width, width)

    def forward(self, x: nn.Tensor, cache: PagedKVCache, number: int) -> nn.Tensor:
        heads, depth = self.config.n_head, self.config.depth
        batch, length, width = x.shape
        qkv = op.reshape(self.c_attn(self.ln_1(x)), (batch, length, 3 * heads, depth))
        mixed = cache.attention_with_fused_qkv(number, qkv, heads)
        x = x + self.c_proj(op.reshape(mixed, (batch, length, width)))
        return x + self.c_out(op.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """The model: `prefill` reads a text, `decode` one token more; both give the logits behind the last."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)

    def prefill(self, ids: nn.Tensor, cache: PagedKVCache) -> nn.Tensor:
        length = ids.shape[1]
        positions = op.reshape(cache.get_query_positions(length), (1, length))
        x = self.wte(ids) + self.wpe(positions)
        for number, block in enumerate(self.h):
            x = block(x, cache, number)
        return op.matmul(self.ln_f(last_row(x)), op.permute_dims(self.wte.weight))

    def decode(self, ids: nn.Tensor, cache: PagedKVCache) -> nn.Tensor:
        return self.prefill(ids, cache)

    def create_cache(self, sequences: Any, tokens: Any, chunk: Any, windows: Any) -> PagedKVCache:
        c = self.config
        return TIRPagedKVCache(
            sequences, tokens, chunk, PAGE, windows, relax.ShapeExpr([0, c.n_layer]), c.n_layer,
            c.n_head, c.n_head, RopeMode.NONE, c.depth, 1.0, 1e4, {}, relax.PrimValue(0), c.depth,
            "float32", tvm.target.Target("llvm"),
        )  # fmt: skip


def last_row(x: nn.Tensor) -> nn.Tensor:
    """The vector of the last token."""

    def compute(rows: te.Tensor) -> te.Tensor:
        _, length, width = rows.shape
        return te.compute((1, 1, width), lambda i, _, k: rows[i, length - 1, k], name="last_row")

    return op.tensor_expr_op(compute, "last_row", [x])


def build(config: Config, weights: dict[str, np.ndarray]) -> relax.VMExecutable:
    """The compiled model, its weights within."""
    model = GPT2(config)
    model.load_state_dict(weights)
    cache = spec.Object(PagedKVCache)
    sizes = dict.fromkeys(("sequences", "tokens", "chunk", "windows"), int)
    mod, params = model.export_tvm(
        {
            "prefill": {"ids": spec.Tensor([1, "n"], "int32"), "cache": cache},
            "decode": {"ids": spec.Tensor([1, 1], "int32"), "cache": cache},
            "create_cache": {**sizes, "$": {"param_mode": "none", "effect_mode": "none"}},
        }
    )
    values = {name: param.data for name, param in params}
    for name in ("prefill", "decode"):
        mod = relax.transform.BindParams(name, values)(mod)
    return relax.build(mod, "llvm")


class Conversation:
    """One text that grows: what was read stays in the cache and is not read again.

    Parameters
    ----------
    executable : relax.VMExecutable
        Of `build`.
    config : Config
        Its sizes.
    """

    def __init__(self, executable: relax.VMExecutable, config: Config) -> None:
        self.config, self.length = config, 0
        self._machine = relax.VirtualMachine(executable, tvm.cpu())
        sizes = (1, config.n_positions, config.n_positions, 0)
        self._cache = self._machine["create_cache"](*[ShapeTuple([size]) for size in sizes])
        self._state("add_sequence", SEQUENCE)

    def read(self, ids: list[int]) -> np.ndarray:
        """The logits behind tokens that are added to the text."""
        if not ids or self.length + len(ids) > self.config.n_positions:
            room = self.config.n_positions - self.length
            raise ValueError(f"between 1 and {room} tokens required, got {len(ids)}")
        self._state("begin_forward", ShapeTuple([SEQUENCE]), ShapeTuple([len(ids)]))
        run = self._machine["decode" if len(ids) == 1 else "prefill"]
        logits = run(tvm.nd.array(np.array([ids], "int32")), self._cache).numpy()
        self._state("end_forward")
        self.length += len(ids)
        return logits[0, -1]

    def continue_with(
        self, ids: list[int], count: int, temperature: float = 0.0, seed: int = 0
    ) -> Iterator[int]:
        """Up to `count` tokens that follow the text and `ids`: the likeliest, or drawn if it is warmer."""
        generator = np.random.default_rng(seed)
        for _ in range(min(count, self.config.n_positions - self.length - len(ids) + 1)):
            token = draw(self.read(ids), temperature, generator)
            yield token
            ids = [token]

    def _state(self, name: str, *arguments: Any) -> None:
        tvm.get_global_func(f"vm.builtin.kv_state_{name}")(self._cache, *arguments)


def draw(logits: np.ndarray, temperature: float, generator: np.random.Generator) -> int:
    """A token, by its probability at a temperature; at 0 the likeliest."""
    if temperature == 0:
        return int(logits.argmax())
    scaled = (logits - logits.max()) / temperature
    likely = np.exp(scaled.astype("float64"))
    return int(generator.choice(len(likely), p=likely / likely.sum()))
