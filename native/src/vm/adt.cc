// Tagged tuples: their release, and how other languages make and read them.
#include <tvm/runtime/container/adt.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {

// A long list must not be released by recursion: what the outermost tuple held waits in a queue of the thread.
ADTObj::~ADTObj() {
  thread_local std::vector<ObjectRef>* pending = nullptr;
  if (pending != nullptr) {
    for (ObjectRef& field : fields) pending->push_back(std::move(field));
    return;
  }
  std::vector<ObjectRef> queue = std::move(fields);
  pending = &queue;
  while (!queue.empty()) {
    ObjectRef last = std::move(queue.back());
    queue.pop_back();
  }
  pending = nullptr;
}

TVM_REGISTER_OBJECT_TYPE(ADTObj);

namespace {

ADTObj* AsADT(const TVMArgValue& value) {
  ADTObj* adt = value.operator ObjectRef().as<ADTObj>();
  if (adt == nullptr) ThrowTypeError("expected a tuple or a value of a data type, got ", ForeignTypeName(value.operator ObjectRef().get()));
  return adt;
}

std::vector<ObjectRef> Fields(TVMArgs args, int first) {
  std::vector<ObjectRef> fields;
  for (int i = first; i < args.num_args; ++i) fields.push_back(args[i]);
  return fields;
}

}  // namespace

// (tag, field, ...)
TVM_REGISTER_GLOBAL("runtime.NativeADT").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = ADT(int64_t(args[0]), Fields(args, 1)); });
TVM_REGISTER_GLOBAL("runtime.NativeADTTag").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = AsADT(args[0])->tag; });
TVM_REGISTER_GLOBAL("runtime.NativeADTSize").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = static_cast<int64_t>(AsADT(args[0])->fields.size());
});
TVM_REGISTER_GLOBAL("runtime.NativeADTField").set_body([](TVMArgs args, TVMRetValue* rv) {
  ADTObj* adt = AsADT(args[0]);
  int64_t i = args[1];
  int64_t count = static_cast<int64_t>(adt->fields.size());
  if (i < 0 || i >= count) throw Error(Cat("IndexError: field ", i, " is out of range: there are ", count, " fields"));
  *rv = adt->fields[i];
});

}  // namespace runtime
}  // namespace tvm
