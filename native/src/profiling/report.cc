// Reports: tables, comma-separated values, JSON both ways.
#include <tvm/node/reflection.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "../json.h"

namespace tvm {
namespace runtime {
namespace profiling {
namespace {

constexpr const char* kDuration = "Duration (us)";
const std::vector<std::string> kFirstColumns = {"Name", kDuration, "Percent", "Device", "Count", "Argument Shapes", kModelNodes};
const std::vector<std::string> kTextColumns = {"Name", "Device", "Argument Shapes", kModelNodes, "Hash"};
// Of lines that are not wide. Shapes are cut before names are.
constexpr size_t kLineWidth = 120;
constexpr size_t kLeastTextWidth = 15;
const std::vector<std::vector<std::string>> kCutColumns = {{"Argument Shapes"}, {"Name", kModelNodes}};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

enum class Kind { kText, kCount, kDuration, kPercent, kRatio };
constexpr std::pair<Kind, const char*> kJsonNames[] = {{Kind::kText, "string"},
                                                       {Kind::kCount, "count"},
                                                       {Kind::kDuration, "microseconds"},
                                                       {Kind::kPercent, "percent"},
                                                       {Kind::kRatio, "ratio"}};

struct Metric {
  Kind kind{Kind::kText};
  std::string text;
  double number{0};   // of all kinds but counts and texts
  int64_t count{0};

  double value() const { return kind == Kind::kCount ? static_cast<double>(count) : number; }
};

Metric Read(const ObjectRef& object) {
  if (auto* text = object.as<StringObj>()) return {Kind::kText, text->text()};
  if (auto* count = object.as<CountNode>()) return {Kind::kCount, "", 0, count->value};
  if (auto* duration = object.as<DurationNode>()) return {Kind::kDuration, "", duration->microseconds};
  if (auto* percent = object.as<PercentNode>()) return {Kind::kPercent, "", percent->percent};
  if (auto* ratio = object.as<RatioNode>()) return {Kind::kRatio, "", ratio->ratio};
  ThrowTypeError("a metric is a text, Count, Duration, Percent or Ratio, got ", ForeignTypeName(object.get()));
}

template <class Node, class T>
ObjectRef Wrapped(T value) {
  return ObjectRef(ObjectPtr<Object>(make_object<Node>(value)));
}

// The metrics of one call, in their order.
class Row {
 public:
  const Metric* Find(const std::string& name) const {
    for (const auto& item : items) {
      if (item.first == name) return &item.second;
    }
    return nullptr;
  }
  double Duration() const {
    const Metric* duration = Find(kDuration);
    return duration == nullptr ? 0 : duration->value();
  }
  std::vector<std::pair<std::string, Metric>> items;
};

Row ReadRow(const Map<String, ObjectRef>& metrics) {
  Row row;
  for (const auto& metric : metrics) row.items.emplace_back(metric.first, Read(metric.second));
  return row;
}

std::vector<Row> ReadRows(const Array<Map<String, ObjectRef>>& calls) {
  std::vector<Row> rows;
  for (const auto& call : calls) rows.push_back(ReadRow(call));
  return rows;
}

std::vector<std::string> ColumnsOf(const std::vector<Row>& rows) {
  std::vector<std::string> columns, others;
  for (const std::string& name : kFirstColumns) {
    bool is_there = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.Find(name) != nullptr; });
    if (is_there) columns.push_back(name);
  }
  for (const Row& row : rows) {
    for (const auto& item : row.items) {
      if (!Contains(columns, item.first)) columns.push_back(item.first);
    }
  }
  return columns;
}

// One row for several: times, counts and parts add up, ratios are averaged by time.
Metric JoinMetric(const std::vector<Row>& rows, const std::string& name) {
  Metric joined;
  double weights = 0;
  bool is_first = true;
  for (const Row& row : rows) {
    const Metric* metric = row.Find(name);
    if (metric == nullptr) continue;
    const double weight = metric->kind != Kind::kRatio ? 1 : row.Duration() == 0 ? 1 : row.Duration();
    if (is_first) joined = {metric->kind, metric->text};
    if (!is_first && name == kModelNodes) joined.text += ", " + metric->text;
    is_first = false;
    joined.number += weight * metric->number;
    joined.count += metric->count;
    weights += weight;
  }
  if (joined.kind == Kind::kRatio) joined.number /= weights;
  return joined;
}

Row Join(const std::vector<Row>& rows) {
  Row joined;
  for (const std::string& name : ColumnsOf(rows)) joined.items.emplace_back(name, JoinMetric(rows, name));
  return joined;
}

// Joins the rows whose texts are the same, whichever nodes of the model they compute.
std::vector<Row> Aggregate(const std::vector<Row>& rows) {
  std::map<std::vector<std::string>, size_t> places;
  std::vector<std::vector<Row>> groups;
  for (const Row& row : rows) {
    std::vector<std::string> texts;
    for (const auto& item : row.items) {
      if (item.second.kind == Kind::kText && item.first != kModelNodes) texts.push_back(item.second.text);
    }
    auto [it, is_new] = places.try_emplace(texts, groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(row);
  }
  std::vector<Row> joined;
  for (const auto& group : groups) joined.push_back(Join(group));
  return joined;
}

std::string Grouped(std::string number) {  // 1234567.80 -> 1,234,567.80
  size_t start = number[0] == '-' ? 1 : 0;
  size_t end = std::min(number.find('.'), number.size());
  for (size_t at = end; at > start + 3 && std::isdigit(static_cast<unsigned char>(number[at - 1]));) {
    at -= 3;
    number.insert(at, ",");
  }
  return number;
}

std::string ForReaders(const Metric& metric) {
  if (metric.kind == Kind::kText) return metric.text;
  if (metric.kind == Kind::kCount) return Grouped(std::to_string(metric.count));
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), "%.2f", metric.number);
  return metric.kind == Kind::kPercent ? buffer : Grouped(buffer);
}

// So that reading it gives the same number, of the same kind.
std::string Exact(const Metric& metric) {
  if (metric.kind == Kind::kText) return metric.text;
  if (metric.kind == Kind::kCount) return std::to_string(metric.count);
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), metric.number).ptr;
  std::string text(buffer, end);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

