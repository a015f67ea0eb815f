// Parameters and JSON: what was written comes back; damaged bytes raise, whatever the damage.
#include <tvm/runtime/registry.h>

#include <random>

#include "arrays.h"
#include "check.h"
#include "json.h"

using namespace tvm::runtime;

namespace {

std::string SavedParams() {
  TVMRetValue bytes = Registry::Find("runtime.SaveParams")("weight", Floats({1, 2, 3}), "bias", Floats({4}));
  return bytes;
}

std::vector<std::string> LoadedNames(const std::string& blob) {
  std::vector<std::string> names;
  PackedFunc add([&](TVMArgs args, TVMRetValue*) {
    NDArray array = args[1];
    if (DataBytes(*array.tensor()) > 0) names.push_back(args[0]);
  });
  Registry::Find("runtime.LoadParams")(TVMByteArray{blob.data(), blob.size()}, add);
  return names;
}

// Runs with the text; errors are welcome, anything else that goes wrong is the sanitizers' to tell.
template <class F>
void Survives(F run, const std::string& text) {
  try {
    run(text);
  } catch (const Error&) {
  }
}

// Random changes of a text: flipped bits, cuts, repeated pieces.
std::string Damaged(std::string text, std::mt19937* random) {
  for (int i = (*random)() % 3 + 1; i > 0 && !text.empty(); --i) {
    size_t place = (*random)() % text.size();
    switch ((*random)() % 4) {
      case 0: text[place] = static_cast<char>(text[place] ^ 1 << (*random)() % 8); break;
      case 1: text.resize(place); break;
      case 2: text.insert(place, text.substr((*random)() % text.size(), 16)); break;
      default: text[place] = static_cast<char>((*random)());
    }
  }
  return text;
}

}  // namespace

TEST(params_come_back) {
  EXPECT(LoadedNames(SavedParams()) == (std::vector<std::string>{"weight", "bias"}));
}

TEST(params_that_are_cut_off_are_refused) {
  const std::string blob = SavedParams();
  for (size_t size = 0; size < blob.size(); ++size) EXPECT_RAISES(LoadedNames(blob.substr(0, size)), "params blob");
}

TEST(damaged_params_raise_or_load) {
  std::mt19937 random(1);
  const std::string blob = SavedParams();
  for (int i = 0; i < 5000; ++i) Survives(LoadedNames, Damaged(blob, &random));
}

TEST(json_of_each_kind_is_read) {
  Json json = Json::Parse(R"({"a": [1, -2, "3"], "b": {"c": null}, "d": "\u00e9\n\ud83d\ude00", "e": true})", "text");
  EXPECT_EQ(json.At("a", "text").Array("a")[1].Int("a"), -2);
  EXPECT_EQ(json.At("a", "text").Array("a")[2].Int("a"), 3);
  EXPECT(json.At("b", "text").At("c", "b").kind() == Json::Kind::kNull);
  EXPECT_EQ(json.At("d", "text").String("d"), "\xC3\xA9\n\xF0\x9F\x98\x80");
  EXPECT_RAISES(json.At("x", "text"), "text has no 'x'");
  EXPECT_RAISES(json.At("b", "text").Int("b"), "b must be an integer");
}

TEST(wrong_json_names_the_place) {
  EXPECT_RAISES(Json::Parse("{\"a\":\n 1,}", "the graph"), "the graph is no valid JSON: line 2, column 4");
  for (const char* text : {"", "[", "{", "[1", "[1,", "{\"a\"", "{\"a\":", "\"", "\"\\", "\"\\u12", "tru", "1x", "[]]", "-"}) {
    EXPECT_RAISES(Json::Parse(text, "text"), "no valid JSON");
  }
  EXPECT_RAISES(Json::Parse(std::string(100000, '['), "text"), "less nesting");
}

TEST(damaged_json_raises_or_parses) {
  std::mt19937 random(2);
  const std::string text = R"({"nodes": [{"op": "null", "name": "x\u0041", "inputs": []}], "n": [1e5, -0.5, true, null]})";
  for (int i = 0; i < 5000; ++i) Survives([](const std::string& t) { Json::Parse(t, "text"); }, Damaged(text, &random));
}
