"""`tvmc run`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tvm import knobs
from tvm._ffi.runtime_ctypes import Device
from tvm.driver.tvmc.arguments import positive
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.inputs import FILL_MODES, read_inputs
from tvm.driver.tvmc.inputs import generate_tensor_data as generate_tensor_data  # classic places
from tvm.driver.tvmc.inputs import get_input_info as get_input_info
from tvm.driver.tvmc.inputs import make_inputs_dict as make_inputs_dict
from tvm.driver.tvmc.messages import add_quiet_arg, tell
from tvm.driver.tvmc.model import TVMCPackage, TVMCResult
from tvm.driver.tvmc.result_utils import largest
from tvm.driver.tvmc.run_report import RunConditions, run_report, type_text
from tvm.driver.tvmc.sessions import FACTORIES, SESSIONS, Session
from tvm.driver.tvmc.shape_parser import parse_shape_string
from tvm.driver.tvmc.tracker import tracker_host_port_from_cli
from tvm.error import TVMError
from tvm.rpc.client import RPCSession, connect, connect_tracker
from tvm.runtime.device import device as make_device
from tvm.runtime.module import BenchmarkResult, Module, load_module
from tvm.runtime.remote import own_type_key

logger = logging.getLogger("TVMC")

DEVICES = {"cpu": "cpu", "cuda": "cuda", "cl": "opencl", "metal": "metal", "vulkan": "vulkan",
           "rocm": "rocm"}  # fmt: skip


_EPILOG = """examples:
  tvmc run resnet50.tar --inputs image.npz --print-top 5
  tvmc run bert.so --input-shapes "input_ids:[1,128]" --outputs out.npz
  tvmc run resnet50.tar --print-time --repeat 10 --number 5
"""


def add_run_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc run`."""
    parser = subparsers.add_parser(
        "run", help="run a compiled model", usage="tvmc run PATH [options]",
        description="Run what `tvmc compile` wrote, once or many times.", epilog=_EPILOG,
    )  # fmt: skip
    parser.set_defaults(func=drive_run)
    parser.add_argument("PATH", help="the archive or library that `tvmc compile` wrote")
    parser.add_argument(
        "--device",
        choices=list(DEVICES),
        default="cpu",
        metavar="DEVICE",
        help=f"where it runs: {', '.join(DEVICES)} (cpu)",
    )
    parser.add_argument("-i", "--inputs", metavar="NPZ", help="file of numpy with inputs by name")
    parser.add_argument(
        "-o", "--outputs", metavar="NPZ", help="file of numpy to write the outputs to"
    )
    parser.add_argument(
        "--fill-mode", choices=FILL_MODES, default="random", metavar="MODE",
        help="what is not given: zeros, ones, random (random)",
    )  # fmt: skip
    parser.add_argument(
        "--input-shapes", type=parse_shape_string, metavar="SHAPES",
        help='of inputs with open dimensions: "ids:[1,128]"',
    )  # fmt: skip
    parser.add_argument(
        "--print-top", metavar="N", type=positive,
        help="print the largest values of the last axis",
    )  # fmt: skip
    parser.add_argument("--print-time", action="store_true", help="print how long a run takes")
    parser.add_argument("--repeat", metavar="N", type=positive, default=1, help="measurements (1)")
    parser.add_argument(
        "--number", metavar="N", type=positive, default=1, help="runs in each measurement (1)"
    )
    parser.add_argument(
        "--end-to-end", action="store_true", help="measure the copies of inputs and outputs as well"
    )
    parser.add_argument("--profile", action="store_true", help="print the time of each operator")
    parser.add_argument("--wide", action="store_true", help="print all columns of --profile whole")
    add_quiet_arg(parser)
    parser.add_argument("--rpc-tracker", metavar="HOST:PORT", help="run on a machine of a tracker")
    parser.add_argument(
        "--rpc-key", metavar="KEY", help="the kind of machine that the tracker gives"
    )
    set_defaults(parser, json_params)