using Cells = std::vector<std::string>;

Cells SumRow(const std::string& title, const Row& metrics, const std::vector<std::string>& columns) {
  Cells cells{title};
  for (size_t i = 1; i < columns.size(); ++i) {
    const Metric* metric = metrics.Find(columns[i]);
    bool is_shown = metric != nullptr && (metric->kind != Kind::kText || (title == "Total" && columns[i] == "Device"));
    cells.push_back(is_shown ? ForReaders(*metric) : "");
  }
  return cells;
}

bool IsInsideCharacter(const std::string& text, size_t at) {
  return at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

// Names of kernels begin alike, so that their ends are kept.
std::string Cut(const std::string& text, size_t width, bool keep_end) {
  if (text.size() <= width) return text;
  size_t at = keep_end ? text.size() - (width - 3) : width - 3;
  while (IsInsideCharacter(text, at)) at += keep_end ? 1 : -1;
  return keep_end ? "..." + text.substr(at) : text.substr(0, at) + "...";
}

// Texts to the left, numbers to the right.
std::string LineOf(const Cells& cells, const std::vector<std::string>& columns, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = Cut(cells[i], widths[i], columns[i] == "Name");
    std::string padding(widths[i] - cell.size(), ' ');
    line += i == 0 ? "" : "  ";
    line += Contains(kTextColumns, columns[i]) ? cell + padding : padding + cell;
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

size_t LineWidth(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (size_t width : widths) total += width + 2;
  return total == 0 ? 0 : total - 2;
}

// Narrows the widest texts first.
void Narrow(const std::vector<std::string>& columns, std::vector<size_t>* widths) {
  for (const std::vector<std::string>& names : kCutColumns) {
    while (LineWidth(*widths) > kLineWidth) {
      size_t* widest = nullptr;
      for (size_t i = 0; i < columns.size(); ++i) {
        size_t& width = (*widths)[i];
        if (Contains(names, columns[i]) && width > kLeastTextWidth && (widest == nullptr || width > *widest)) widest = &width;
      }
      if (widest == nullptr) break;
      --*widest;
    }
  }
}

std::string Layout(const std::vector<std::string>& columns, const std::vector<Cells>& rows, const std::vector<Cells>& sums, bool wide) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = columns[i].size();
    for (const Cells& cells : rows) width = std::max(width, cells[i].size());
    for (const Cells& cells : sums) width = std::max(width, cells[i].size());
    widths.push_back(width);
  }
  if (!wide) Narrow(columns, &widths);
  const std::string rule = std::string(LineWidth(widths), '-') + "\n";
  std::string text = LineOf(columns, columns, widths) + rule;
  for (const Cells& cells : rows) text += LineOf(cells, columns, widths);
  if (!sums.empty()) text += rule;
  for (const Cells& cells : sums) text += LineOf(cells, columns, widths);
  return text;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string ToJson(const Map<String, ObjectRef>& metrics) {
  std::string text;
  for (const auto& item : ReadRow(metrics).items) {
    const Metric& metric = item.second;
    text += Cat(text.empty() ? "" : ", ", Json::Quote(item.first), ": {\"", kJsonNames[static_cast<int>(metric.kind)].second, "\": ",
                metric.kind == Kind::kText ? Json::Quote(metric.text) : Exact(metric), "}");
  }
  return "{" + text + "}";
}

ObjectRef MetricFromJson(const std::string& kind, const Json& value) {
  if (kind == "string") return String(value.String("a text"));
  if (kind == "count") return Wrapped<CountNode>(value.Int("a count"));
  if (kind == "microseconds") return Wrapped<DurationNode>(value.Number("a duration"));
  if (kind == "percent") return Wrapped<PercentNode>(value.Number("a percentage"));
  if (kind == "ratio") return Wrapped<RatioNode>(value.Number("a ratio"));
  ThrowValueError("there is no kind of metric '", kind, "'");
}

Map<String, ObjectRef> MetricsFromJson(const Json& json) {
  Map<String, ObjectRef> metrics;
  for (const auto& member : json.Object("the metrics of a call")) {
    for (const auto& value : member.second.Object("a metric")) metrics.Set(member.first, MetricFromJson(value.first, value.second));
  }
  return metrics;
}

}  // namespace

