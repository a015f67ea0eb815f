// Containers of the runtime, used as programs for the classic release use them.
#include <tvm/runtime/container/adt.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <unordered_map>

using namespace tvm;
using namespace tvm::runtime;

void UseStrings() {
  String s = "hello";
  String same("hello"), from_std(std::string("abc")), empty;
  ICHECK_EQ(s->size, 5U);
  ICHECK_EQ(std::string(s->data), "hello");
  ICHECK_EQ(s.size(), s.length());
  ICHECK(s == same && s == "hello" && "hello" == s && s == std::string("hello") && std::string("hello") == s);
  ICHECK(!s.same_as(same));
  ICHECK(s != from_std && from_std < s && from_std <= "abc" && s > "a" && s >= std::string("hello"));
  ICHECK(empty.empty() && std::string(s.c_str()) == "hello" && s.data()[1] == 'e' && s.at(1) == 'e');
  ICHECK(s.compare(same) == 0 && s.compare("hellp") < 0 && s.compare(std::string("a")) > 0);
  std::string text = s;
  text = s + " world";
  String joined = s + same + "!" + std::string("?");
  ICHECK_EQ(joined, "hellohello!?");
  ICHECK_EQ("<" + s + ">", "<hello>");
  ICHECK_EQ(std::string("<") + s, "<hello");
  s = "changed";
  s = std::string("changed again");
  ICHECK_EQ(std::hash<String>()(same), std::hash<String>()(String("hello")));
  ICHECK_EQ(ObjectHash()(same), ObjectHash()(String("hello")));
  ICHECK(ObjectEqual()(same, String("hello")) && !ObjectEqual()(same, String("b")));
  std::ostringstream os;
  os << same;
  ICHECK_EQ(os.str(), "hello");
  std::unordered_map<String, int> table{{"one", 1}};
  std::map<String, int> sorted{{"two", 2}, {"one", 1}};
  ICHECK_EQ(table.at("one"), 1);
  ICHECK_EQ(sorted.begin()->first, "one");
  String with_zero(std::string("a\0b", 3));
  ICHECK_EQ(with_zero.size(), 3U);
  ObjectRef object = same;
  ICHECK(object.as<StringObj>() != nullptr && object->IsInstance<StringObj>());
  ICHECK_EQ(Downcast<String>(object), "hello");
  ICHECK_EQ(object->GetTypeKey(), "runtime.String");
}

void UseShapes() {
  ShapeTuple shape{2, 3, 4};
  ICHECK_EQ(shape->size, 3U);
  ICHECK_EQ(shape->data[1], 3);
  ICHECK_EQ(shape->Product(), 24);
  ICHECK(shape.size() == 3 && !shape.empty() && shape[2] == 4 && shape.at(0) == 2 && shape.front() == 2 && shape.back() == 4);
  std::vector<ShapeTuple::index_type> extents(shape.begin(), shape.end());
  ICHECK(ShapeTuple(extents) == shape && ShapeTuple(extents.begin(), extents.end()) == shape && shape != ShapeTuple());
  std::ostringstream os;
  os << shape;
  ICHECK_EQ(os.str(), "[2, 3, 4]");
  int64_t sum = 0;
  for (int64_t extent : shape) sum += extent;
  ICHECK_EQ(sum, 9);
  ICHECK_EQ(shape.data()[0], 2);
}

Optional<String> NameOf(int i) {
  if (i == 0) return NullOpt;
  if (i == 1) return String("one");
  return "many";
}

void UseOptionals() {
  Optional<String> none = NullOpt, text = NameOf(1);
  ICHECK(none == nullptr && !none.defined() && !none && NameOf(0) == NullOpt);
  ICHECK(text != nullptr && text && text.defined() && text.has_value() && text == "one" && text != "two");
  ICHECK_EQ(text.value(), "one");
  ICHECK_EQ(none.value_or("none"), "none");
  ICHECK_EQ(text->size, 3U);
  ICHECK_EQ(NameOf(2).value(), "many");
  text = nullptr;
  ICHECK(!text.defined());
  text = String("x");
  Optional<Array<String>> names = Array<String>{"a"};
  if (names) ICHECK_EQ(names.value()[0], "a");
  Optional<NDArray> array;
  Optional<PackedFunc> function;
  Optional<ObjectRef> any = String("any");
  ICHECK(!array.defined() && !function.defined() && any.defined());
}

