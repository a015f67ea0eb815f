// Models that are one function of a loaded library: runs, inputs and outputs, several at once; factories as bytes.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <atomic>
#include <thread>

#include "arrays.h"
#include "check.h"

using namespace tvm::runtime;

namespace {

Module Executor() {
  return Registry::Find("tvm.aot_executor.create")(Module::LoadFromFile(COMPILED_LIBRARY), kCpu);
}

std::vector<float> Run(const Module& executor, float x) {
  executor.GetFunction("set_input")("x", Floats({x, x, x, x}));
  executor.GetFunction("run")();
  return ValuesOf(executor.GetFunction("get_output")(0));
}

}  // namespace

TEST(a_model_that_is_one_function_runs) {
  Module executor = Executor();
  EXPECT(Run(executor, 10) == (std::vector<float>{-11, -12, -13, -14}));
  EXPECT_EQ(int64_t(executor.GetFunction("get_num_inputs")()), 1);
  EXPECT_EQ(int64_t(executor.GetFunction("get_num_outputs")()), 1);
  EXPECT_EQ(std::string(executor.GetFunction("get_input_name")(0)), "x");
  EXPECT_EQ(int64_t(executor.GetFunction("get_input_index")("w")), -1);
  EXPECT_EQ(std::string(executor.GetFunction("get_input_info_json")()),
            "{\"shape\": {\"x\": [4]}, \"dtype\": {\"x\": \"float32\"}}");
}

TEST(arrays_of_the_caller_are_shared_with_a_model) {
  Module executor = Executor();
  NDArray x = Floats({1, 1, 1, 1}), out = Floats({0, 0, 0, 0});
  executor.GetFunction("set_input_zero_copy")(0, x);
  executor.GetFunction("set_output_zero_copy")("output", out);
  x = NDArray();  // the executor keeps it
  executor.GetFunction("run")();
  EXPECT(ValuesOf(out) == (std::vector<float>{-2, -3, -4, -5}));
}

TEST(a_factory_makes_executors) {
  PackedFunc create = Registry::Find("tvm.aot_executor_factory.create");
  Module factory = create(Module::LoadFromFile(COMPILED_LIBRARY), "sum", "x", Floats({5, 5, 5, 5}));
  Module executor = factory.GetFunction("sum")(kCpu);
  executor.GetFunction("run")();  // with the parameter that the factory holds
  EXPECT(ValuesOf(executor.GetFunction("get_output")(0)) == (std::vector<float>{-6, -7, -8, -9}));
  Module bare = factory.GetFunction("remove_params")();
  Module other = bare.GetFunction("sum")(kCpu);
  other.GetFunction("run")();
  EXPECT(ValuesOf(other.GetFunction("get_output")(0)) == (std::vector<float>{-1, -2, -3, -4}));
}

TEST(several_threads_run_models_at_once) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Module executor = Executor();
      for (int i = 0; i < 50; ++i) {
        float x = static_cast<float>(t * 100 + i);
        if (Run(executor, x) != std::vector<float>{-x - 1, -x - 2, -x - 3, -x - 4}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(wrong_inputs_of_a_model_are_refused) {
  Module executor = Executor();
  EXPECT_RAISES(executor.GetFunction("set_input")("w", Floats({1})), "no input 'w'; its inputs are 'x'");
  EXPECT_RAISES(executor.GetFunction("set_input")("x", Floats({1})), "input 0 ('x') needs (4,) float32");
  EXPECT_RAISES(executor.GetFunction("set_input")(1, Floats({1})), "the model has 1 inputs, got index 1");
  EXPECT_RAISES(executor.GetFunction("get_output")(1), "the model has 1 outputs, got index 1");
  PackedFunc create = Registry::Find("tvm.aot_executor.create");
  EXPECT_RAISES(create(Module(), kCpu), "was not built for the AOT executor");
}