Report::Report(Array<Map<String, ObjectRef>> calls, Map<String, Map<String, ObjectRef>> device_metrics,
               Map<String, ObjectRef> configuration) {
  auto node = make_object<ReportNode>();
  node->calls = std::move(calls);
  node->device_metrics = std::move(device_metrics);
  node->configuration = std::move(configuration);
  data_ = std::move(node);
}

String ReportNode::AsCSV() const {
  const std::vector<Row> rows = ReadRows(calls);
  const std::vector<std::string> columns = ColumnsOf(rows);
  std::string text;
  auto add = [&](const Cells& cells) {
    for (size_t i = 0; i < cells.size(); ++i) text += (i ? "," : "") + CsvCell(cells[i]);
    text += "\n";
  };
  add(columns);
  for (const Row& row : rows) {
    Cells cells;
    for (const std::string& name : columns) cells.push_back(row.Find(name) ? Exact(*row.Find(name)) : "");
    add(cells);
  }
  return text;
}

String ReportNode::AsTable(bool sort, bool aggregate, bool compute_col_sums, bool wide) const {
  std::vector<Row> rows = ReadRows(calls);
  const Row sum = Join(rows);
  if (aggregate) rows = Aggregate(rows);
  if (sort) std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.Duration() > b.Duration(); });
  std::vector<std::string> columns = ColumnsOf(rows);
  if (!wide) columns.erase(std::remove(columns.begin(), columns.end(), "Hash"), columns.end());
  std::vector<Cells> lines, sums;
  for (const Row& row : rows) {
    Cells cells;
    for (const std::string& name : columns) cells.push_back(row.Find(name) ? ForReaders(*row.Find(name)) : "");
    lines.push_back(cells);
  }
  if (compute_col_sums && !columns.empty()) {
    sums.push_back(SumRow("Sum", sum, columns));
    for (const auto& device : device_metrics) {
      Row total = ReadRow(device.second);
      total.items.emplace_back("Device", Metric{Kind::kText, device.first});
      sums.push_back(SumRow("Total", total, columns));
    }
  }
  std::string text = Layout(columns, lines, sums, wide) + "\nConfiguration\n-------------\n";
  for (const auto& item : ReadRow(configuration).items) text += item.first + ": " + ForReaders(item.second) + "\n";
  return text;
}

