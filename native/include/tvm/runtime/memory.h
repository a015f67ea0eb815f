// The classic place of make_object.
#ifndef TVM_RUNTIME_MEMORY_H_
#define TVM_RUNTIME_MEMORY_H_

#include <tvm/runtime/object.h>

#endif  // TVM_RUNTIME_MEMORY_H_
