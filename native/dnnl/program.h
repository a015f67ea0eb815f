// A sequence of oneDNN primitives over values that may be in any of its memory layouts.
#ifndef TVM_DNNL_PROGRAM_H_
#define TVM_DNNL_PROGRAM_H_

#include <dnnl.hpp>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace dnnl_runtime {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// Row-major.
Desc PlainDesc(const Dims& dims, Type type = Type::f32);
// The layout that a primitive likes best.
Desc AnyDesc(const Dims& dims, Type type = Type::f32);

// A tensor: what it is made of, how it is laid out, and where it comes from.
struct Value {
  enum class Kind { kConstant, kArgument, kComputed };

  dnnl::memory memory;
  Kind kind{Kind::kComputed};
  int argument{-1};

  Desc desc() const { return memory.get_desc(); }
  Dims dims() const { return memory.get_desc().dims(); }
  Type type() const { return memory.get_desc().data_type(); }
};

class Program {
 public:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  const dnnl::engine& engine() const { return engine_; }

  Value Constant(const Dims& dims, void* data, Type type = Type::f32);
  Value Argument(const Dims& dims, int number, Type type = Type::f32);
  Value Computed(const Desc& desc);
  // The same memory, described otherwise.
  Value View(const Value& value, const Desc& desc);
  // Axis i of the value becomes axis `places[i]`.
  Value Permuted(const Value& value, const std::vector<int>& places);
  // The value in a layout: itself, a constant made now, or what a step copies at each run.
  Value In(const Value& value, const Desc& desc);
  Value Plain(const Value& value) { return In(value, PlainDesc(value.dims(), value.type())); }
  Value Reshaped(const Value& value, const Dims& dims);

  void Add(dnnl::primitive primitive, Arguments arguments) { steps_.emplace_back(std::move(primitive), std::move(arguments)); }
  void Copy(const Value& from, const Value& to);

  void Bind(int argument, void* data);
  void Run();

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::pair<dnnl::primitive, Arguments>> steps_;
  std::unordered_map<int, std::vector<dnnl::memory>> views_;  // of each argument
  std::vector<dnnl::memory> shown_;
};

}  // namespace dnnl_runtime
}  // namespace tvm
#endif  // TVM_DNNL_PROGRAM_H_
