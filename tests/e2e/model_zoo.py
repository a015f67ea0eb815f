"""Many architectures, small and with random weights, through the PyTorch importers.

    python -m tests.e2e.model_zoo [NAME ...] [--exported] [--list]
    python -m tests.e2e.model_zoo --log zoo.jsonl --table docs/pytorch_models.md

A log keeps what was found, so that parts of the zoo can run one after the other; the table is of
all that the log has.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import tvm
from benchmarks.networks import Example, FirstOutput
from benchmarks.zoo import calibrate, input_infos, trace
from tests.e2e.composed_models import COMPOSED_MODELS
from tests.e2e.further_transformers import FURTHER_TRANSFORMERS
from tests.e2e.generative_networks import GENERATIVE_NETWORKS
from tests.e2e.image_networks import IMAGE_DETECTORS, IMAGE_NETWORKS
from tests.e2e.sequence_networks import SEQUENCE_NETWORKS
from tests.e2e.small_models import SMALL_MODELS
from tests.e2e.structured_networks import STRUCTURED_NETWORKS
from tests.e2e.transformer_sizes import IMAGE, KEYS, TEXT
from tests.e2e.transformers_zoo import TRANSFORMERS
from tests.e2e.vision_zoo import DETECTORS, VISION
from tests.e2e.zoo_table import Outcome, read_log, write_table
from tests.executors import outputs_of
from tvm import relay
from tvm.contrib import graph_executor

RELATIVE = 1e-4
WIDEST = 1e-2  # limit for models that magnify rounding
VANISHING = 1e-6
SECONDS_EACH = 240


# architecture: name of the class of its configuration, options, kind of input
_TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("Bert", TEXT, "ids"),
    "roberta": ("Roberta", TEXT, "ids"),
    "electra": ("Electra", {**TEXT, "embedding_size": 16}, "ids"),
    "albert": ("Albert", {**TEXT, "embedding_size": 16}, "ids"),
    "mpnet": ("MPNet", TEXT, "ids"),
    "distilbert": (
        "DistilBert", {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
        "ids",
    ),
    "gpt2": ("GPT2", {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}, "ids"),
    "gpt_neox": ("GPTNeoX", TEXT, "ids"),
    "llama": ("Llama", KEYS, "ids"),
    "mistral": ("Mistral", KEYS, "ids"),
    "qwen2": ("Qwen2", KEYS, "ids"),
    "gemma": ("Gemma", KEYS, "ids"),
    "phi": ("Phi", {**TEXT, "pad_token_id": 0}, "ids"),
    "opt": ("OPT", {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32}, "ids"),
    "bloom": ("Bloom", {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "ids"),
    "bart": ("Bart", {
        "vocab_size": 100, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    }, "ids"),
    "vit": ("ViT", IMAGE, "image"),
    "deit": ("DeiT", IMAGE, "image"),
    "dinov2": ("Dinov2", IMAGE, "image"),
    "clip_text": ("CLIPText", TEXT, "ids"),
}  # fmt: skip


def _transformer(prefix: str, options: dict[str, Any], kind: str) -> Callable[[], Example]:
    def make() -> Example:
        import transformers

        config = getattr(transformers, f"{prefix}Config")(**options)
        config.use_cache = False
        config.return_dict = True
        model = getattr(transformers, f"{prefix}Model")(config)
        data = torch.randint(3, 99, (1, 12)) if kind == "ids" else torch.randn(1, 3, 32, 32)
        return FirstOutput(model, "last_hidden_state"), (data,)

    return make


MODELS: dict[str, Callable[[], Example]] = {
    **VISION,
    **DETECTORS,
    **TRANSFORMERS,
    **FURTHER_TRANSFORMERS,
    **{name: _transformer(*spec) for name, spec in _TRANSFORMERS.items()},
    **SMALL_MODELS,
    **COMPOSED_MODELS,
    **IMAGE_NETWORKS,
    **IMAGE_DETECTORS,
    **GENERATIVE_NETWORKS,
    **SEQUENCE_NETWORKS,
    **STRUCTURED_NETWORKS,
}


def build(name: str) -> Example:
    """A model in evaluation mode and its inputs, the same at each call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    for parameter in model.parameters():  # a head that starts at zero would check nothing
        if parameter.dim() > 1 and not parameter.any():
            nn.init.normal_(parameter, std=0.02)
    if all(x.is_floating_point() and x.dim() > 3 for x in inputs):
        calibrate(model, inputs)  # images or films
    return model.eval(), inputs


