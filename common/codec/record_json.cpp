#include "common/codec/record_json.h"

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_place.h"
#include "common/codec/json_text.h"
#include "common/codec/record_fields.h"
#include "common/codec/settings_json.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Reads the members of an object; see record_fields.h. The first that is missing or wrong fails
/// the whole record; what follows is read on, and the caller checks once.
class RecordReader {
 public:
  RecordReader(const JsonPlace& object, std::optional<Error>& error)
      : object_(object), error_(error) {}

  template <class T>
  void operator()(std::string_view name, T& out) {
    const auto place = object_.member(name);
    if (!place) return give_up(place.error());
    read(*place, out);
  }

 private:
  void read(const JsonPlace& place, std::string& out) {
    if (is(place, Kind::kString)) out = place.text();
  }
  void read(const JsonPlace& place, bool& out) {
    if (is(place, Kind::kBoolean)) out = place.text() == "true";
  }
  void read(const JsonPlace& place, std::int64_t& out) {
    if (!is(place, Kind::kNumber)) return;
    const auto value = parse_int(place.text());
    if (!value) return give_up(place.refuse("expected an integer").error());
    out = *value;
  }
  template <class Tag>
  void read(const JsonPlace& place, Unit<Tag>& out) {
    std::int64_t value = 0;
    read(place, value);
    out = Unit<Tag>{value};
  }
  /// Absent and null stay nullopt.
  template <class T>
  void read(const JsonPlace& place, std::optional<T>& out) {
    if (place) read(place, out.emplace());
  }
  template <class T>
  void read(const JsonPlace& place, std::vector<T>& out) {
    if (!is(place, Kind::kArray)) return;
    out.reserve(place.children().size());
    for (const JsonNode& child : place.children()) {
      if (error_) return;
      read(place.child(child), out.emplace_back());
    }
  }
  void read(const JsonPlace& place, core::ResourceList& out) {
    if (!is(place, Kind::kObject)) return;
    for (const JsonNode& member : place.children()) {
      const auto quantity = core::Quantity::parse(member.text);
      const bool usable = quantity && member.kind == Kind::kString;
      if (!usable || !out.emplace(member.key, *quantity).second)
        return give_up(place.child(member).refuse("is not a quantity, or is repeated").error());
    }
  }
  void read(const JsonPlace& place, core::Settings& out) {
    if (is(place, Kind::kObject)) out = read_changed_settings(*place.node());
  }
  template <class T>
    requires std::is_enum_v<T>
  void read(const JsonPlace& place, T& out) {
    if (!is(place, Kind::kString)) return;
    const auto word = place_of_word(kWords<T>, place.text());
    if (!word)
      return give_up(place.refuse(cat("\"", printable(place.text()), "\": unknown value")).error());
    out = static_cast<T>(*word);
  }
  template <class T>
  void read(const JsonPlace& place, T& out) {
    if (!is(place, Kind::kObject)) return;
    RecordReader nested{place, error_};
    fields(nested, out);
  }

  bool is(const JsonPlace& place, Kind kind) {
    const auto expected = place.expect(kind);
    if (!expected) give_up(expected.error());
    return expected.has_value();
  }
  /// Keeps the first error only.
  void give_up(Error error) {
    if (!error_) error_ = std::move(error);
  }

  const JsonPlace& object_;
  std::optional<Error>& error_;
};

/// Appends records to a string, member by member. No tree is built, since records are written on
/// every container start.
class RecordWriter {
 public:
  explicit RecordWriter(std::string& out) : out_(out) {}

  template <class T>
  void operator()(std::string_view name, const T& value) {
    out_ += first_ ? "" : ",";
    first_ = false;
    out_ += quote_json(name);
    out_ += ':';
    write(value);
  }
  /// Omitted if absent.
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  /// Appends an object whose members `write_members` writes.
  void object(const auto& write_members) {
    out_ += '{';
    first_ = true;
    write_members();
    out_ += '}';
    first_ = false;
  }

 private:
  void write(const std::string& value) { out_ += quote_json(value); }
  void write(bool value) { out_ += value ? "true" : "false"; }
  void write(std::int64_t value) { out_ += std::to_string(value); }
  void write(const core::Settings& settings) { out_ += format_changed_settings(settings); }
  template <class Tag>
  void write(const Unit<Tag>& value) {
    write(value.value());
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
    object([&] {
      for (const auto& [name, quantity] : list)
        (*this)(name, quantity.format_decimal());
    });
  }
  template <class T>
    requires std::is_enum_v<T>
  void write(const T& value) {
    out_ += quote_json(word_at(kWords<T>, static_cast<std::size_t>(value)));
  }
  template <class T>
  void write(const T& value) {
    object([&] { fields(*this, value); });
  }

  std::string& out_;
  bool first_ = true;  ///< the next member is the first of its object
};

std::unexpected<Error> corrupt(const Error& error) {
  return fail(ErrorCode::kCorrupt, cat("record: ", error.message));
}

/// Parses a record, and checks its version before any other member.
template <class Record>
Result<Record> parse_record(std::string_view text) {
  // podqos has written it: its size is bound enough.
  const auto tree = parse_json_tree(text, {.bytes = kMaxRecordSize, .values = kUnbounded});
  if (!tree) return corrupt(tree.error());
  const JsonPlace root{*tree};
  std::optional<Error> error;
  RecordReader reader{root, error};
  std::int64_t version = 0;
  reader("version", version);
  if (error) return corrupt(*error);
  if (version < 1)
    return fail(ErrorCode::kCorrupt, cat("record: version ", version, " is invalid"));
  if (version > kRecordVersion) {
    const auto writer = root.member("writer");
    return fail(ErrorCode::kUnsupported,
                cat("record of version ", version, ", written by podqos ",
                    writer && *writer ? printable(writer->text()) : "of an unknown release",
                    "; this podqos ", PODQOS_VERSION, " reads up to version ", kRecordVersion,
                    ": use the newer release on this node, or let its ",
                    "containers end before downgrading"));
  }
  Record record;
  fields(reader, record);
  if (error) return corrupt(*error);
  return record;
}

/// The version precedes all other members, so that releases can tell formats apart.
template <class Record>
std::string format_record(const Record& record) {
  std::string out;
  RecordWriter writer{out};
  writer.object([&] {
    writer("version", std::int64_t{kRecordVersion});
    writer("writer", std::string{PODQOS_VERSION});
    fields(writer, record);
  });
  return out;
}

}  // namespace

Result<core::PodRecord> parse_pod_record(std::string_view text) {
  return parse_record<core::PodRecord>(text);
}

std::string format_pod_record(const core::PodRecord& record) {
  return format_record(record);
}

Status check_record_size(std::string_view record) {
  constexpr std::size_t kMost = std::size_t{192} << 10U;
  if (record.size() <= kMost) return {};
  return fail(ErrorCode::kTooLarge,
              cat("the pod's record needs ", record.size(), " bytes, at most ", kMost,
                  " are allowed: give it fewer containers, or fewer resources in its "
                  "podqos.io annotations"));
}

Result<core::NodeState> parse_node(std::string_view text) {
  return parse_record<core::NodeState>(text);
}

std::string format_node(const core::NodeState& state) {
  return format_record(state);
}

}  // namespace podqos::codec
