// Graphs of functions of a loaded library: runs, inputs and outputs, several at once; damaged graphs raise.
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <random>
#include <atomic>
#include <thread>

#include "arrays.h"
#include "check.h"

using namespace tvm::runtime;

namespace {

// out = reshape(-(x + w))
const char* const kGraph = R"({
  "nodes": [
    {"op": "null", "name": "x", "inputs": []},
    {"op": "null", "name": "w", "inputs": []},
    {"op": "tvm_op", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]],
     "attrs": {"func_name": "add", "num_inputs": "2", "num_outputs": "1", "flatten_data": "0"}},
    {"op": "tvm_op", "name": "minus", "inputs": [[2, 0, 0]],
     "attrs": {"func_name": "negate", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}},
    {"op": "tvm_op", "name": "shape", "inputs": [[3, 0, 0]],
     "attrs": {"func_name": "__nop", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}],
  "arg_nodes": [0, 1], "heads": [[4, 0, 0], [2, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5],
  "attrs": {"dltype": ["list_str", ["float32", "float32", "float32", "float32", "float32"]],
            "storage_id": ["list_int", [0, 1, 2, 3, 3]],
            "shape": ["list_shape", [[4], [4], [4], [4], [2, 2]]]}})";

Module Compiled() { return Module::LoadFromFile(COMPILED_LIBRARY); }

Module Executor(const std::string& graph = kGraph, const char* kind = "tvm.graph_executor.create") {
  return Registry::Find(kind)(graph, Compiled(), static_cast<int>(kDLCPU), 0);
}

std::vector<float> Run(const Module& executor, float x) {
  executor.GetFunction("set_input")("x", Floats({x, x, x, x}));
  executor.GetFunction("run")();
  return ValuesOf(executor.GetFunction("get_output")(0));
}

}  // namespace

TEST(a_graph_runs) {
  Module executor = Executor();
  executor.GetFunction("set_input")("w", Floats({1, 2, 3, 4}));
  EXPECT(Run(executor, 10) == (std::vector<float>{-11, -12, -13, -14}));
  NDArray output = executor.GetFunction("get_output")(0);
  EXPECT(output.Shape() == (std::vector<int64_t>{2, 2}));
  EXPECT(ValuesOf(executor.GetFunction("get_output")(1)) == (std::vector<float>{11, 12, 13, 14}));
  EXPECT_EQ(int64_t(executor.GetFunction("get_num_outputs")()), 2);
  EXPECT_EQ(int64_t(executor.GetFunction("get_input_index")("w")), 1);
}

TEST(parameters_are_loaded) {
  Module executor = Executor();
  TVMRetValue blob = Registry::Find("runtime.SaveParams")("w", Floats({1, 1, 1, 1}));
  std::string bytes = blob;
  executor.GetFunction("load_params")(TVMByteArray{bytes.data(), bytes.size()});
  EXPECT(Run(executor, 1) == (std::vector<float>{-2, -2, -2, -2}));
}

TEST(inputs_and_outputs_without_copies) {
  Module executor = Executor();
  NDArray x = Floats({1, 2, 3, 4}), w = Floats({1, 1, 1, 1}), sum = Floats({0, 0, 0, 0});
  executor.GetFunction("set_input_zero_copy")("x", x);
  executor.GetFunction("set_input_zero_copy")("w", w);
  executor.GetFunction("set_output_zero_copy")(1, sum);
  executor.GetFunction("run")();
  EXPECT(ValuesOf(sum) == (std::vector<float>{2, 3, 4, 5}));
}

TEST(wrong_inputs_are_named) {
  Module executor = Executor();
  PackedFunc set_input = executor.GetFunction("set_input");
  EXPECT_RAISES(set_input("y", Floats({1})), "no input 'y'");
  EXPECT_RAISES(set_input("x", Floats({1})), "input 0 ('x') needs (4,) float32, got (1,) float32");
  EXPECT_RAISES(set_input(9, Floats({1})), "2 inputs, got index 9");
  EXPECT_RAISES(executor.GetFunction("get_output")(2), "2 outputs, got index 2");
}

TEST(executors_run_on_many_threads_at_once) {
  WithThreads two(2);
  Module library = Compiled();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Module executor = Registry::Find("tvm.graph_executor.create")(kGraph, library, static_cast<int>(kDLCPU), 0);
      executor.GetFunction("set_input")("w", Floats({0, 0, 0, 0}));
      for (int k = 0; k < 50; ++k) {
        float x = static_cast<float>(100 * i + k);
        wrong += Run(executor, x) != std::vector<float>{-x, -x, -x, -x};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(nodes_run_one_by_one) {
  Module executor = Executor(kGraph, "tvm.graph_executor_debug.create");
  executor.GetFunction("set_input")("x", Floats({1, 1, 1, 1}));
  executor.GetFunction("set_input")("w", Floats({2, 2, 2, 2}));
  executor.GetFunction("execute_node")(2);
  EXPECT(ValuesOf(executor.GetFunction("get_node_output")(2, 0)) == (std::vector<float>{3, 3, 3, 3}));
  TVMRetValue seconds = executor.GetFunction("run_individual_node")(2, 1, 3, 0, 1, 0, 1);
  EXPECT_EQ(std::string(seconds).size(), 3 * sizeof(double));
  EXPECT_RAISES(executor.GetFunction("execute_node")(5), "5 nodes, got index 5");
}

TEST(factories_make_executors) {
  Module factory = Registry::Find("tvm.graph_executor_factory.create")(kGraph, Compiled(), "default", "w", Floats({1, 1, 1, 1}));
  Module executor = factory.GetFunction("default")(kCpu);
  EXPECT(Run(executor, 0) == (std::vector<float>{-1, -1, -1, -1}));
  EXPECT_RAISES(factory.GetFunction("debug_create")("other", kCpu), "the model 'default', got 'other'");
}

TEST(functions_that_the_library_lacks_are_named) {
  std::string graph = kGraph;
  graph.replace(graph.find("negate"), 6, "absent");
  EXPECT_RAISES(Executor(graph), "no function 'absent', which the graph's node 'minus' calls");
}

TEST(damaged_graphs_raise_or_run) {
  std::mt19937 random(3);
  const std::string graph = kGraph;
  Module library = Compiled();
  PackedFunc create = Registry::Find("tvm.graph_executor.create");
  const std::string signs = "0123456789-[]{},:\"ae ";
  for (int i = 0; i < 3000; ++i) {
    std::string text = graph;
    for (int k = random() % 3; k >= 0; --k) text[random() % text.size()] = signs[random() % signs.size()];
    try {
      Module executor = create(text, library, static_cast<int>(kDLCPU), 0);
    } catch (const Error&) {
    }
  }
}
