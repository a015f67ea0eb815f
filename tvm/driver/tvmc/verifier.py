"""`tvmc verify`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm.driver.tvmc import frontends, inputs, pass_list
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.pass_config import parse_configs
from tvm.driver.tvmc.shape_parser import parse_shape_string
from tvm.driver.tvmc.target import generate_target_args, reconstruct_target_args, target_from_cli
from tvm.relay.progress import progress

_REFERENCES = ("onnxruntime", "reference", "opt0")
_DIFFERENT = 2
_DESCRIPTION = """\
Compile an ONNX model, run it and a reference with the same inputs, and compare every tensor.
If they differ, the first tensor that does is named, the nodes that show it are written as a model
of their own, and the graph passes and kernels are searched for the one that is to blame.
The status is 0 if all agree and 2 if not."""


_EPILOG = """examples:
  tvmc verify resnet50.onnx
  tvmc verify bert.onnx --input-shapes "input_ids:[1,128]" --print-all
  tvmc verify resnet50.onnx --against opt0 --inputs image.npz --rtol 1e-4
"""


def add_verify_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc verify`."""
    parser = subparsers.add_parser(
        "verify", help="compare a compiled model with a reference, tensor by tensor",
        usage="tvmc verify FILE [options]", description=_DESCRIPTION,
        common=(
            "FILE", "against", "inputs", "input_shapes", "output", "rtol", "atol", "opt_level",
            "print_all",
        ), epilog=_EPILOG,
    )  # fmt: skip
    parser.set_defaults(func=drive_verify)
    parser.add_argument("FILE", help="path to the ONNX model")
    parser.add_argument(
        "--against", choices=_REFERENCES, default="onnxruntime",
        help="ONNX Runtime, ONNX's reference in numpy, or our own code without optimisation",
    )  # fmt: skip
    parser.add_argument("-i", "--inputs", metavar="NPZ", help="inputs by name; others are random")
    parser.add_argument(
        "--input-shapes", type=parse_shape_string, metavar="SHAPES",
        help='shapes of random inputs, "input1:[1,3,224,224] input2:[1,16]"',
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (0)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="folder for the reproducer (FILE with the suffix .verify)",
    )
    parser.add_argument("--rtol", type=float, help="allowed error as a share of each element")
    parser.add_argument("--atol", type=float, help="and as a share of the tensor's largest element")
    frontends.add_fallback_arg(parser)
    parser.add_argument("--print-all", action="store_true", help="print the error of every tensor")
    pass_list.add_pass_args(parser)
    generate_target_args(parser)
    set_defaults(parser, json_params)


# what ONNX models are made from
_SOURCES = {
    "pt": "torch.onnx.export(model, inputs, 'model.onnx')",
    "tar": "the model that was compiled",
    "so": "the model that was compiled",
}
_SOURCES |= dict.fromkeys(("pth", "pt2", "zip"), _SOURCES["pt"])


def _check_format(path: str) -> None:
    suffix = Path(path).suffix.removeprefix(".").lower()
    if hint := _SOURCES.get(suffix):
        raise TVMCException(f"verify takes ONNX models, {path} is none: give it {hint}")


def drive_verify(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    frontends.lazy_import("onnx")
    _check_format(args.FILE)
    frontends.check_file(args.FILE)
    target, codegens = target_from_cli(args.target, reconstruct_target_args(args))
    if codegens:
        raise TVMCException("verify compiles for one target, without other code generators")
    context = {"config": parse_configs(args.pass_config), "disabled_pass": args.disabled_pass}
    with progress() as step:
        report = frontends.lazy_import("tvm.verify").verify(
            args.FILE,
            inputs.read_inputs(args.inputs) if args.inputs else None,
            args.against,
            args.input_shapes,
            target,
            args.opt_level,
            args.rtol,
            args.atol,
            args.seed,
            context=context,
            folder=args.output or Path(args.FILE).with_suffix(".verify"),
            tell=step,
            fallback=args.fallback,
        )
    if args.print_all:
        print(report.table())
    print(report)
    return 0 if report.passed else _DIFFERENT
