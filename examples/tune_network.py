"""Tune the convolutions of a network, and compile it with the fastest records.

usage: python examples/tune_network.py [--layers 18] [--image 224] [--trials 64] [--log network.log]

The classic tutorial as one script: tasks out of a relay program, a tuner for each, one log for all.
Stopped and started again it goes on with what the log has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tvm
from tvm import autotvm, relay
from tvm.contrib import graph_executor
from tvm.relay import testing

parser = argparse.ArgumentParser(description="Tune the convolutions of a ResNet.")
parser.add_argument("--layers", type=int, default=18)
parser.add_argument("--image", type=int, default=224)
parser.add_argument("--trials", type=int, default=64, help="of each task")
parser.add_argument("--tasks", type=int, default=None, help="the first so many only")
parser.add_argument("--target", default="llvm -mcpu=native")
parser.add_argument("--log", default="network.log")
args = parser.parse_args()

shape = (1, 3, args.image, args.image)
mod, params = testing.resnet.get_workload(num_layers=args.layers, image_shape=shape[1:])
data = np.random.rand(*shape).astype("float32")


def compile_and_run():
    """The scores for the input, and the milliseconds of a run."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=args.target, params=params)
    device = tvm.cpu()
    module = graph_executor.GraphModule(lib["default"](device))
    module.run(data=data)
    scores = module.get_output(0).numpy()
    return scores, module.benchmark(device, repeat=5, min_repeat_ms=50).median * 1000


def choose_tuner(task):
    """Boosted trees if there is xgboost, else a genetic search."""
    try:
        return autotvm.tuner.XGBTuner(task, loss_type="rank", feature_type="knob")
    except tvm.TVMError as error:
        print(f"{error}\na genetic search instead")
        return autotvm.tuner.GATuner(task, pop_size=50)


untuned_scores, untuned_ms = compile_and_run()
tasks = autotvm.task.extract_from_program(
    mod["main"], target=args.target, params=params, ops=(relay.op.get("nn.conv2d"),)
)[: args.tasks]
records = list(autotvm.record.load_from_file(args.log)) if Path(args.log).exists() else []
measure_option = autotvm.measure_option(
    builder=autotvm.LocalBuilder(timeout=60),
    runner=autotvm.LocalRunner(number=1, repeat=10, min_repeat_ms=0, timeout=60, enable_cpu_cache_flush=True),
)  # fmt: skip
for number, task in enumerate(tasks, 1):
    tuner = choose_tuner(task)
    left = min(args.trials, len(task.config_space)) - tuner.resume(records)
    if left > 0:
        title = f"[Task {number:2d}/{len(tasks):2d}]"
        tuner.tune(
            n_trial=left,
            early_stopping=max(left // 2, 1),
            measure_option=measure_option,
            callbacks=[
                autotvm.callback.progress_bar(left, prefix=title),
                autotvm.callback.log_to_file(args.log),
            ],
        )

with autotvm.apply_history_best(args.log):
    scores, tuned_ms = compile_and_run()
np.testing.assert_allclose(scores, untuned_scores, rtol=1e-3, atol=1e-5)
print(f"{len(tasks)} tasks, median {untuned_ms:.2f} ms untuned, {tuned_ms:.2f} ms tuned")
