"""Transformations of loop-level programs: one pass a file, under their classic names."""

from .combine_context_call import CombineContextCall
from .common import PrimFuncPass
from .flatten_buffer import FlattenBuffer
from .function_pass import prim_func_pass
from .functions import AnnotateEntryFunc, Apply, BindTarget, Filter
from .lower_tvm_builtin import LowerTVMBuiltin
from .make_packed_api import MakePackedAPI
from .remove_no_op import RemoveNoOp
from .split_host_device import AnnotateDeviceRegions, SplitHostDevice
from .storage_flatten import StorageFlatten
from .unroll_loop import UnrollLoop
from .vectorize_loop import VectorizeLoop
