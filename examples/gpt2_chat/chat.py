"""Continue texts with GPT-2, compiled, token by token with a cache of keys and values.

usage: python chat.py --model FOLDER [--tokens 60] [--temperature 0.8]
       python chat.py --random

The folder is a checkpoint of GPT-2 as Hugging Face keeps it (config.json, model.safetensors, tokenizer.json), such
as `git clone https://huggingface.co/openai-community/gpt2` gives. `--random` takes a small model with random weights,
which reads and writes bytes: it says nothing sensible, and shows that everything is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from gpt2 import GPT2, Config, Conversation, build
from rich.console import Console


def main() -> int:
    arguments = parse_arguments()
    console = Console(highlight=False)
    config, weights = random_model() if arguments.random else read_model(arguments.model)
    encode, decode = text_of_bytes() if arguments.random else tokenizer(arguments.model)
    with console.status(f"compiling GPT-2 of {config.n_layer} layers ..."):
        start = time.perf_counter()
        executable = build(config, weights)
    console.print(f"compiled in {time.perf_counter() - start:.1f} s; an empty line ends")
    talk = Conversation(executable, config)
    while prompt := read_line(console):
        ids = encode(prompt)
        if talk.length + len(ids) >= config.n_positions:
            console.print("[the text is as long as the model can see; a new one begins]")
            talk = Conversation(executable, config)
            ids = ids[: config.n_positions // 2]
        count, start = 0, time.perf_counter()
        tokens = talk.continue_with(ids, arguments.tokens, arguments.temperature, talk.length)
        for piece in pieces(tokens, decode):
            console.print(piece, end="", markup=False)
            count += 1
        seconds = time.perf_counter() - start
        console.print(f"\n[{count} tokens, {count / seconds:.0f} a second]", markup=False)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", type=Path, help="folder of a checkpoint of GPT-2")
    model.add_argument("--random", action="store_true", help="a small model with random weights")
    parser.add_argument("--tokens", type=int, default=60, help="the most tokens of an answer")
    parser.add_argument("--temperature", type=float, default=0.8, help="0 takes the likeliest")
    return parser.parse_args()


def read_line(console: Console) -> str:
    """What the user types, empty at the end."""
    try:
        return console.input("> ")
    except EOFError:
        return ""


def pieces(tokens: Iterable[int], decode: Callable[[list[int]], str]) -> Iterator[str]:
    """The text that each token adds; of the several tokens of one character, the last adds it."""
    seen: list[int] = []
    shown = 0
    for token in tokens:
        seen.append(token)
        text = decode(seen)
        whole = text.rstrip("\N{REPLACEMENT CHARACTER}")
        yield whole[shown:]
        shown = max(shown, len(whole))


def random_model() -> tuple[Config, dict[str, np.ndarray]]:
    """Four layers that know the 256 bytes."""
    config = Config(vocab_size=256, n_positions=512, n_embd=128, n_layer=4, n_head=4)
    draw = np.random.default_rng(0).standard_normal
    shapes = {name: param.shape for name, param in GPT2(config).named_parameters()}
    return config, {name: 0.1 * draw(shape, "float32") for name, shape in shapes.items()}


def read_model(folder: Path) -> tuple[Config, dict[str, np.ndarray]]:
    """Sizes and weights of a checkpoint."""
    from safetensors.numpy import load_file

    found = json.loads((folder / "config.json").read_text())
    config = Config(**{name: found[name] for name in Config.__dataclass_fields__ if name in found})
    return config, weights_of(load_file(folder / "model.safetensors"))


def weights_of(checkpoint: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A checkpoint's arrays under the names of `gpt2.GPT2`; its layers store (inputs, outputs)."""
    weights = {}
    for name, value in checkpoint.items():
        path = name.removeprefix("transformer.").split(".")
        if path[0] == "lm_head" or path[-1] in ("masked_bias",) or path[-2:] == ["attn", "bias"]:
            continue  # the table of tokens once more; masks
        if path[0] == "h" and path[2] in ("attn", "mlp"):
            layer = "c_out" if path[2:4] == ["mlp", "c_proj"] else path[3]
            path = [*path[:2], layer, path[4]]
            value = np.ascontiguousarray(value.T) if path[-1] == "weight" else value
        weights[".".join(path)] = value.astype("float32")
    return weights


def tokenizer(folder: Path) -> tuple[Callable[[str], list[int]], Callable[[list[int]], str]]:
    """Text to tokens, and back."""
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: found.encode(text).ids, found.decode


def text_of_bytes() -> tuple[Callable[[str], list[int]], Callable[[list[int]], str]]:
    """Text to bytes, and back."""
    return lambda text: list(text.encode()), lambda ids: bytes(ids).decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
