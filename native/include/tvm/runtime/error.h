// Errors: the class that the caller's language should raise, and one clear line.
#ifndef TVM_RUNTIME_ERROR_H_
#define TVM_RUNTIME_ERROR_H_

#include <tvm/runtime/object.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace tvm {
namespace runtime {

// What C++ code throws; what() reads "ValueError: text".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
  Error(const std::string& what, ObjectPtr<Object> foreign)
      : std::runtime_error(what), foreign_(std::move(foreign)) {}
  // The exception of another language that this one stands for, if any.
  const ObjectPtr<Object>& foreign() const { return foreign_; }

 private:
  ObjectPtr<Object> foreign_;
};

// An argument of the wrong kind; the call names the function.
class ArgumentError : public Error {
 public:
  ArgumentError(int index, std::string detail)
      : Error("TypeError: " + Text(index, detail)), index_(index), detail_(std::move(detail)) {}
  Error In(const std::string& function) const {
    return Error("TypeError: " + function + ": " + Text(index_, detail_));
  }

 private:
  static std::string Text(int index, const std::string& detail) {
    return index < 0 ? detail : "argument " + std::to_string(index) + ": " + detail;
  }
  int index_;
  std::string detail_;
};

template <class... Parts>
std::string Cat(const Parts&... parts) {
  std::ostringstream os;
  (os << ... << parts);
  return os.str();
}

template <class... Parts>
[[noreturn]] void ThrowValueError(const Parts&... parts) {
  throw Error(Cat("ValueError: ", parts...));
}

template <class... Parts>
[[noreturn]] void ThrowTypeError(const Parts&... parts) {
  throw Error(Cat("TypeError: ", parts...));
}

// A failure of the runtime or of its surroundings.
template <class... Parts>
[[noreturn]] void ThrowError(const Parts&... parts) {
  throw Error(Cat("TVMError: ", parts...));
}

// Throws the error that a C function has set before it returned nonzero.
[[noreturn]] TVM_DLL void ThrowLastError();
// Sets the calling thread's error from the exception; returns -1. For the end of C entry points.
TVM_DLL int SetLastError(const std::exception& error);
TVM_DLL int SetUnknownError();

#define TVM_API_BEGIN() try {
#define TVM_API_END()                           \
  return 0;                                     \
  }                                             \
  catch (const std::exception& error) {         \
    return ::tvm::runtime::SetLastError(error); \
  }                                             \
  catch (...) {                                 \
    return ::tvm::runtime::SetUnknownError();   \
  }

}  // namespace runtime

using runtime::Error;

}  // namespace tvm
#endif  // TVM_RUNTIME_ERROR_H_
