"""Run models that were compiled to one function, ahead of time.

lib = relay.build(mod, target="llvm", executor=relay.backend.Executor("aot"))
module = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
module.run(data=image)
scores = module.get_output(0).numpy()
"""

from __future__ import annotations

from tvm.runtime.executor.model import ModelExecutor


class AotModule(ModelExecutor):
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

    def get_input_name(self, index: int) -> str:
        """The name of an input."""
        return str(self.module["get_input_name"](index))
