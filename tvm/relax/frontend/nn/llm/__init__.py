"""What language models need: caches of keys and values, rotary embeddings."""

from tvm.support.later import provide

from . import kv_cache, position_embedding

_HERE = __name__
provide(
    f"{_HERE}.position_embedding",
    {"llama_rope_with_position_map": f"{_HERE}.rotary_kernel:llama_rope_with_position_map"},
)
