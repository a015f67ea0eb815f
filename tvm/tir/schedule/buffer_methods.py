"""Methods of `Schedule` that give intermediate buffers less, more or other room."""

from __future__ import annotations

from typing import Any

from .base import ScheduleBase
from .primitives import rolling_buffer
from .random_variables import BlockRV


class BufferMethods(ScheduleBase):
    """Buffers that roll."""

    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Any) -> None:
        """Keep what neighbouring iterations share, in a buffer with room for one iteration.

        Along the outermost loop whose iterations overlap, the buffer is as large as what one iteration
        needs, and is written over in turns. Nothing that overlaps is computed twice.

        Parameters
        ----------
        block : BlockRV or str
            The only block that writes the buffer, in a loop that all its consumers are in too.
        write_buffer_index : int, str or Buffer
            The buffer, or its number among the block's writes.
        """
        given = self._block_rv(block)
        index = self._region_index(given, write_buffer_index, "write")
        self._run("rolling-buffer", rolling_buffer.rolling_buffer, self._block(given), index)
        self._record("RollingBuffer", [given], [index])
