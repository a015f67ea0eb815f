// The classic place of ObjectHash and ObjectEqual.
#ifndef TVM_RUNTIME_CONTAINER_BASE_H_
#define TVM_RUNTIME_CONTAINER_BASE_H_

#include <tvm/runtime/container/string.h>
#include <tvm/runtime/memory.h>

#endif  // TVM_RUNTIME_CONTAINER_BASE_H_
