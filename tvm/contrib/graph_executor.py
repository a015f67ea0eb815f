"""Run compiled models.

lib = relay.build(mod, target="llvm", params=params)
module = GraphModule(lib["default"](tvm.cpu()))
module.run(data=image)
scores = module.get_output(0).numpy()
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.executor.mistakes import warn_of_unknown
from tvm.runtime.executor.model import ModelExecutor
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.packed_func import PackedFunc
from tvm.runtime.params import BytesLike, share_bytes
from tvm.runtime.remote import global_function_beside, own_device_type


def create(graph_json_str: str, libmod: Module, device: Device | Sequence[Device]) -> GraphModule:
    """An executor of a graph.

    Parameters
    ----------
    graph_json_str : str
        The graph.
    libmod : Module
        The library with its functions.
    device : Device or list of Device
        Where it runs.

    Returns
    -------
    GraphModule
        Its parameters are not set: :meth:`GraphModule.load_params` or ``set_input`` does.

    Raises
    ------
    ValueError
        If the graph is no text, or a device no `Device`.
    """
    if not isinstance(graph_json_str, str):
        raise ValueError(
            f"create needs the graph as JSON text, got {type(graph_json_str).__name__}; "
            'for the result of relay.build use GraphModule(lib["default"](device))'
        )
    native = getattr(libmod, "module", libmod)
    _, flat = get_device(native, device)
    make = global_function_beside(native, "tvm.graph_executor.create")
    return GraphModule(make(graph_json_str, native, *flat))


def get_device(libmod: Module, device: Device | Sequence[Device]) -> tuple[list[Device], list[int]]:
    """The devices as a list, and their kinds and numbers on their own machine.

    Parameters
    ----------
    libmod : Module
        The library that is to run there.
    device : Device or list of Device
        Where it runs; of a session of RPC, too.

    Returns
    -------
    (list of Device, list of int)
        The devices, and for each of them its kind and its number, one behind the other.
    """
    devices = list(device) if isinstance(device, Iterable) else [device]
    for item in devices:
        if not isinstance(item, Device):
            raise ValueError(f"a Device is needed, got {type(item).__name__}")
    return devices, [part for item in devices for part in (own_device_type(item), item.device_id)]


class GraphModule(ModelExecutor):
    """A model that is ready to run.

    Parameters
    ----------
    module : Module
        What ``lib["default"](device)`` returns.

    Attributes
    ----------
    module : Module
        The native executor.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._load_params: PackedFunc = module["load_params"]
        self._share_params: PackedFunc = module["share_params"]

    def debug_get_output(self, node: str | int, out: NDArray) -> None:
        """Only the debugging executor can tell intermediate results.

        Parameters
        ----------
        node : str or int
            The node's name or number.
        out : NDArray
            Where its result would be written.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "use tvm.contrib.debugger.debug_executor for intermediate results"
        )

    def load_params(self, params_bytes: BytesLike) -> None:
        """Set the parameters that ``save_param_dict`` has written; a mapped file will do.

        Names that the model does not use are ignored. If inputs remain unset, or a name resembles
        an input's, a warning says so.

        Parameters
        ----------
        params_bytes : bytes, bytearray or memoryview
            What ``tvm.runtime.save_param_dict`` gave; its values are copied.
        """
        blob = share_bytes(params_bytes) if self._host is None else bytes(params_bytes)
        ignored = json.loads(self._load_params(blob) or "[]")
        if ignored:
            known = json.loads(self.module["get_unset_inputs_json"]())
            warn_of_unknown("the model has no inputs", ignored, known, only_similar=True)

    def share_params(self, other: GraphModule, params_bytes: BytesLike) -> None:
        """Use the parameters of another executor.

        Parameters
        ----------
        other : GraphModule
            The executor whose arrays are used from now on.
        params_bytes : bytes, bytearray or memoryview
            Parameters as of :meth:`load_params`; their names tell which are shared, their values do
            not count.
        """
        if not isinstance(other, GraphModule):
            raise TypeError(f"share_params needs a GraphModule, got {type(other).__name__}")
        blob = share_bytes(params_bytes) if self._host is None else bytes(params_bytes)
        self._share_params(other.module, blob)