def drive_run(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    with knobs.QUIET.scope(args.quiet or knobs.QUIET.value):
        return _run_from_arguments(args)


def _run_from_arguments(args: argparse.Namespace) -> int:
    hostname, port = tracker_host_port_from_cli(args.rpc_tracker)
    result = run_module(
        TVMCPackage(args.PATH),
        args.device,
        hostname=hostname,
        port=port or 0,
        rpc_key=args.rpc_key,
        inputs=read_inputs(args.inputs) if args.inputs else None,
        fill_mode=args.fill_mode,
        benchmark=args.print_time,
        repeat=args.repeat,
        number=args.number,
        profile=args.profile,
        wide=args.wide,
        end_to_end=args.end_to_end,
        input_shapes=args.input_shapes,
    )
    assert result.conditions is not None
    tell(run_report(args.PATH, result.conditions, result.outputs))
    if args.print_time:
        print(result.format_times())
    if args.print_top:
        print(largest(result, args.print_top))
    if args.outputs:
        result.save(args.outputs)
        tell(f"  written to {args.outputs}")
    return 0


def run_module(
    tvmc_package: TVMCPackage,
    device: str,
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Any] | str | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
    options: Mapping[str, Any] | None = None,
    input_shapes: Mapping[str, Sequence[Any]] | None = None,
    wide: bool = False,
) -> TVMCResult:
    """Run a compiled model.

    Parameters
    ----------
    tvmc_package : TVMCPackage
        The model.
    device : str
        "cpu", or another device of this machine.
    hostname, port : str and int, optional
        Where an RPC server is, or with ``rpc_key`` a tracker; by default models run on this machine.
    rpc_key : str, optional
        The kind of machine that the tracker gives out.
    options : dict, optional
        Of microcontrollers, which cannot be reached: leave it out.
    inputs : dict of str to array, or str
        Values by name, or the path of a file of numpy with them.
    fill_mode : str
        "zeros", "ones" or "random": the values of other inputs.
    benchmark : bool
        Whether to measure.
    repeat, number : int
        Measurements, and the runs in each.
    profile : bool
        Whether to print the time of each operator.
    end_to_end : bool
        Whether to measure copies of inputs and outputs as well.
    input_shapes : dict of str to list of int
        Shapes of inputs with open dimensions that are not given; by default their open dimensions
        are 1.
    wide : bool
        Whether to print all columns of the times whole.

    Returns
    -------
    TVMCResult
        The outputs as output_0, output_1, ..., and the times.
    """
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException(
            "This model doesn't seem to have been compiled yet. "
            "Try calling tvmc.compile on the model before running it."
        )
    if options:
        raise TVMCException("microcontrollers cannot be reached: leave options out")
    remote = _connected(hostname, int(port), rpc_key)
    given = read_inputs(inputs) if isinstance(inputs, str) else inputs
    if given is not None and not isinstance(given, Mapping):
        raise TVMCException(
            f"inputs are arrays by name, {{'name': array}}, got a {type(given).__name__}"
        )
    session = _open(tvmc_package, _find_device(device, remote), profile, remote)
    try:
        session.set_inputs(given, fill_mode, _checked_shapes(input_shapes, given))
        with knobs.STRICT_INPUTS.scope(True):
            if profile:
                print(session.profile().table(wide=wide))
            times: BenchmarkResult | list[float] = []  # empty: not measured
            if benchmark:
                times = session.measure(repeat, number, end_to_end)
            else:
                session.run()
        outputs = {f"output_{i}": value.numpy() for i, value in enumerate(session.outputs())}
    except (TVMError, ValueError, TypeError) as error:
        raise TVMCException(f"cannot run the model: {error}") from error
    conditions = _conditions(session, device, given or (), fill_mode, len(outputs))
    return TVMCResult(outputs, times, conditions)


def _conditions(
    session: Session, device: str, given: Collection[str], fill_mode: str, outputs: int
) -> RunConditions:
    """What was run, with the model's names of its inputs, and of its outputs if each has one."""
    types = {name: type_text(value) for name, value in session.inputs.items()}
    origins = {name: "given" if name in given else fill_mode for name in types}
    names = session.output_names()
    return RunConditions(
        device, session.kind, types, origins, names if len(names) == outputs else ()
    )


def _checked_shapes(
    shapes: Mapping[str, Sequence[Any]] | None, given: Mapping[str, Any] | None
) -> dict[str, list[int]]:
    for name, shape in (shapes or {}).items():
        if name in (given or ()):
            raise TVMCException(f"the input {name!r} has a value, it takes no shape")
        if not all(isinstance(extent, int) for extent in shape):
            raise TVMCException(f"a run requires numbers as the shape of {name!r}")
    return {name: list(shape) for name, shape in (shapes or {}).items()}


def _connected(hostname: str | None, port: int, rpc_key: str | None) -> RPCSession | None:
    """The machine to run on, None for this one."""
    if not hostname:
        if rpc_key:
            raise TVMCException("--rpc-key requires --rpc-tracker HOST:PORT")
        return None
    try:
        if rpc_key:
            return connect_tracker(hostname, port).request(rpc_key, session_timeout=1000)
        return connect(hostname, port)
    except (TVMError, RuntimeError, OSError) as error:
        raise TVMCException(f"cannot reach a machine at {hostname}:{port}: {error}") from error


def _find_device(name: str, remote: RPCSession | None) -> Device:
    if name not in DEVICES:
        raise TVMCException(f"unknown device {name!r}, devices: {', '.join(DEVICES)}")
    found = remote.device(DEVICES[name]) if remote else make_device(DEVICES[name], 0)
    if not found.exist:
        raise TVMCException(f"the machine has no device {name}, or the runtime cannot use it")
    return found


def _load(package: TVMCPackage, remote: RPCSession | None) -> Module:
    if remote is None:
        return load_module(str(package.lib_path))
    remote.upload(str(package.lib_path))
    return remote.load_module(str(package.lib_name))


def _open(
    package: TVMCPackage, device: Device, profile: bool, remote: RPCSession | None
) -> Session:
    if package.type == "mlf":
        raise TVMCException(
            "You're trying to run a model saved using the Model Library Format (MLF). "
            "MLF can only be used to run micro device; compile with --output-format so."
        )
    try:
        lib = _load(package, remote)
    except (TVMError, RuntimeError, ValueError, OSError) as error:
        raise TVMCException(
            f"cannot load {package.lib_name} of {package.package_path}, was it compiled for "
            f"another machine? {error}"
        ) from error
    kind = FACTORIES.get(own_type_key(lib), package.executor_type)
    if kind is None:
        raise TVMCException(
            f"{package.package_path} holds kernels and no model: `tvmc compile -o model.so`, or "
            "export_library of what relay.build returns, writes models"
        )
    return SESSIONS[kind](package, lib, device, profile)
