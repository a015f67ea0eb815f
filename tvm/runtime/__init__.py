"""What a compiled program needs: devices, arrays, functions, modules, parameters."""

from tvm._ffi import base as _base
from tvm._ffi.runtime_ctypes import DataType, DataTypeCode, Device
from tvm.runtime import (
    _ffi_api,
    _ffi_node_api,
    container,
    executor,
    foreign,
    global_functions,
    loan,
    module,
    name_transforms,
    ndarray,
    object_generic,
    packed_func,
    params,
    profiling,
    script_printer,
)
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.container import ADT, ShapeTuple, String, tuple_object
from tvm.runtime.device import (
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from tvm.runtime.executable import Executable
from tvm.runtime.module import (
    Module,
    ModulePropertyMask,
    enabled,
    load_module,
    load_static_library,
    module_from_symbols,
    num_threads,
    system_lib,
)
from tvm.runtime.ndarray import NDArray, empty, from_dlpack
from tvm.runtime.ndarray import NDArray as Tensor
from tvm.runtime.ndarray import array as tensor
from tvm.runtime.object import Object
from tvm.runtime.object_generic import ObjectGeneric, const, convert, convert_to_object
from tvm.runtime.object_path import ObjectPath
from tvm.runtime.packed_func import PackedFunc
from tvm.runtime.params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from tvm.runtime.profiling import Report
from tvm.support.later import names_from_above as _names_from_above

__getattr__ = _names_from_above(__name__)
