"""Annotations of blocks that say in which mode of the matrix extension (SME) their function runs."""


class SMEAttributes:
    """Keys of annotations, and the values that they take.

    T.block_attr({SMEAttributes.STREAMING_MODE: SMEAttributes.StreamingModeValues.ENABLED})
    """

    STREAMING_MODE = "pragma_aarch64_pstate_sm"

    class StreamingModeValues:
        """Of the streaming mode: the function switches to it, or runs in either."""

        ENABLED = "aarch64_pstate_sm_enabled"
        COMPATIBLE = "aarch64_pstate_sm_compatible"

    ZA_STORAGE = "pragma_aarch64_pstate_za"

    class ZAStorageValues:
        """Of the matrix registers: the function has fresh ones, or those of its caller."""

        NEW = "aarch64_pstate_za_new"
        SHARED = "aarch64_pstate_za_shared"
