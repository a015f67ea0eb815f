"""`tvmc run`."""

from __future__ import annotations

import argparse
import json
import logging
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.driver.tvmc.arguments import positive
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException, near_or_all
from tvm.driver.tvmc.model import TVMCPackage, TVMCResult
from tvm.driver.tvmc.result_utils import get_top_results
from tvm.error import TVMError
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.device import device as make_device
from tvm.runtime.executor.aot_executor import AotModule
from tvm.runtime.module import Module, load_module
from tvm.runtime.ndarray import NDArray, array
from tvm.runtime.params import load_param_dict
from tvm.runtime.profiler_vm import VirtualMachineProfiler
from tvm.runtime.vm import Executable, VirtualMachine
from tvm.support.dtype import dtype as as_dtype

logger = logging.getLogger("TVMC")

Arrays = dict[str, np.ndarray[Any, Any]]

DEVICES = {"cpu": "cpu", "cuda": "cuda", "cl": "opencl", "metal": "metal", "vulkan": "vulkan",
           "rocm": "rocm"}  # fmt: skip
FILL_MODES = ("zeros", "ones", "random")


def add_run_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc run`."""
    parser = subparsers.add_parser(
        "run", help="run a compiled model", usage="tvmc run PATH [options]",
        description="Run what `tvmc compile` wrote, once or many times.",
    )  # fmt: skip
    parser.set_defaults(func=drive_run)
    parser.add_argument("PATH", help="the archive that `tvmc compile` wrote")
    parser.add_argument(
        "--device", choices=list(DEVICES), default="cpu", help="where it runs (cpu)"
    )
    parser.add_argument("-i", "--inputs", help="the inputs by name: a file of numpy (.npz)")
    parser.add_argument(
        "-o", "--outputs", help="where to write the outputs: a file of numpy (.npz)"
    )
    parser.add_argument(
        "--fill-mode", choices=FILL_MODES, default="random",
        help="values of inputs that are not given (random)",
    )  # fmt: skip
    parser.add_argument(
        "--print-top",
        metavar="N",
        type=positive,
        help="print the N largest values and their places",
    )
    parser.add_argument("--print-time", action="store_true", help="print how long a run takes")
    parser.add_argument("--repeat", metavar="N", type=positive, default=1, help="measurements (1)")
    parser.add_argument(
        "--number", metavar="N", type=positive, default=1, help="runs in each measurement (1)"
    )
    parser.add_argument(
        "--end-to-end", action="store_true", help="measure the copies of inputs and outputs as well"
    )
    parser.add_argument("--profile", action="store_true", help="print the time of each operator")
    for flag in ("--rpc-key", "--rpc-tracker"):
        parser.add_argument(flag, help=argparse.SUPPRESS)
    set_defaults(parser, json_params)


def drive_run(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    if args.rpc_key or args.rpc_tracker:
        raise TVMCException(
            "models run on this machine only: leave --rpc-key and --rpc-tracker out"
        )
    result = run_module(
        TVMCPackage(args.PATH),
        args.device,
        inputs=read_inputs(args.inputs) if args.inputs else None,
        fill_mode=args.fill_mode,
        benchmark=args.print_time,
        repeat=args.repeat,
        number=args.number,
        profile=args.profile,
        end_to_end=args.end_to_end,
    )
    if args.print_time:
        print(result.format_times())
    if args.print_top:
        print(get_top_results(result, args.print_top))
    if args.outputs:
        result.save(args.outputs)
    return 0


def read_inputs(path: str) -> Arrays:
    """The arrays of a file of numpy, by name."""
    if not Path(path).is_file():
        raise TVMCException(f"--inputs requires a file of numpy, there is no {path}")
    try:
        found = np.load(path)
    except (ValueError, BadZipFile, EOFError, OSError, TypeError):
        raise TVMCException(
            f"--inputs requires a file of numpy (.npz), {path} is none: "
            "np.savez(path, name=array) writes them"
        ) from None
    if not isinstance(found, np.lib.npyio.NpzFile):
        raise TVMCException(
            f"--inputs requires arrays with names, {path} holds one array: "
            "np.savez(path, name=array) writes them"
        )
    with found:
        return {name: _array(found, name, path) for name in found}


def _array(file: Any, name: str, path: str) -> np.ndarray[Any, Any]:
    try:
        return file[name]  # type: ignore[no-any-return]
    except (ValueError, BadZipFile, EOFError, OSError, TypeError, zlib.error) as error:
        raise TVMCException(
            f"--inputs requires plain arrays, {name!r} of {path} cannot be read: "
            f"{str(error).partition(' (object)')[0]}"
        ) from None


def get_input_info(
    graph_str: str, params: bytes | bytearray
) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Shapes and dtypes of a graph's inputs that are not parameters, by name."""
    graph = json.loads(graph_str)
    given = set(load_param_dict(params)) if params else set()
    shapes, dtypes = {}, {}
    for node_id in graph["arg_nodes"]:
        name = graph["nodes"][node_id]["name"]
        if name not in given:
            entry = graph["node_row_ptr"][node_id]
            shapes[name] = graph["attrs"]["shape"][1][entry]
            dtypes[name] = graph["attrs"]["dltype"][1][entry]
    return shapes, dtypes


def generate_tensor_data(shape: Sequence[int], dtype: str, fill_mode: str) -> np.ndarray[Any, Any]:
    """An array of zeros, ones or random numbers, the same ones each time.

    Random integers are small, so that they are places in most tables of embeddings; random floats
    lie between 0 and 1.
    """
    found = as_dtype(dtype).numpy
    if fill_mode in ("zeros", "ones"):
        return np.full(shape, fill_mode == "ones", found)
    if fill_mode != "random":
        raise TVMCException(f"unknown fill-mode: {fill_mode}, use {', '.join(FILL_MODES)}")
    random = np.random.default_rng(0)
    if found.kind in "iu":
        return random.integers(0, 128, shape).astype(found)
    if found.kind == "b":
        return random.integers(0, 2, shape).astype(found)
    return random.uniform(0, 1, shape).astype(found)


def make_inputs_dict(
    shape_dict: Mapping[str, Sequence[int]],
    dtype_dict: Mapping[str, str],
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
) -> Arrays:
    """All inputs: the given ones, and others as ``fill_mode`` says.

    Raises
    ------
    TVMCException
        If an input has another shape, or a type that cannot become the input's.
    """
    given = dict(inputs or {})
    if unknown := [name for name in given if name not in shape_dict]:
        raise TVMCException(
            f"the model has no input {unknown[0]!r}: {near_or_all(unknown[0], shape_dict)}"
        )
    return {
        name: _checked(name, given[name], shape, dtype_dict[name])
        if name in given
        else generate_tensor_data(shape, dtype_dict[name], fill_mode)
        for name, shape in shape_dict.items()
    }


def _checked(name: str, value: Any, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    found, wanted = np.asarray(value), as_dtype(dtype).numpy
    if found.shape != tuple(shape):
        raise TVMCException(
            f"the input {name!r} has the shape {tuple(shape)}, got one of {found.shape}"
        )
    if not np.can_cast(found.dtype, wanted, "same_kind"):
        raise TVMCException(f"the input {name!r} has the type {dtype}, got {found.dtype}")
    return found.astype(wanted, copy=False)


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
) -> TVMCResult:
    """Run a compiled model.

    Parameters
    ----------
    tvmc_package : TVMCPackage
        The model.
    device : str
        "cpu", or another device of this machine.
    hostname, port, rpc_key, options :
        Of other machines, which cannot be reached: leave them out.
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
    if hostname or rpc_key or options:
        raise TVMCException("models run on this machine only: leave hostname and rpc_key out")
    given = read_inputs(inputs) if isinstance(inputs, str) else inputs
    if given is not None and not isinstance(given, Mapping):
        raise TVMCException(
            f"inputs are arrays by name, {{'name': array}}, got a {type(given).__name__}"
        )
    session = _open(tvmc_package, _find_device(device), profile)
    try:
        session.set_inputs(given, fill_mode)
        if profile:
            print(session.profile())
        times = session.measure(repeat, number, end_to_end) if benchmark else None
        if times is None:
            session.run()
        outputs = {f"output_{i}": value.numpy() for i, value in enumerate(session.outputs())}
    except (TVMError, ValueError, TypeError) as error:
        raise TVMCException(f"cannot run the model: {error}") from error
    return TVMCResult(outputs, times)


def _find_device(name: str) -> Device:
    if name not in DEVICES:
        raise TVMCException(f"unknown device {name!r}, devices: {', '.join(DEVICES)}")
    found = make_device(DEVICES[name], 0)
    if not found.exist:
        raise TVMCException(f"this machine has no device {name}, or the runtime cannot use it")
    return found


def _open(
    package: TVMCPackage, device: Device, profile: bool
) -> _GraphSession | _AotSession | _VMSession:
    if package.type == "mlf":
        raise TVMCException(
            "You're trying to run a model saved using the Model Library Format (MLF). "
            "MLF can only be used to run micro device; compile with --output-format so."
        )
    try:
        lib = load_module(str(package.lib_path))
    except (TVMError, RuntimeError, ValueError, OSError) as error:
        raise TVMCException(
            f"cannot load {package.lib_name} of {package.package_path}, was it compiled for "
            f"another machine? {error}"
        ) from error
    return _SESSIONS[str(package.executor_type)](package, lib, device, profile)


class _GraphSession:
    """A model on the graph executor."""

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        create = debug_executor.create if profile else graph_executor.create
        self.device = device
        self.package = package
        self.executor = create(str(package.graph), lib, device)
        self.executor.load_params(package.params or b"")
        self.inputs: Arrays = {}

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str) -> None:
        """Set all inputs."""
        shapes, dtypes = get_input_info(str(self.package.graph), self.package.params or b"")
        self.inputs = make_inputs_dict(shapes, dtypes, given, fill_mode)
        for name, value in self.inputs.items():
            self.executor.set_input(name, value)

    def run(self) -> None:
        """Run once."""
        self.executor.module["run"]()

    def profile(self) -> Any:
        """The times of all operators."""
        assert isinstance(self.executor, debug_executor.GraphModuleDebug)
        return self.executor.profile()

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes."""
        inputs: dict[str, Any] = self.inputs if end_to_end else {}
        return self.executor.benchmark(
            self.device, repeat=repeat, number=number, end_to_end=end_to_end, **inputs
        )

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return [self.executor.get_output(i) for i in range(self.executor.get_num_outputs())]


class _AotSession:
    """A model on the AOT executor."""

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        if profile:
            raise TVMCException(
                "a model for the AOT executor is one function, its operators cannot be measured: "
                "compile with --executor graph"
            )
        self.device = device
        self.executor = AotModule(lib[package.module_name](device))
        self.inputs: Arrays = {}

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str) -> None:
        """Set all inputs."""
        self.inputs = make_inputs_dict(*self.executor.get_input_info(), given, fill_mode)
        for name, value in self.inputs.items():
            self.executor.set_input(name, value)

    def run(self) -> None:
        """Run once."""
        self.executor.run()

    def profile(self) -> Any:
        """The times of operators, which there are not."""
        raise NotImplementedError

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes."""
        if end_to_end:
            raise TVMCException("the AOT executor measures runs only: leave --end-to-end out")
        return self.executor.benchmark(self.device, repeat=repeat, number=number)

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return [self.executor.get_output(i) for i in range(self.executor.get_num_outputs())]


class _VMSession:
    """A model on the virtual machine."""

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        create = VirtualMachineProfiler if profile else VirtualMachine
        self.device = device
        self.executable = Executable.load_exec(bytes(package.code or b""), lib)
        self.input_types = package.input_types
        self.machine = create(self.executable, device)
        self.inputs: list[NDArray] = []  # in the order of the parameters

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str) -> None:
        """Set all inputs; those with open dimensions have to be given."""
        names = self.executable.get_function_params("main")
        found = dict(given or {})
        if unknown := [name for name in found if name not in names]:
            raise TVMCException(
                f"the model has no input {unknown[0]!r}: {near_or_all(unknown[0], names)}"
            )
        self.inputs = [
            array(
                self._given(name, found[name]) if name in found else self._filled(name, fill_mode)
            )
            for name in names
        ]

    def _given(self, name: str, value: Any) -> np.ndarray[Any, Any]:
        found = np.asarray(value)
        if name not in self.input_types:
            return found
        dims, dtype = self.input_types[name]
        sizes = [*found.shape, *dims[found.ndim :]][: len(dims)]
        shape = [size if dim is None else dim for dim, size in zip(dims, sizes, strict=True)]
        return _checked(name, found, shape, dtype)

    def _filled(self, name: str, fill_mode: str) -> np.ndarray[Any, Any]:
        shape, dtype = self.input_types.get(name, ([None], "?"))
        if None in shape:
            dims = ", ".join(["?" if dim is None else str(dim) for dim in shape])
            raise TVMCException(
                f"the input {name!r} of {dtype}[{dims}] has open dimensions, which --fill-mode "
                f"cannot know: give a value, --inputs in.npz from np.savez('in.npz', {name}=array)"
            )
        return generate_tensor_data(shape, dtype, fill_mode)

    def run(self) -> None:
        """Run once."""
        self.machine.invoke_stateful("main", *self.inputs)

    def profile(self) -> Any:
        """The times of all kernels."""
        assert isinstance(self.machine, VirtualMachineProfiler)
        return self.machine.profile(*self.inputs)

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes; the outputs are those of one more run."""
        times = self.machine.benchmark(
            self.device, *self.inputs, repeat=repeat, number=number, end_to_end=end_to_end
        )
        self.run()
        return times

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return self.machine.get_outputs()


_SESSIONS: dict[str, type[_GraphSession | _AotSession | _VMSession]] = {
    "graph": _GraphSession,
    "aot": _AotSession,
    "vm": _VMSession,
}
