// JSON text as values.
#ifndef TVM_SRC_JSON_H_
#define TVM_SRC_JSON_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {

class Json {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  // Raises with the line and column of the first mistake; `what` names the text.
  static Json Parse(const std::string& text, const std::string& what);
  static std::string Quote(const std::string& text);

  Kind kind() const { return kind_; }
  // Typed access; raises with `what` and the place if the value is of another kind.
  int64_t Int(const std::string& place) const;
  double Number(const std::string& place) const;
  const std::string& String(const std::string& place) const;
  const std::vector<Json>& Array(const std::string& place) const;
  const std::vector<std::pair<std::string, Json>>& Object(const std::string& place) const;
  // The member, or null if there is none.
  const Json* Find(const std::string& key) const;
  const Json& At(const std::string& key, const std::string& place) const;
  // Like String, but also takes a number's own text: both forms occur in graphs.
  std::string Text(const std::string& place) const;

 private:
  friend class JsonParser;
  Kind kind_{Kind::kNull};
  std::string text_;  // of a string or a number
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
};

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_JSON_H_