String ReportNode::AsJSON() const {
  std::string text = "{\"calls\": [";
  for (size_t i = 0; i < calls.size(); ++i) text += (i ? ", " : "") + ToJson(calls[i]);
  text += "], \"device_metrics\": {";
  bool is_first = true;
  for (const auto& device : device_metrics) {
    text += Cat(is_first ? "" : ", ", Json::Quote(device.first), ": ", ToJson(device.second));
    is_first = false;
  }
  return text + "}, \"configuration\": " + ToJson(configuration) + "}";
}

Report Report::FromJSON(String text) {
  try {
    const Json json = Json::Parse(text, "the report");
    Array<Map<String, ObjectRef>> calls;
    for (const Json& call : json.At("calls", "the report").Array("calls")) calls.push_back(MetricsFromJson(call));
    Map<String, Map<String, ObjectRef>> devices;
    for (const auto& device : json.At("device_metrics", "the report").Object("device_metrics")) {
      devices.Set(device.first, MetricsFromJson(device.second));
    }
    return Report(calls, devices, MetricsFromJson(json.At("configuration", "the report")));
  } catch (const Error& error) {
    ThrowValueError("from_json needs what Report.json wrote: ", error.what());
  }
}

TVM_REGISTER_NODE_TYPE(DurationNode);
TVM_REGISTER_NODE_TYPE(PercentNode);
TVM_REGISTER_NODE_TYPE(CountNode);
TVM_REGISTER_NODE_TYPE(RatioNode);
TVM_REGISTER_NODE_TYPE(ReportNode);

TVM_REGISTER_GLOBAL("runtime.profiling.Duration").set_body_typed(Wrapped<DurationNode, double>);
TVM_REGISTER_GLOBAL("runtime.profiling.Percent").set_body_typed(Wrapped<PercentNode, double>);
TVM_REGISTER_GLOBAL("runtime.profiling.Count").set_body_typed(Wrapped<CountNode, int64_t>);
TVM_REGISTER_GLOBAL("runtime.profiling.Ratio").set_body_typed(Wrapped<RatioNode, double>);
TVM_REGISTER_GLOBAL("runtime.profiling.Report")
    .set_body_typed([](Array<Map<String, ObjectRef>> calls, Map<String, Map<String, ObjectRef>> device_metrics,
                       Map<String, ObjectRef> configuration) {
      for (const auto& call : calls) ReadRow(call);  // mistakes show here
      return Report(calls, device_metrics, configuration);
    });
TVM_REGISTER_GLOBAL("runtime.profiling.AsCSV").set_body_typed([](Report report) { return report->AsCSV(); });
TVM_REGISTER_GLOBAL("runtime.profiling.AsJSON").set_body_typed([](Report report) { return report->AsJSON(); });
// (report, sort, aggregate, col_sums, wide): the last ones may be missing
TVM_REGISTER_GLOBAL("runtime.profiling.AsTable").set_body([](TVMArgs args, TVMRetValue* rv) {
  Report report = args[0];
  auto option = [&](int i) { return args.size() <= i || bool(args[i]); };
  *rv = report->AsTable(option(1), option(2), option(3), args.size() > 4 && bool(args[4]));
});
TVM_REGISTER_GLOBAL("runtime.profiling.FromJSON").set_body_typed([](String text) { return Report::FromJSON(text); });

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
