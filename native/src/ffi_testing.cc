// Functions for tests of the calling convention, under the classic names.
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <chrono>
#include <thread>

namespace tvm {
namespace runtime {

void CheckCallback(const PackedFunc& callback) {
  if (!callback.defined()) ThrowTypeError("expected PackedFunc, got None");
}

// Events of the calling thread, as a log that tests read.
std::vector<String>& Events() {
  static thread_local std::vector<String> events;
  return events;
}

TVM_REGISTER_GLOBAL("testing.reset_events").set_body_typed([] { Events().clear(); });

TVM_REGISTER_GLOBAL("testing.record_event").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args.size() > 0 && args[0].is_str()) {
    Events().push_back(args[0]);
  } else {
    *rv = PackedFunc([](TVMArgs args, TVMRetValue*) { Events().push_back(args[0]); });
  }
});

TVM_REGISTER_GLOBAL("testing.dump_events").set_body_typed([] { return Array<String>(Events()); });

TVM_REGISTER_GLOBAL("testing.nop").set_body([](TVMArgs, TVMRetValue*) {});

TVM_REGISTER_GLOBAL("testing.echo").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args[0]; });

TVM_REGISTER_GLOBAL("testing.identity_cpp").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args[0]; });

TVM_REGISTER_GLOBAL("testing.device_test").set_body_typed([](DLDevice device, int type, int id) {
  ICHECK_EQ(static_cast<int>(device.device_type), type);
  ICHECK_EQ(static_cast<int>(device.device_id), id);
  return device;
});

TVM_REGISTER_GLOBAL("testing.test_wrap_callback").set_body_typed([](PackedFunc callback) {
  CheckCallback(callback);
  return TypedPackedFunc<void()>([callback] { callback(); }).packed();
});

TVM_REGISTER_GLOBAL("testing.test_wrap_callback_suppress_err").set_body_typed([](PackedFunc callback) {
  CheckCallback(callback);
  return TypedPackedFunc<void()>([callback] {
           try {
             callback();
           } catch (const std::exception&) {
           }
         })
      .packed();
});

TVM_REGISTER_GLOBAL("testing.test_raise_error_callback").set_body_typed([](std::string text) {
  return TypedPackedFunc<void()>([text] { LOG(FATAL) << text; }).packed();
});

TVM_REGISTER_GLOBAL("testing.test_check_eq_callback").set_body_typed([](std::string text) {
  return TypedPackedFunc<void(int, int)>([text](int x, int y) { CHECK_EQ(x, y) << text; }).packed();
});

TVM_REGISTER_GLOBAL("testing.ErrorTest").set_body_typed([](int x, int y) {
  CHECK_EQ(x, y) << "ValueError: expect x and y to be equal.";
  if (x == 1) LOG(FATAL) << "InternalError: cannot reach here";
});

TVM_REGISTER_GLOBAL("testing.object_use_count").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = ObjectRef(args[0]).use_count() - 1;
});

TVM_REGISTER_GLOBAL("testing.AcceptsBool").set_body_typed([](bool value) { return value; });
TVM_REGISTER_GLOBAL("testing.AcceptsInt").set_body_typed([](int value) { return value; });
TVM_REGISTER_GLOBAL("testing.AcceptsObjectRef").set_body_typed([](ObjectRef value) { return value; });

TVM_REGISTER_GLOBAL("testing.AcceptsObjectRefArray").set_body_typed([](Array<ObjectRef> items) { return items[0]; });
TVM_REGISTER_GLOBAL("testing.AcceptsMapReturnsValue").set_body_typed([](Map<ObjectRef, ObjectRef> map, ObjectRef key) {
  return map[key];
});
TVM_REGISTER_GLOBAL("testing.AcceptsMapReturnsMap").set_body_typed([](Map<ObjectRef, ObjectRef> map) { return map; });

TVM_REGISTER_GLOBAL("testing.check_signals").set_body_typed([] { EnvCheckSignals(); });

// Looks for signals ten times a second.
TVM_REGISTER_GLOBAL("testing.run_check_signal").set_body_typed([](int seconds) {
  for (int i = 0; i < 10 * seconds; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EnvCheckSignals();
  }
});

TVM_REGISTER_GLOBAL("testing.sleep_in_ffi").set_body_typed([](double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
});

}  // namespace runtime
}  // namespace tvm
