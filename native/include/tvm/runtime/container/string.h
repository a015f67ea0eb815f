// Text as an object: what containers of objects hold. Other languages see their own text.
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <tvm/runtime/object.h>

#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

namespace tvm {
namespace runtime {

class StringObj : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeString;
  static constexpr const char* _type_key = "runtime.String";
  explicit StringObj(std::string text) : text_(std::move(text)), data(text_.data()), size(text_.size()) {}
  StringObj(const StringObj&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;

 public:
  const char* data;
  uint64_t size;
};

// Never null. It does not change: an assignment refers to another text.
class String : public ObjectRef {
 public:
  using ContainerType = StringObj;
  static constexpr bool _type_is_nullable = false;

  String() : String(std::string()) {}
  String(std::string text) : ObjectRef(ObjectPtr<Object>(make_object<StringObj>(std::move(text)))) {}  // NOLINT(*)
  String(const char* text) : String(std::string(text)) {}                                              // NOLINT(*)
  explicit String(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}

  const StringObj* operator->() const { return node(); }
  const StringObj* get() const { return node(); }
  operator std::string() const { return node()->text(); }
  const char* c_str() const { return node()->data; }
  const char* data() const { return node()->data; }
  size_t size() const { return node()->size; }
  size_t length() const { return size(); }
  bool empty() const { return size() == 0; }
  char at(size_t i) const { return node()->text().at(i); }
  int compare(const String& other) const { return view().compare(other.view()); }
  int compare(const std::string& other) const { return view().compare(other); }
  int compare(const char* other) const { return view().compare(other); }
  std::string_view view() const { return node()->text(); }

 private:
  const StringObj* node() const { return static_cast<const StringObj*>(data_.get()); }
};

#define TVM_STRING_COMPARISON_(op)                                                                     \
  inline bool operator op(const String& a, const String& b) { return a.view() op b.view(); }           \
  inline bool operator op(const String& a, const std::string& b) { return a.view() op std::string_view(b); } \
  inline bool operator op(const std::string& a, const String& b) { return std::string_view(a) op b.view(); } \
  inline bool operator op(const String& a, const char* b) { return a.view() op std::string_view(b); }  \
  inline bool operator op(const char* a, const String& b) { return std::string_view(a) op b.view(); }
TVM_STRING_COMPARISON_(==)
TVM_STRING_COMPARISON_(!=)
TVM_STRING_COMPARISON_(<)
TVM_STRING_COMPARISON_(<=)
TVM_STRING_COMPARISON_(>)
TVM_STRING_COMPARISON_(>=)
#undef TVM_STRING_COMPARISON_

inline String operator+(const String& a, const String& b) { return String(std::string(a.view()).append(b.view())); }
inline String operator+(const String& a, const std::string& b) { return String(std::string(a.view()) + b); }
inline String operator+(const std::string& a, const String& b) { return String(a + std::string(b.view())); }
inline String operator+(const String& a, const char* b) { return String(std::string(a.view()) + b); }
inline String operator+(const char* a, const String& b) { return String(a + std::string(b.view())); }

inline std::ostream& operator<<(std::ostream& os, const String& text) { return os << text.view(); }

// Of texts their contents, of other objects their identity.
struct ObjectHash {
  size_t operator()(const ObjectRef& ref) const {
    if (auto* text = ref.as<StringObj>()) return std::hash<std::string>()(text->text());
    return ObjectPtrHash()(ref);
  }
};

struct ObjectEqual {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const {
    auto* left = a.as<StringObj>();
    auto* right = b.as<StringObj>();
    return left != nullptr && right != nullptr ? left->text() == right->text() : a.same_as(b);
  }
};

}  // namespace runtime
using runtime::ObjectEqual;
using runtime::ObjectHash;
using runtime::String;
using runtime::StringObj;
}  // namespace tvm

template <>
struct std::hash<tvm::runtime::String> {
  size_t operator()(const tvm::runtime::String& text) const { return std::hash<std::string_view>()(text.view()); }
};
#endif  // TVM_RUNTIME_CONTAINER_STRING_H_
