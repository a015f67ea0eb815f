"""Run models that were compiled to one function, ahead of time.

lib = relay.build(mod, target="llvm", executor=relay.backend.Executor("aot"))
module = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
module.run(data=image)
scores = module.get_output(0).numpy()
"""

from __future__ import annotations

from typing import Any

from tvm.error import RuntimeValueError, suggest
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

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copy values into inputs, as graph executors do; names that no input has are rejected.

        Parameters
        ----------
        key : str or int, optional
            The input's name or number.
        value : NDArray or array_like
            Its value, of exactly the input's shape.
        params : dict
            More inputs by name.
        """
        names = [key, *params] if isinstance(key, str) else [*params]
        for name in names:
            self.get_input_index(name)
        known = {self._known(name): given for name, given in params.items()}
        super().set_input(self._known(key) if isinstance(key, str) else key, value, **known)

    def get_input_index(self, name: str) -> int:
        """The number of an input.

        Parameters
        ----------
        name : str
            Its name in the model, or as C writes it.

        Returns
        -------
        int
            From 0 on, in the order of the model's inputs.

        Raises
        ------
        RuntimeValueError
            If no input has that name.
        """
        found = int(self._get_input_index(name))
        if found < 0:
            names = ", ".join([repr(known) for known in self._shapes])
            hint = suggest(name, self._shapes) or f"its inputs are {names or 'none'}"
            raise RuntimeValueError(f"Invalid input name. The model has no input {name!r}; {hint}")
        return found

    def _known(self, name: str) -> str:
        """An input's own name, where it is given as C writes it."""
        return name if name in self._shapes else self.get_input_name(self.get_input_index(name))

    def get_input_name(self, index: int) -> str:
        """The name of an input.

        Parameters
        ----------
        index : int
            Its number, from 0 on.

        Returns
        -------
        str
            The name that the model gave it.
        """
        return str(self.module["get_input_name"](index))