void UseArrays() {
  Array<String> names{"b", "a"};
  names.push_back("c");
  ICHECK_EQ(names.size(), 3U);
  ICHECK(names[0] == "b" && names.front() == "b" && names.back() == "c" && !names.empty());
  Array<String> copy = names;
  ICHECK(copy.same_as(names));
  copy.Set(0, "changed");
  ICHECK(!copy.same_as(names) && names[0] == "b" && copy[0] == "changed");
  copy.insert(copy.begin() + 1, "second");
  ICHECK_EQ(copy[1], "second");
  copy.erase(copy.begin());
  copy.pop_back();
  ICHECK(copy.size() == 2 && copy[0] == "second" && copy[1] == "a");
  copy.erase(copy.begin(), copy.end());
  copy.reserve(4);
  ICHECK(copy.empty());
  std::string joined;
  for (const String& name : names) joined += std::string(name);
  for (auto it = names.rbegin(); it != names.rend(); ++it) joined += std::string(*it);
  ICHECK_EQ(joined, "baccab");
  Array<Array<ObjectRef>> nested{{names, String("x")}, {}};
  ICHECK(nested[0].size() == 2 && Downcast<Array<String>>(nested[0][0])[2] == "c");
  Array<String> mapped = names.Map([](String name) { return name + "!"; });
  ICHECK_EQ(mapped[2], "c!");
  names.MutateByApply([](String name) { return String("<") + name; });
  ICHECK_EQ(names[0], "<b");
  std::vector<String> list{"p", "q"};
  Array<String> from_list(list), ranged(list.begin(), list.end()), filled(3, String("z"));
  Array<ObjectRef> wider = from_list;
  ICHECK(from_list.size() == 2 && ranged[1] == "q" && filled.size() == 3 && filled[2] == "z" && wider.size() == 2);
  filled.clear();
  filled.resize(2);
  ICHECK(filled.size() == 2);
  filled.assign(list.begin(), list.end());
  ICHECK_EQ(filled[0], "p");
  ICHECK_EQ(std::find(names.begin(), names.end(), String("<a")) - names.begin(), 1);
  ICHECK(ranged.as<ArrayNode>() != nullptr);
}

void UseMaps() {
  Map<String, ObjectRef> map{{"one", String("1")}, {"two", ShapeTuple{1, 2}}};
  map.Set("three", Array<String>{"x"});
  ICHECK(map.size() == 3 && !map.empty() && map.count("one") == 1 && map.count("four") == 0);
  ICHECK_EQ(Downcast<String>(map["one"]), "1");
  ICHECK_EQ(Downcast<ShapeTuple>(map.at("two"))[1], 2);
  ICHECK(map.Get("four") == nullptr && map.Get("one").defined());
  ICHECK(map.find("two") != map.end() && map.find("none") == map.end());
  ICHECK_EQ((*map.find("one")).first, "one");
  ICHECK_EQ(map.find("one")->first, "one");
  std::string keys;
  for (const auto& item : map) keys += std::string(item.first) + " ";
  for (auto it = map.begin(); it != map.end(); ++it) keys += std::string((*it).first) + " ";
  ICHECK_EQ(keys, "one two three one two three ");
  Map<String, ObjectRef> copy = map;
  copy.erase("two");
  ICHECK(copy.size() == 2 && map.size() == 3 && copy.count("three") == 1 && copy.find("two") == copy.end());
  ICHECK_EQ(Downcast<Array<String>>(copy["three"])[0], "x");
  copy.clear();
  ICHECK(copy.empty());
  std::unordered_map<String, String> table{{"k", "v"}};
  Map<String, String> from_table(table), ranged(table.begin(), table.end());
  ICHECK(from_table.at("k") == "v" && ranged["k"] == "v");
  Map<String, String> merged = Merge(from_table, Map<String, String>{{"k", "w"}, {"l", "x"}});
  ICHECK(merged.size() == 2 && merged["k"] == "w");
  ICHECK(merged.as<MapNode>() != nullptr);
}

