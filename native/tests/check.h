// Tests of the runtime in C++: a test is a block that returns, or throws what it found.
//
//     TEST(an_empty_array_has_an_address) { EXPECT(NDArray::Empty(...)->data != nullptr); }
#ifndef TVM_TESTS_CHECK_H_
#define TVM_TESTS_CHECK_H_

#include <tvm/runtime/error.h>

#include <stdexcept>
#include <string>
#include <vector>

struct Test {
  const char* name;
  void (*body)();

  static std::vector<Test>& All() {
    static std::vector<Test> tests;
    return tests;
  }
};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

#define TEST(name)                                                      \
  static void name();                                                   \
  static const bool name##_is_listed = [] {                             \
    Test::All().push_back({#name, name});                               \
    return true;                                                        \
  }();                                                                  \
  static void name()

#define EXPECT(condition) \
  if (!(condition)) throw Failure(::tvm::runtime::Cat(__FILE__, ":", __LINE__, ": ", #condition))

#define EXPECT_EQ(left, right) CheckEqual(left, right, #left " == " #right, __FILE__, __LINE__)

template <class A, class B>
void CheckEqual(const A& left, const B& right, const char* text, const char* file, int line) {
  if (left == right) return;
  throw Failure(tvm::runtime::Cat(file, ":", line, ": ", text, ": got ", left, " and ", right));
}

// The statement raises an error whose text contains this.
#define EXPECT_RAISES(statement, expected) \
  CheckRaises([&] { statement; }, expected, __FILE__, __LINE__)

template <class F>
void CheckRaises(F run, const std::string& expected, const char* file, int line) {
  std::string found = "no error";
  try {
    run();
  } catch (const tvm::runtime::Error& error) {
    found = error.what();
  }
  if (found.find(expected) == std::string::npos) {
    throw Failure(tvm::runtime::Cat(file, ":", line, ": expected '", expected, "', got '", found, "'"));
  }
}

// Threads that the pool should have while the object lives.
struct WithThreads {
  explicit WithThreads(int count);
  ~WithThreads();
};

#endif  // TVM_TESTS_CHECK_H_
