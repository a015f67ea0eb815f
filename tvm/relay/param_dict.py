"""Parameters as bytes, under the older names."""

from __future__ import annotations

from tvm.runtime.params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
