// What the two C++ programs share: run a model on a file of numbers, print the five best classes.
#ifndef EXAMPLES_DEPLOY_CPP_TOP5_H_
#define EXAMPLES_DEPLOY_CPP_TOP5_H_

#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

inline void PrintTop5(tvm::runtime::Module model, const std::string& input_path) {
  using tvm::runtime::Module;
  using tvm::runtime::NDArray;

  Module executor = model.GetFunction("default")(DLDevice{kDLCPU, 0});
  NDArray input = executor.GetFunction("get_input")("data");

  std::ifstream file(input_path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw std::runtime_error("cannot read " + input_path);
  input.CopyFromBytes(bytes.data(), bytes.size());  // raises if the file has another size

  executor.GetFunction("run")();
  NDArray output = executor.GetFunction("get_output")(0);
  std::vector<float> scores(output.Shape().back());
  output.CopyToBytes(scores.data(), scores.size() * sizeof(float));

  std::vector<int> classes(scores.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) { return scores[a] > scores[b]; });
  for (int i = 0; i < 5; ++i) std::printf("class %4d  %.6f\n", classes[i], scores[classes[i]]);
}

#endif  // EXAMPLES_DEPLOY_CPP_TOP5_H_
