// The classic place of the logging macros.
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_

#include <tvm/runtime/logging.h>

#endif  // DMLC_LOGGING_H_
