// Tagged tuples: values of algebraic data types, and plain tuples (tag 0).
#ifndef TVM_RUNTIME_CONTAINER_ADT_H_
#define TVM_RUNTIME_CONTAINER_ADT_H_

#include <tvm/runtime/object.h>

#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

namespace tvm {
namespace runtime {

class TVM_DLL ADTObj : public Object {
 public:
  ADTObj(int64_t tag, std::vector<ObjectRef> fields) : tag(tag), fields(std::move(fields)) {}
  ~ADTObj();

  int64_t tag;
  std::vector<ObjectRef> fields;
  static constexpr const char* _type_key = "runtime.ADT";
  TVM_DECLARE_FINAL_OBJECT_INFO(ADTObj, Object);
};

class ADT : public ObjectRef {
 public:
  ADT(int64_t tag, std::vector<ObjectRef> fields)
      : ObjectRef(ObjectPtr<Object>(make_object<ADTObj>(tag, std::move(fields)))) {}
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  ADT(int64_t tag, It first, It last) : ADT(tag, std::vector<ObjectRef>(first, last)) {}
  ADT(int64_t tag, std::initializer_list<ObjectRef> fields) : ADT(tag, std::vector<ObjectRef>(fields)) {}
  static ADT Tuple(std::vector<ObjectRef> fields) { return ADT(0, std::move(fields)); }
  template <class... Fields, class = std::enable_if_t<std::conjunction<std::is_base_of<ObjectRef, std::decay_t<Fields>>...>::value>>
  static ADT Tuple(Fields&&... fields) {
    return ADT(0, std::vector<ObjectRef>{std::forward<Fields>(fields)...});
  }

  int64_t tag() const { return node()->tag; }
  size_t size() const { return node()->fields.size(); }
  const ObjectRef& operator[](size_t i) const { return node()->fields.at(i); }
  TVM_DEFINE_OBJECT_REF_METHODS(ADT, ObjectRef, ADTObj);

 private:
  ADTObj* node() const { return static_cast<ADTObj*>(data_.get()); }
};

}  // namespace runtime
using runtime::ADT;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_ADT_H_
