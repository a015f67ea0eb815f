"""`tvmc explain`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm.driver.tvmc import frontends, inputs, pass_list
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.messages import add_quiet_arg
from tvm.driver.tvmc.pass_config import parse_configs
from tvm.driver.tvmc.target import generate_target_args, reconstruct_target_args, target_from_cli
from tvm.driver.tvmc.tuning_records import check_records, context_of
from tvm.ir import transform
from tvm.relay.progress import progress
from tvm.support.files import write_text

_FORMATS = (".html", ".json")
_DESCRIPTION = """\
Compile a model, run it, and write one page that explains both: the graph before and after, each
kernel from te to assembly with its time and its roof, memory, passes. It needs no network."""
_EPILOG = """examples:
  tvmc explain resnet50.onnx                           # writes resnet50.html
  tvmc explain bert.onnx --input-shapes "input_ids:[1,128]" -o bert.html
  tvmc explain resnet50.onnx --tuning-records records.log -o tuned.html
  tvmc explain resnet50.onnx -o resnet50.json          # the same as data
"""


def add_explain_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc explain`."""
    parser = subparsers.add_parser(
        "explain", help="write a page that explains a model, its kernels and its build",
        usage="tvmc explain FILE [options]", description=_DESCRIPTION,
        common=(
            "FILE", "output", "target", "input_shapes", "inputs", "tuning_records", "repeat",
            "detailed", "opt_level", "quiet",
        ), epilog=_EPILOG,
    )  # fmt: skip
    parser.set_defaults(func=drive_explain)
    frontends.add_model_args(parser)
    parser.add_argument(
        "-o", "--output", metavar="PAGE", help="report.html, or report.json for the data alone (FILE.html)"
    )  # fmt: skip
    parser.add_argument("-i", "--inputs", metavar="NPZ", help="inputs by name; others are random")
    parser.add_argument(
        "--tuning-records", metavar="PATH", default="", help="records that `tvmc tune` wrote"
    )
    parser.add_argument(
        "--repeat", type=_count, default=3, metavar="N",
        help="measured runs, of which the shortest times are shown; 0 measures nothing (3)",
    )  # fmt: skip
    parser.add_argument(
        "--detailed", type=_count, default=4, metavar="N",
        help="slowest kernels to show what each pass on loops did to (4)",
    )  # fmt: skip
    pass_list.add_pass_args(parser)
    add_quiet_arg(parser)
    generate_target_args(parser)
    set_defaults(parser, json_params)


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"a number of at least 0 is required, got {text}")
    return int(text)


def drive_explain(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    output = Path(args.output or Path(args.FILE).with_suffix(".html").name)
    if output.suffix not in _FORMATS:
        raise TVMCException(f"explain writes {' or '.join(_FORMATS)}, got --output {output}")
    target, codegens = target_from_cli(args.target or "llvm", reconstruct_target_args(args))
    if codegens:
        raise TVMCException("explain compiles for one target, without other code generators")
    config = parse_configs(args.pass_config)
    records = nullcontext()
    if args.tuning_records:
        check_records(args.tuning_records)
        records = context_of(args.tuning_records, config)
    explain = frontends.lazy_import("tvm.contrib.explain")
    given = inputs.read_inputs(args.inputs) if args.inputs else None
    context = transform.PassContext(
        opt_level=args.opt_level, disabled_pass=args.disabled_pass or None, config=config
    )
    with knobs.QUIET.scope(args.quiet or knobs.QUIET.value), progress() as step:
        step(f"importing {Path(args.FILE).name}")
        model = frontends.load_from_arguments(args)
        step(f"explaining {Path(args.FILE).name}")
        with context, records:
            report = explain.explain(
                model.mod, model.params, target, name=Path(args.FILE).stem, inputs=given,
                repeat=args.repeat, detailed=args.detailed,
            )  # fmt: skip
        write_text(output, explain.page(report) if output.suffix == ".html" else report.to_json())
    if not args.quiet:
        print(_summary(report, output))
    return 0


def _summary(report: Any, output: Path) -> str:
    """One line on what the report tells."""
    calls = sum([kernel.calls for kernel in report.kernels])
    took = f"{report.seconds * 1e3:.2f} ms in " if report.seconds else ""
    return f"{output}: {took}{calls} calls of {len(report.kernels)} kernels, {output.stat().st_size / 1e6:.1f} MB"
