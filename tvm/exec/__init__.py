"""Programs that are started as ``python -m tvm.exec.<name>``."""