def difference(name: str, exported: bool = False) -> float:
    """How far the compiled model's outputs are from PyTorch's, relative to the largest."""
    model, inputs = build(name)
    with torch.no_grad():
        expected = model(*inputs)
    mod, params = _imported(model, inputs, exported)
    is_open = "?" in relay.transform.InferType()(mod).astext(show_meta_data=False)
    run = _on_virtual_machine if is_open else _on_graph_executor
    found = run(mod, params, [tensor.numpy() for tensor in inputs])
    wanted = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    if all(tensor.numel() and tensor.abs().max() < VANISHING for tensor in wanted):
        raise RuntimeError("the outputs vanish: nothing would be compared")
    return max(
        relative_difference(ours, tensor.numpy())
        for ours, tensor in zip(found, wanted, strict=True)
    )


def _on_graph_executor(mod: Any, params: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    used = module.get_input_info()[0]
    names = [v.name_hint for v in mod["main"].params if v.name_hint not in params]
    for input_name, array in zip(names, arrays, strict=True):
        if input_name in used:
            module.set_input(input_name, array)
    module.run()
    return outputs_of(module)


def _on_virtual_machine(mod: Any, params: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(mod, target="llvm", params=params)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    result = machine.invoke("main", *[tvm.nd.array(array) for array in arrays])
    return [result.numpy()] if hasattr(result, "numpy") else [field.numpy() for field in result]


def allowed(name: str, worst: float) -> float:
    """How far outputs may be off: where a model magnifies its own rounding, eight times that.

    Both sides round, and Winograd's convolutions more than plain ones.
    """
    if worst <= RELATIVE:
        return RELATIVE
    model, inputs = build(name)
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        narrow, exact = model(*inputs), model.double()(*wide)
    pairs = (
        [(narrow, exact)] if isinstance(narrow, torch.Tensor) else zip(narrow, exact, strict=True)
    )
    own = max(relative_difference(a.double().numpy(), b.double().numpy()) for a, b in pairs)
    return max(RELATIVE, min(8 * own, WIDEST)) if np.isfinite(own) else RELATIVE


def _imported(model: nn.Module, inputs: tuple[torch.Tensor, ...], exported: bool) -> Any:
    if exported:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return relay.frontend.from_exported_program(torch.export.export(model, inputs))
    try:
        script = trace(model, inputs)
    except Exception as error:
        raise RuntimeError(f"torch cannot trace it: {error}") from error
    return relay.frontend.from_pytorch(script, input_infos(inputs))


def relative_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    scale = max(float(np.abs(expected).max(initial=0)), 1e-6)
    return float(np.abs(actual.astype("float64") - expected).max(initial=0)) / scale


def examine(name: str, exported: bool) -> Outcome:
    """One architecture by one importer."""
    start = time.perf_counter()
    worst, limit, reason = float("inf"), RELATIVE, ""
    signal.alarm(SECONDS_EACH)
    try:
        worst = difference(name, exported)
        limit = allowed(name, worst)
    except Exception as error:
        reason = (str(error).splitlines() or [repr(error)])[0][:200]
    signal.alarm(0)
    seconds = time.perf_counter() - start
    return Outcome(name, "exported" if exported else "traced", worst, limit, seconds, reason)


def main(arguments: Sequence[str]) -> int:
    """Command line: which models; the status is the number of those that differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="models, all by default")
    parser.add_argument("--exported", action="store_true", help="through torch.export")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--log", type=Path, help="file to append what is found to")
    parser.add_argument("--missing", action="store_true", help="only what the log lacks")
    parser.add_argument("--table", type=Path, help="page to write from the log, without running")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(MODELS))
        return 0
    known = read_log(options.log)
    if options.table:
        write_table(options.table, known)
        return 0
    way = "exported" if options.exported else "traced"
    names = options.names or [n for n in MODELS if not options.exported or n not in DETECTORS]
    failed = 0
    for name in names:
        if options.missing and (name, way) in known:
            continue
        outcome = examine(name, options.exported)
        failed += not outcome.agrees
        print(outcome.line(), flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(outcome.as_json() + "\n")
    return failed


def print_differences(
    names: Iterable[str],
    difference: Callable[[str], float],
    limit: Callable[[str, float], float] = lambda name, worst: RELATIVE,
) -> int:
    """A line for each model, how far its outputs are off; how many of them by more than the limit."""
    failed = 0
    for name in names:
        start = time.perf_counter()
        signal.alarm(SECONDS_EACH)
        most = RELATIVE
        try:
            worst = difference(name)
            most = limit(name, worst)
            text = f"{worst:.1e}" + (f" of {most:.1e}" if most > RELATIVE else "")
        except Exception as error:
            worst, text = float("inf"), (str(error).splitlines() or [repr(error)])[0][:300]
        signal.alarm(0)
        failed += not worst <= most
        verdict = "ok  " if worst <= most else "FAIL"
        print(f"{verdict} {name:30} {time.perf_counter() - start:6.1f} s  {text}", flush=True)
    return failed


def stop(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS_EACH} s")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, stop)
    sys.exit(main(sys.argv[1:]))
