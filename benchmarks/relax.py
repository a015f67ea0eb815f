"""Relax beside relay: networks whose batch, sequence or image size is symbolic, in both virtual machines.

usage: python -m benchmarks.relax [--models NAME ...] [--threads N] [--repeat N]

Each model is written twice with the same weights: for PyTorch, which relay imports, and with
relax.frontend.nn. Build seconds are of a cold cache if TVM_CACHE_DIR names an empty folder.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    from benchmarks.relax_models import MODELS

    table = Table(
        "model", "sizes", "relay", "relax", "relax/relay", "max error",
        title=f"milliseconds, {arguments.threads} threads",
    )  # fmt: skip
    console = Console()
    for name in arguments.models or MODELS:
        model = MODELS[name]()
        relay_run, relay_seconds = timed(relay_machine, model)
        relax_run, relax_seconds = timed(relax_machine, model)
        console.print(
            f"{name}: built by relay in {relay_seconds:.1f} s, by relax in {relax_seconds:.1f} s "
            f"({relax_seconds / relay_seconds:.2f})"
        )
        for sizes in model.sizes:
            table.add_row(name, *row(model, sizes, relay_run, relax_run, arguments.repeat))
    console.print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="default: all")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--repeat", type=int, default=10, help="rounds, of which the best run counts"
    )
    return parser.parse_args()


def timed(function: Any, *args: Any) -> tuple[Any, float]:
    """A result, and the seconds that it took."""
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def relay_machine(model: Any) -> Any:
    """Relay's virtual machine with the model, called with arrays."""
    import torch

    import tvm
    from tvm import relay
    from tvm.runtime.vm import VirtualMachine

    shapes = [
        (f"x{i}", (tuple([relay.Any() if isinstance(d, str) else d for d in shape]), dtype))
        for i, (shape, dtype) in enumerate(model.inputs)
    ]
    with torch.no_grad():
        traced = torch.jit.trace(model.torch, tuple(map(torch.from_numpy, model.data(0))))
    mod, params = relay.frontend.from_pytorch(traced, shapes)
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    return lambda *args: machine.invoke("main", *args)


def relax_machine(model: Any) -> Any:
    """Relax's virtual machine with the same."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.nn import spec

    ours = model.nn
    ours.load_state_dict({k: v.numpy() for k, v in model.torch.state_dict().items()})
    specs = {f"x{i}": spec.Tensor(list(s), d) for i, (s, d) in enumerate(model.inputs)}
    mod, params = ours.export_tvm({"forward": specs})
    mod = relax.transform.BindParams("forward", {k: v.data for k, v in params})(mod)
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["forward"]


def row(model: Any, index: Any, relay_run: Any, relax_run: Any, repeat: int) -> list[str]:
    """Times of both, their ratio, and how far their results are apart."""
    import tvm
    from benchmarks.timing import shortest

    data = [tvm.nd.array(x) for x in model.data(index)]
    wanted, found = relay_run(*data).numpy(), relax_run(*data).numpy()
    functions = {"relay": lambda: relay_run(*data), "relax": lambda: relax_run(*data)}
    times = shortest(functions, repeat)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    milliseconds = [f"{1e3 * seconds:.2f}" for seconds in times.values()]
    return [str(index), *milliseconds, f"{times['relax'] / times['relay']:.2f}", f"{error:.1e}"]


if __name__ == "__main__":
    main()
