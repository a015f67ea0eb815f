// Packed functions and the table of global ones, from C++ and through the C interface.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "arrays.h"
#include "check.h"

using namespace tvm::runtime;

TEST(arguments_of_each_kind_arrive) {
  NDArray array = Floats({1, 2});
  PackedFunc inner([](TVMArgs args, TVMRetValue* rv) { *rv = int64_t(args[0]) + 1; });
  PackedFunc func([&](TVMArgs args, TVMRetValue* rv) {
    EXPECT_EQ(args.size(), 8);
    EXPECT_EQ(int(args[0]), -7);
    EXPECT_EQ(double(args[1]), 2.5);
    EXPECT_EQ(std::string(args[2]), "text");
    EXPECT(args[3].is_null());
    EXPECT_EQ(DLDataType2String(args[4]), "float32");
    EXPECT(NDArray(args[5]).same_as(array));
    EXPECT_EQ(int64_t(PackedFunc(args[6])(41)), 42);
    EXPECT(bool(args[7]));
    *rv = std::string("done");
  });
  std::string result = func(-7, 2.5, "text", nullptr, kFloat32, array, inner, true);
  EXPECT_EQ(result, "done");
}

TEST(wrong_arguments_are_named) {
  PackedFunc func([](TVMArgs args, TVMRetValue* rv) { *rv = int64_t(args[1]); });
  EXPECT_RAISES(func(1, "x"), "expected int, got str");
  EXPECT_RAISES(func(1), "TypeError");
  PackedFunc typed = TypedPackedFunc([](int64_t a, std::string b) { return b + std::to_string(a); }, "joined");
  EXPECT_EQ(std::string(typed(1, "x")), "x1");
  EXPECT_RAISES(typed(1), "joined");
}

TEST(functions_free_what_they_hold) {
  auto held = std::make_shared<int>(5);
  std::weak_ptr<int> watched = held;
  {
    PackedFunc outer([held](TVMArgs, TVMRetValue* rv) {
      *rv = PackedFunc([held](TVMArgs, TVMRetValue* inner) { *inner = *held; });
    });
    held = nullptr;
    PackedFunc inner = outer();
    outer = nullptr;
    EXPECT_EQ(int64_t(inner()), 5);
    for (int i = 0; i < 1000; ++i) PackedFunc copy = inner;
  }
  EXPECT(watched.expired());
}

TEST(results_own_their_text) {
  PackedFunc func([](TVMArgs, TVMRetValue* rv) { *rv = std::string(1000, 'x'); });
  TVMRetValue first = func();
  TVMRetValue second = first;
  first = func();
  EXPECT_EQ(std::string(second), std::string(1000, 'x'));
  TVMRetValue moved = std::move(second);
  EXPECT_EQ(std::string(moved).size(), size_t{1000});
}

TEST(global_functions_are_registered_found_replaced_and_removed) {
  auto constant = [](int64_t value) { return PackedFunc([value](TVMArgs, TVMRetValue* rv) { *rv = value; }); };
  Registry::Set("tests.constant", constant(1), false);
  EXPECT_RAISES(Registry::Set("tests.constant", constant(2), false), "tests.constant");
  EXPECT_EQ(int64_t(Registry::Find("tests.constant")()), 1);
  Registry::Set("tests.constant", constant(2), true);
  EXPECT_EQ(int64_t(Registry::Find("tests.constant")()), 2);
  auto names = Registry::ListNames();
  EXPECT(std::count(names.begin(), names.end(), "tests.constant") == 1);
  EXPECT(Registry::Remove("tests.constant"));
  EXPECT(!Registry::Remove("tests.constant"));
  EXPECT(!Registry::Find("tests.constant").defined());
}

TEST(threads_share_the_table_of_functions) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 100; ++k) {
        std::string name = "tests.threads" + std::to_string((i + k) % 5);
        Registry::Set(name, PackedFunc([k](TVMArgs, TVMRetValue* rv) { *rv = k; }), true);
        PackedFunc found = Registry::Find(name);
        if (found.defined()) found();
        Registry::ListNames();
        Registry::Remove(name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(functions_in_c_are_called_and_finalised) {
  static int freed;
  freed = 0;
  TVMPackedCFunc body = [](TVMValue* args, int* codes, int n, TVMRetValueHandle ret, void* resource) {
    if (n != 1 || codes[0] != kTVMArgInt) {
      TVMAPISetLastError("TypeError: one integer, please");
      return -1;
    }
    TVMValue result;
    result.v_int64 = args[0].v_int64 * *static_cast<int64_t*>(resource);
    int code = kTVMArgInt;
    return TVMCFuncSetReturn(ret, &result, &code, 1);
  };
  TVMFunctionHandle func;
  int64_t factor = 3;
  EXPECT_EQ(TVMFuncCreateFromCFunc(body, &factor, [](void*) { ++freed; }, &func), 0);
  TVMValue arg, result;
  int code = kTVMArgInt, result_code = 0;
  arg.v_int64 = 14;
  EXPECT_EQ(TVMFuncCall(func, &arg, &code, 1, &result, &result_code), 0);
  EXPECT_EQ(result.v_int64, 42);
  EXPECT_EQ(TVMFuncCall(func, &arg, &code, 0, &result, &result_code), -1);
  EXPECT_EQ(std::string(TVMGetLastError()), "TypeError: one integer, please");
  EXPECT_EQ(TVMFuncRegisterGlobal("tests.in_c", func, 0), 0);
  EXPECT_EQ(TVMFuncRegisterGlobal("tests.in_c", func, 0), -1);
  EXPECT_EQ(TVMFuncFree(func), 0);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(int64_t(Registry::Find("tests.in_c")(5)), 15);
  EXPECT_EQ(TVMFuncRemoveGlobal("tests.in_c"), 0);
  EXPECT_EQ(TVMFuncRemoveGlobal("tests.in_c"), -1);
  EXPECT_EQ(freed, 1);
}

TEST(times_are_measured) {
  int calls = 0;
  PackedFunc func([&](TVMArgs, TVMRetValue*) { ++calls; });
  // number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
  PackedFunc evaluate = Registry::Find("runtime.TimeFunction")(func, kCpu, 5, 3, 0, 100, 0, 1);
  TVMRetValue seconds = evaluate();
  EXPECT_EQ(std::string(seconds).size(), 3 * sizeof(double));
  EXPECT_EQ(calls, 16);  // once before, to warm up
  EXPECT_RAISES(Registry::Find("runtime.TimeFunction")(func, kCpu, 0, 3, 0, 100, 0, 1), "number >= 1");
}