void UseTuples() {
  std::vector<ObjectRef> fields{String("a"), NDArray::Empty({2}, DataType::Float(32), {kDLCPU, 0})};
  ADT adt(3, fields), listed(1, {String("x")}), ranged(2, fields.begin(), fields.end());
  ICHECK(adt.tag() == 3 && adt.size() == 2 && Downcast<String>(adt[0]) == "a" && listed.size() == 1 && ranged.size() == 2);
  ADT tuple = ADT::Tuple(String("p"), adt), same = ADT::Tuple(fields);
  ICHECK(tuple.tag() == 0 && tuple.size() == 2 && Downcast<ADT>(tuple[1]).tag() == 3 && same.size() == 2);
  ICHECK_EQ(Downcast<NDArray>(adt[1])->shape[0], 2);
  ICHECK(tuple.as<ADTObj>()->tag == 0);
}

TVM_REGISTER_GLOBAL("demo.greet").set_body_typed([](String name, Optional<String> title) -> String {
  return title.value_or("dear") + " " + name;
});
TVM_REGISTER_GLOBAL("demo.volume").set_body_typed([](ShapeTuple shape) { return shape->Product(); });
TVM_REGISTER_GLOBAL("demo.double_shape").set_body_typed([](ShapeTuple shape) {
  std::vector<int64_t> extents(shape.begin(), shape.end());
  for (int64_t& extent : extents) extent *= 2;
  return ShapeTuple(extents);
});
TVM_REGISTER_GLOBAL("demo.join").set_body_typed([](Array<String> names, Map<String, Array<ObjectRef>> more) {
  std::string text;
  for (String name : names) text += std::string(name) + ",";
  for (auto item : more) text += std::string(item.first) + ":" + std::to_string(item.second.size()) + ",";
  return String(text);
});
TVM_REGISTER_GLOBAL("demo.objects").set_body_typed([](Array<ObjectRef> items) {
  items.push_back(String("last"));
  return items;
});
TVM_REGISTER_GLOBAL("demo.first_or_none").set_body_typed([](Array<String> names) -> Optional<String> {
  if (names.empty()) return NullOpt;
  return names[0];
});
TVM_REGISTER_GLOBAL("demo.type_of").set_body([](TVMArgs args, TVMRetValue* rv) {
  DataType dtype = args[0];
  String name = args[1];
  *rv = name + ":" + DLDataType2String(dtype.with_lanes(4));
});

void UseFunctions() {
  String greeting = (*Registry::Get("demo.greet"))(String("Ada"), nullptr);
  ICHECK_EQ(greeting, "dear Ada");
  std::string titled = (*Registry::Get("demo.greet"))("Ada", "Countess");
  ICHECK_EQ(titled, "Countess Ada");
  int64_t volume = (*Registry::Get("demo.volume"))(ShapeTuple{2, 3});
  ICHECK_EQ(volume, 6);
  TypedPackedFunc<String(String, Optional<String>)> greet = *Registry::Get("demo.greet");
  ICHECK_EQ(greet("Bob", NullOpt), "dear Bob");
  Array<ObjectRef> objects = (*Registry::Get("demo.objects"))(Array<ObjectRef>{ShapeTuple{1}});
  ICHECK_EQ(Downcast<String>(objects[1]), "last");
}

int main() {
  UseStrings();
  UseShapes();
  UseOptionals();
  UseArrays();
  UseMaps();
  UseTuples();
  UseFunctions();
  std::puts("all is well");
}
