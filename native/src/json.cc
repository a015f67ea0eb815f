// A strict parser of JSON.
#include "json.h"

#include <tvm/runtime/error.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tvm {
namespace runtime {

class JsonParser {
 public:
  JsonParser(const std::string& text, const std::string& what) : text_(text), what_(what) {}

  Json ParseAll() {
    Json value = ParseValue(0);
    SkipSpace();
    if (pos_ != text_.size()) Fail("the end of the text");
    return value;
  }

 private:
  static constexpr int kMaxDepth = 200;

  [[noreturn]] void Fail(const char* expected) {
    size_t line = 1 + std::count(text_.begin(), text_.begin() + pos_, '\n');
    size_t start = text_.rfind('\n', pos_ == 0 ? 0 : pos_ - 1);
    size_t column = pos_ - (start == std::string::npos ? 0 : start + 1) + 1;
    std::string found = pos_ < text_.size() ? "'" + std::string(1, text_[pos_]) + "'" : "the end";
    ThrowValueError(what_, " is no valid JSON: line ", line, ", column ", column, ": expected ", expected, ", found ", found);
  }

  void SkipSpace() {
    while (pos_ < text_.size() && std::strchr(" \t\r\n", text_[pos_]) && text_[pos_] != '\0') ++pos_;
  }

  char Peek() {
    SkipSpace();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }

  void Expect(char c, const char* expected) {
    if (Peek() != c || pos_ >= text_.size()) Fail(expected);
    ++pos_;
  }

  Json ParseValue(int depth) {
    if (depth > kMaxDepth) Fail("less nesting");
    switch (Peek()) {
      case '{': return ParseObject(depth);
      case '[': return ParseArray(depth);
      case '"': {
        Json value;
        value.kind_ = Json::Kind::kString;
        value.text_ = ParseString();
        return value;
      }
      case 't': return ParseWord("true", Json::Kind::kBool);
      case 'f': return ParseWord("false", Json::Kind::kBool);
      case 'n': return ParseWord("null", Json::Kind::kNull);
      default: return ParseNumber();
    }
  }

  Json ParseWord(const char* word, Json::Kind kind) {
    size_t size = std::strlen(word);
    if (text_.compare(pos_, size, word) != 0) Fail("a value");
    pos_ += size;
    Json value;
    value.kind_ = kind;
    value.text_ = word;
    return value;
  }

  Json ParseNumber() {
    size_t start = pos_;
    while (pos_ < text_.size() && text_[pos_] != '\0' && std::strchr("+-.0123456789eE", text_[pos_])) ++pos_;
    Json value;
    value.kind_ = Json::Kind::kNumber;
    value.text_ = text_.substr(start, pos_ - start);
    char* end = nullptr;
    std::strtod(value.text_.c_str(), &end);
    if (value.text_.empty() || *end != '\0') {
      pos_ = start;
      Fail("a value");
    }
    return value;
  }

  Json ParseArray(int depth) {
    Json value;
    value.kind_ = Json::Kind::kArray;
    Expect('[', "'['");
    if (Peek() == ']') {
      ++pos_;
      return value;
    }
    for (;;) {
      value.items_.push_back(ParseValue(depth + 1));
      if (Peek() == ',') {
        ++pos_;
        continue;
      }
      Expect(']', "',' or ']'");
      return value;
    }
  }

  Json ParseObject(int depth) {
    Json value;
    value.kind_ = Json::Kind::kObject;
    Expect('{', "'{'");
    if (Peek() == '}') {
      ++pos_;
      return value;
    }
    for (;;) {
      if (Peek() != '"') Fail("a name in quotes");
      std::string key = ParseString();
      Expect(':', "':'");
      value.members_.emplace_back(std::move(key), ParseValue(depth + 1));
      if (Peek() == ',') {
        ++pos_;
        continue;
      }
      Expect('}', "',' or '}'");
      return value;
    }
  }

  std::string ParseString() {
    Expect('"', "'\"'");
    std::string result;
    for (;;) {
      if (pos_ >= text_.size()) Fail("'\"'");
      char c = text_[pos_++];
      if (c == '"') return result;
      if (c != '\\') {
        result += c;
        continue;
      }
      if (pos_ >= text_.size()) Fail("an escape");
      AppendEscape(text_[pos_++], &result);
    }
  }

  void AppendEscape(char c, std::string* result) {
    switch (c) {
      case 'n': *result += '\n'; return;
      case 't': *result += '\t'; return;
      case 'r': *result += '\r'; return;
      case 'b': *result += '\b'; return;
      case 'f': *result += '\f'; return;
      case '"': case '\\': case '/': *result += c; return;
      case 'u': AppendUtf8(ParseCodePoint(), result); return;
      default: Fail("an escape");
    }
  }

  uint32_t ParseHex() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++pos_) {
      if (pos_ >= text_.size() || !std::isxdigit(static_cast<unsigned char>(text_[pos_]))) Fail("four hexadecimal digits");
      value = value * 16 + static_cast<uint32_t>(std::strtoul(std::string(1, text_[pos_]).c_str(), nullptr, 16));
    }
    return value;
  }

  uint32_t ParseCodePoint() {
    uint32_t high = ParseHex();
    bool is_pair = high >= 0xD800 && high < 0xDC00 && text_.compare(pos_, 2, "\\u") == 0;
    if (!is_pair) return high;
    pos_ += 2;
    return 0x10000 + ((high - 0xD800) << 10) + (ParseHex() - 0xDC00);
  }

  static void AppendUtf8(uint32_t code, std::string* result) {
    auto byte = [&](uint32_t value) { *result += static_cast<char>(value); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
    } else {
      byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
    }
  }

  const std::string& text_;
  const std::string& what_;
  size_t pos_{0};
};

Json Json::Parse(const std::string& text, const std::string& what) { return JsonParser(text, what).ParseAll(); }

std::string Json::Quote(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      result += buffer;
    } else {
      result += c;
    }
  }
  return result + '"';
}

int64_t Json::Int(const std::string& place) const {
  char* end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(text_.c_str(), &end, 10);
  bool is_text = kind_ == Kind::kNumber || kind_ == Kind::kString;
  if (!is_text || text_.empty() || *end != '\0' || errno != 0) ThrowValueError(place, " must be an integer");
  return value;
}

double Json::Number(const std::string& place) const {
  if (kind_ != Kind::kNumber) ThrowValueError(place, " must be a number");
  return std::strtod(text_.c_str(), nullptr);
}

const std::string& Json::String(const std::string& place) const {
  if (kind_ != Kind::kString) ThrowValueError(place, " must be a string");
  return text_;
}

std::string Json::Text(const std::string& place) const {
  if (kind_ != Kind::kString && kind_ != Kind::kNumber) ThrowValueError(place, " must be a string or a number");
  return text_;
}

const std::vector<Json>& Json::Array(const std::string& place) const {
  if (kind_ != Kind::kArray) ThrowValueError(place, " must be a list");
  return items_;
}

const std::vector<std::pair<std::string, Json>>& Json::Object(const std::string& place) const {
  if (kind_ != Kind::kObject) ThrowValueError(place, " must be an object");
  return members_;
}

const Json* Json::Find(const std::string& key) const {
  for (const auto& member : members_) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const Json& Json::At(const std::string& key, const std::string& place) const {
  const Json* value = Find(key);
  if (value == nullptr) ThrowValueError(place, " has no '", key, "'");
  return *value;
}

}  // namespace runtime
}  // namespace tvm
