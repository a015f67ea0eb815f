// Checks and messages in C++ code.
//
//     ICHECK_EQ(args.size(), 2) << "add takes two numbers";    // InternalError
//     CHECK(width > 0) << "ValueError: width is " << width;    // ValueError: the text names the class
//     LOG(WARNING) << "slow path";                             // on stderr
//     LOG(FATAL) << "ValueError: no such layer";               // throws
#ifndef TVM_RUNTIME_LOGGING_H_
#define TVM_RUNTIME_LOGGING_H_

#include <tvm/runtime/error.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

namespace tvm {
namespace runtime {

class InternalError : public Error {
 public:
  explicit InternalError(const std::string& text) : Error("InternalError: " + text) {}
};

namespace detail {

// Whether a text starts with the name of an error class: "ValueError: ...", "tvm.error.OpNotImplemented: ...".
inline bool NamesErrorClass(const std::string& text) {
  size_t colon = text.find(": ");
  if (colon == std::string::npos || colon < 5) return false;
  size_t last = 0;
  for (size_t i = 0; i < colon; ++i) {
    if (!std::isalnum(static_cast<unsigned char>(text[i])) && text[i] != '_' && text[i] != '.') return false;
    if (text[i] == '.') last = i + 1;
  }
  return text.compare(colon - 5, 5, "Error") == 0 || text.compare(last, 2, "Op") == 0;
}

// Where a check or message stands, without the folders of the machine that compiled it.
inline std::string Place(const char* file, int line) {
  const char* name = std::strrchr(file, '/');
  return Cat(name ? name + 1 : file, ":", line);
}

// Collects a text; throws it at the end of the statement.
class FatalMessage {
 public:
  FatalMessage(const char* file, int line, const char* check, std::string operands = "")
      : file_(file), line_(line), check_(check), operands_(std::move(operands)) {}
  [[noreturn]] ~FatalMessage() noexcept(false) {
    std::string text = stream_.str();
    if (NamesErrorClass(text)) throw Error(Cat(text, " (", Place(file_, line_), ")"));  // in their words
    if (check_[0] != 0) text = Cat("Check failed: (", check_, ") is false", operands_, text.empty() ? "" : ": ", text);
    throw InternalError(Cat(text, " (", Place(file_, line_), ")"));
  }
  std::ostringstream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
  const char* file_;
  int line_;
  const char* check_;
  std::string operands_;
};

// Collects a text; writes it as one line.
class LogMessage {
 public:
  LogMessage(const char* file, int line, const char* level) { stream_ << "[" << level << "] " << Place(file, line) << ": "; }
  ~LogMessage() { std::fprintf(stderr, "%s\n", stream_.str().c_str()); }
  std::ostringstream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both branches of a check the type void.
struct Voidify {
  void operator&(std::ostream&) {}
};

}  // namespace detail
}  // namespace runtime
}  // namespace tvm

#define TVM_LOG_INFO_ ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "INFO").stream()
#define TVM_LOG_WARNING_ ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "WARNING").stream()
#define TVM_LOG_ERROR_ ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "ERROR").stream()
#define TVM_LOG_FATAL_ ::tvm::runtime::detail::FatalMessage(__FILE__, __LINE__, "").stream()
#define TVM_LOG_DEBUG_ ::tvm::runtime::detail::LogMessage(__FILE__, __LINE__, "DEBUG").stream()
#define LOG(level) TVM_LOG_##level##_
#define LOG_INFO LOG(INFO)
#define LOG_WARNING LOG(WARNING)
#define LOG_ERROR LOG(ERROR)
#define LOG_FATAL LOG(FATAL)
#define LOG_IF(level, condition) !(condition) ? (void)0 : ::tvm::runtime::detail::Voidify() & LOG(level)

#define TVM_CHECK_(condition, text, ...) \
  (condition) ? (void)0                  \
              : ::tvm::runtime::detail::Voidify() & \
                    ::tvm::runtime::detail::FatalMessage(__FILE__, __LINE__, text, __VA_ARGS__).stream()
#define TVM_COMPARE_(a, op, b) \
  TVM_CHECK_((a)op(b), #a " " #op " " #b, ::tvm::runtime::Cat(": ", (a), " vs. ", (b)))
#define ICHECK(condition) TVM_CHECK_(condition, #condition, "")
#define ICHECK_EQ(a, b) TVM_COMPARE_(a, ==, b)
#define ICHECK_NE(a, b) TVM_COMPARE_(a, !=, b)
#define ICHECK_LT(a, b) TVM_COMPARE_(a, <, b)
#define ICHECK_LE(a, b) TVM_COMPARE_(a, <=, b)
#define ICHECK_GT(a, b) TVM_COMPARE_(a, >, b)
#define ICHECK_GE(a, b) TVM_COMPARE_(a, >=, b)
#define ICHECK_NOTNULL(value) ::tvm::runtime::detail::NotNull((value), #value, __FILE__, __LINE__)
#define CHECK(condition) ICHECK(condition)
#define CHECK_EQ(a, b) ICHECK_EQ(a, b)
#define CHECK_NE(a, b) ICHECK_NE(a, b)
#define CHECK_LT(a, b) ICHECK_LT(a, b)
#define CHECK_LE(a, b) ICHECK_LE(a, b)
#define CHECK_GT(a, b) ICHECK_GT(a, b)
#define CHECK_GE(a, b) ICHECK_GE(a, b)
#define CHECK_NOTNULL(value) ICHECK_NOTNULL(value)
// Without NDEBUG the same; with it, compiled and not evaluated.
#ifdef NDEBUG
#define TVM_IN_DEBUG_(check) \
  while (false) check
#define DLOG(level) LOG_IF(level, false)
#else
#define TVM_IN_DEBUG_(check) check
#define DLOG(level) LOG(level)
#endif
#define DCHECK(condition) TVM_IN_DEBUG_(CHECK(condition))
#define DCHECK_EQ(a, b) TVM_IN_DEBUG_(CHECK_EQ(a, b))
#define DCHECK_NE(a, b) TVM_IN_DEBUG_(CHECK_NE(a, b))
#define DCHECK_LT(a, b) TVM_IN_DEBUG_(CHECK_LT(a, b))
#define DCHECK_LE(a, b) TVM_IN_DEBUG_(CHECK_LE(a, b))
#define DCHECK_GT(a, b) TVM_IN_DEBUG_(CHECK_GT(a, b))
#define DCHECK_GE(a, b) TVM_IN_DEBUG_(CHECK_GE(a, b))

namespace tvm {
namespace runtime {
namespace detail {

template <class T>
T&& NotNull(T&& value, const char* text, const char* file, int line) {
  if (value == nullptr) FatalMessage(file, line, text).stream() << "it is null";
  return std::forward<T>(value);
}

}  // namespace detail
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_LOGGING_H_
