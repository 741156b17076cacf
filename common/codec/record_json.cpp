#include "common/codec/record_json.h"

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"
#include "common/codec/record_fields.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Reads the members of an object; see record_fields.h. The first that is missing or wrong fails
/// the whole record; what follows is read on, and the caller checks once.
class RecordReader {
 public:
  RecordReader(const JsonNode& object, std::optional<std::string>& error)
      : object_(object), error_(error) {}

  template <class T>
  void operator()(std::string_view name, T& out) {
    const auto node = object_.member(name);
    if (!node) return give_up(name, "is repeated");
    read(name, *node, out);
  }

 private:
  void read(std::string_view name, const JsonNode* node, std::string& out) {
    if (is(name, node, Kind::kString)) out = bytes_from_utf8(node->text);
  }
  void read(std::string_view name, const JsonNode* node, bool& out) {
    if (is(name, node, Kind::kBoolean)) out = node->text == "true";
  }
  void read(std::string_view name, const JsonNode* node, std::int64_t& out) {
    if (!is(name, node, Kind::kNumber)) return;
    const auto value = parse_int(node->text);
    if (!value) return give_up(name, "expected an integer");
    out = *value;
  }
  template <class Tag>
  void read(std::string_view name, const JsonNode* node, Unit<Tag>& out) {
    std::int64_t value = 0;
    read(name, node, value);
    out = Unit<Tag>{value};
  }
  /// Absent and null stay nullopt.
  template <class T>
  void read(std::string_view name, const JsonNode* node, std::optional<T>& out) {
    if (node != nullptr) read(name, node, out.emplace());
  }
  template <class T>
  void read(std::string_view name, const JsonNode* node, std::vector<T>& out) {
    if (!is(name, node, Kind::kArray)) return;
    out.reserve(node->children.size());
    for (const JsonNode& child : node->children) {
      if (error_) return;
      read(name, &child, out.emplace_back());
    }
  }
  void read(std::string_view name, const JsonNode* node, core::ResourceList& out) {
    if (!is(name, node, Kind::kObject)) return;
    for (const JsonNode& member : node->children) {
      const auto quantity = core::Quantity::parse(member.text);
      const bool usable = quantity && member.kind == Kind::kString;
      if (!usable || !out.emplace(bytes_from_utf8(member.key), *quantity).second)
        return give_up(member.key, "is not a quantity, or is repeated");
    }
  }
  template <class T>
    requires std::is_enum_v<T>
  void read(std::string_view name, const JsonNode* node, T& out) {
    if (!is(name, node, Kind::kString)) return;
    for (const Word<T>& row : kWords<T>) {
      if (row.text != node->text) continue;
      out = row.value;
      return;
    }
    give_up(name, cat("\"", printable(node->text), "\": unknown value"));
  }
  template <class T>
  void read(std::string_view name, const JsonNode* node, T& out) {
    if (!is(name, node, Kind::kObject)) return;
    RecordReader nested{*node, error_};
    fields(nested, out);
  }

  /// Whether the member is there and of this kind.
  bool is(std::string_view name, const JsonNode* node, Kind kind) {
    if (node != nullptr && node->kind == kind) return true;
    give_up(name, cat("expected ", format_kind(kind), ", found ",
                      node == nullptr ? "nothing" : format_kind(node->kind)));
    return false;
  }
  /// Keeps the first error only.
  void give_up(std::string_view name, std::string_view problem) {
    if (!error_) error_ = cat("record: ", printable(name), ": ", problem);
  }

  const JsonNode& object_;
  std::optional<std::string>& error_;
};

/// Appends an object to a string, member by member. No tree is built, since records are written on
/// every container start.
class RecordWriter {
 public:
  explicit RecordWriter(std::string& out) : out_(out) { out_ += '{'; }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  RecordWriter(RecordWriter&&) = delete;
  RecordWriter& operator=(RecordWriter&&) = delete;
  ~RecordWriter() { out_ += '}'; }

  template <class T>
  void operator()(std::string_view name, const T& value) {
    out_ += first_ ? "" : ",";
    first_ = false;
    out_ += quote_json(utf8_from_bytes(name));
    out_ += ':';
    write(value);
  }
  /// Omitted if absent.
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }

 private:
  // Paths and names may contain bytes that are not UTF-8.
  void write(const std::string& value) { out_ += quote_json(utf8_from_bytes(value)); }
  void write(bool value) { out_ += value ? "true" : "false"; }
  void write(std::int64_t value) { out_ += std::to_string(value); }
  template <class Tag>
  void write(const Unit<Tag>& value) {
    out_ += std::to_string(value.value());
  }
  template <class T>
  void write(const std::vector<T>& list) {
    out_ += '[';
    for (const T& each : list) {
      if (&each != &list.front()) out_ += ',';
      write(each);
    }
    out_ += ']';
  }
  void write(const core::ResourceList& list) {
    RecordWriter nested{out_};
    for (const auto& [name, quantity] : list)
      nested(name, quantity.format_decimal());
  }
  template <class T>
    requires std::is_enum_v<T>
  void write(const T& value) {
    for (const Word<T>& row : kWords<T>)
      if (row.value == value) out_ += quote_json(row.text);
  }
  template <class T>
  void write(const T& value) {
    RecordWriter nested{out_};
    fields(nested, value);
  }

  std::string& out_;
  bool first_ = true;
};

/// Parses a record, and checks its version before any other member.
template <class Record>
Result<Record> parse_record(std::string_view text) {
  // podqos has written it: its size is bound enough.
  const auto tree = parse_json_tree(text, {.bytes = kMaxRecordSize, .values = kUnbounded});
  if (!tree) return fail(ErrorCode::kCorrupt, cat("record: ", tree.error().message));
  std::optional<std::string> error;
  RecordReader reader{*tree, error};
  std::int64_t version = 0;
  reader("version", version);
  if (error) return fail(ErrorCode::kCorrupt, std::move(*error));
  if (version < 1)
    return fail(ErrorCode::kCorrupt, cat("record: version ", version, " is invalid"));
  if (version > kRecordVersion) {
    const auto writer = tree->member("writer");
    const bool named = writer && *writer != nullptr;
    return fail(ErrorCode::kUnsupported,
                cat("record of version ", version, ", written by podqos ",
                    named ? printable((*writer)->text) : "of an unknown release", "; this podqos ",
                    PODQOS_VERSION, " reads up to version ", kRecordVersion,
                    ": use the newer release on this node, or let its ",
                    "containers end before downgrading"));
  }
  Record record;
  fields(reader, record);
  if (error) return fail(ErrorCode::kCorrupt, std::move(*error));
  return record;
}

/// The version precedes all other members, so that releases can tell formats apart.
template <class Record>
std::string format_record(const Record& record) {
  std::string out;
  {
    RecordWriter writer{out};
    writer("version", std::int64_t{kRecordVersion});
    writer("writer", std::string{PODQOS_VERSION});
    fields(writer, record);
  }
  return out;
}

}  // namespace

Result<core::PodRecord> parse_pod_record(std::string_view text) {
  return parse_record<core::PodRecord>(text);
}

std::string format_pod_record(const core::PodRecord& record) {
  return format_record(record);
}

Result<core::TiersRecord> parse_tiers(std::string_view text) {
  return parse_record<core::TiersRecord>(text);
}

std::string format_tiers(const core::TiersRecord& record) {
  return format_record(record);
}

}  // namespace podqos::codec
