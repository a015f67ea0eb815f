#include "program.h"

#include <tvm/runtime/error.h>

namespace tvm {
namespace dnnl_runtime {

Desc PlainDesc(const Dims& dims, Type type) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return Desc(dims, type, strides);
}

Desc AnyDesc(const Dims& dims, Type type) { return Desc(dims, type, dnnl::memory::format_tag::any); }

Value Program::Constant(const Dims& dims, void* data, Type type) {
  return {dnnl::memory(PlainDesc(dims, type), engine_, data), Value::Kind::kConstant};
}

Value Program::Argument(const Dims& dims, int number, Type type) {
  dnnl::memory memory(PlainDesc(dims, type), engine_, DNNL_MEMORY_NONE);
  views_[number].push_back(memory);
  return {memory, Value::Kind::kArgument, number};
}

Value Program::Computed(const Desc& desc) { return {dnnl::memory(desc, engine_)}; }

Value Program::View(const Value& value, const Desc& desc) {
  Value view = value;
  void* data = value.kind == Value::Kind::kArgument ? DNNL_MEMORY_NONE : value.memory.get_data_handle();
  view.memory = dnnl::memory(desc, engine_, data);
  if (value.kind == Value::Kind::kArgument) {
    views_[value.argument].push_back(view.memory);
  } else {
    shown_.push_back(value.memory);  // a view does not own what it shows
  }
  return view;
}

Value Program::Permuted(const Value& value, const std::vector<int>& places) {
  return View(value, value.desc().permute_axes(places));
}

Value Program::Reshaped(const Value& value, const Dims& dims) {
  Desc wanted = PlainDesc(dims, value.type()), found = PlainDesc(value.dims(), value.type());
  if (wanted.get_size() != found.get_size()) {
    runtime::ThrowValueError("a tensor for oneDNN has ", found.get_size(), " bytes, it expects ", wanted.get_size());
  }
  return View(Plain(value), wanted);
}

Value Program::In(const Value& value, const Desc& desc) {
  if (value.desc() == desc) return value;
  Value result = Computed(desc);
  if (value.kind == Value::Kind::kConstant) {
    dnnl::memory from = value.memory;
    dnnl::reorder(from, result.memory).execute(stream_, from, result.memory);
    stream_.wait();
    result.kind = Value::Kind::kConstant;
  } else {
    Copy(value, result);
  }
  return result;
}

void Program::Copy(const Value& from, const Value& to) {
  Add(dnnl::reorder(from.memory, to.memory), {{DNNL_ARG_FROM, from.memory}, {DNNL_ARG_TO, to.memory}});
}

void Program::Bind(int argument, void* data) {
  for (dnnl::memory& view : views_[argument]) view.set_data_handle(data);
}

void Program::Run() {
  for (const auto& [primitive, arguments] : steps_) primitive.execute(stream_, arguments);
  stream_.wait();
}

}  // namespace dnnl_runtime
}  // namespace tvm
