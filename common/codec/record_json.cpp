#include "common/codec/record_json.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"
#include "common/codec/record_words.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Reads members by name and type. The first missing or wrong one fails the whole record; callers
/// read on and check once, in finish().
class RecordReader {
 public:
  void text(const JsonNode& object, std::string_view name, std::string& out) {
    if (const JsonNode* node = need(object, name, Kind::kString)) out = bytes_from_utf8(node->text);
  }
  void flag(const JsonNode& object, std::string_view name, bool& out) {
    if (const JsonNode* node = need(object, name, Kind::kBoolean)) out = node->text == "true";
  }
  void number(const JsonNode& object, std::string_view name, std::int64_t& out) {
    if (const JsonNode* node = need(object, name, Kind::kNumber)) out = integer_of(*node);
  }
  template <class Tag>
  void unit(const JsonNode& object, std::string_view name, Unit<Tag>& out) {
    std::int64_t value = 0;
    number(object, name, value);
    out = Unit<Tag>{value};
  }
  /// Absent members stay nullopt.
  template <class Tag>
  void optional_unit(const JsonNode& object, std::string_view name, std::optional<Unit<Tag>>& out) {
    if (find(object, name) != nullptr) unit(object, name, out.emplace());
  }
  /// An enumerator by its word in the table.
  template <class Table, class T>
  void word(const JsonNode& object, std::string_view name, const Table& table, T& out) {
    const JsonNode* node = need(object, name, Kind::kString);
    if (node == nullptr) return;
    for (const auto& row : table) {
      if (row.text != node->text) continue;
      out = row.value;
      return;
    }
    give_up(name, cat("\"", printable(node->text), "\": unknown value"));
  }
  /// An array, each element of which `read` reads. An element that is not an object fails in its
  /// first member.
  template <class T>
  void list(const JsonNode& object, std::string_view name, std::vector<T>& out,
            void (RecordReader::*read)(const JsonNode&, T&)) {
    const JsonNode* node = need(object, name, Kind::kArray);
    if (node == nullptr) return;
    out.reserve(node->children.size());
    for (const JsonNode& child : node->children) {
      if (error_) return;
      (this->*read)(child, out.emplace_back());
    }
  }
  /// A nested object.
  template <class T>
  void part(const JsonNode& object, std::string_view name, T& out,
            void (RecordReader::*read)(const JsonNode&, T&)) {
    if (const JsonNode* node = need(object, name, Kind::kObject)) (this->*read)(*node, out);
  }

  void quantities(const JsonNode& object, core::ResourceList& out);
  void resources(const JsonNode& object, core::Resources& out);
  void engine_sums(const JsonNode& object, core::EngineSums& out);
  void pod_container(const JsonNode& object, core::Container& out);
  void pod(const JsonNode& object, core::Pod& out);
  void sum(const JsonNode& object, core::TierSum& out);
  void sums(const JsonNode& object, core::TierSums& out);
  void container(const JsonNode& object, core::ContainerRecord& out);
  void pending(const JsonNode& object, core::PendingEntry& out);
  void retained(const JsonNode& object, core::RetainedEntry& out);
  void cut(const JsonNode& object, core::CutEntry& out);
  void uid(const JsonNode& object, std::string& out);
  void tree(const JsonNode& object, core::TreeRecord& out);
  void pod_record(const JsonNode& object, core::PodRecord& out);
  void tiers(const JsonNode& object, core::TiersRecord& out);

  /// The value, or the first error as kCorrupt.
  template <class T>
  Result<T> finish(T value) {
    if (error_) return fail(ErrorCode::kCorrupt, std::move(*error_));
    return value;
  }

 private:
  /// Keeps the first error only.
  void give_up(std::string_view name, std::string_view problem) {
    if (!error_) error_ = cat("record: ", printable(name), ": ", problem);
  }
  /// A member that may be absent; null counts as absent.
  const JsonNode* find(const JsonNode& object, std::string_view name) {
    const auto node = object.member(name);
    if (node) return *node;
    give_up(name, "is repeated");
    return nullptr;
  }
  /// A member that must be present and of this kind.
  const JsonNode* need(const JsonNode& object, std::string_view name, Kind kind) {
    const JsonNode* node = find(object, name);
    if (node != nullptr && node->kind == kind) return node;
    give_up(name, cat("expected ", format_kind(kind), ", found ",
                      node == nullptr ? "nothing" : format_kind(node->kind)));
    return nullptr;
  }
  std::int64_t integer_of(const JsonNode& node) {
    const auto value = parse_int(node.text);
    if (!value) give_up(node.key, "expected an integer");
    return value.value_or(0);
  }

  std::optional<std::string> error_;
};

void RecordReader::quantities(const JsonNode& object, core::ResourceList& out) {
  for (const JsonNode& member : object.children) {
    const auto quantity = core::Quantity::parse(member.text);
    const bool usable = quantity && member.kind == Kind::kString;
    if (!usable || !out.emplace(bytes_from_utf8(member.key), *quantity).second) {
      give_up(member.key, "is not a quantity, or is repeated");
      return;
    }
  }
}

void RecordReader::resources(const JsonNode& object, core::Resources& out) {
  part(object, "requests", out.requests, &RecordReader::quantities);
  part(object, "limits", out.limits, &RecordReader::quantities);
}

void RecordReader::engine_sums(const JsonNode& object, core::EngineSums& out) {
  part(object, "resources", out.resources, &RecordReader::resources);
  flag(object, "enforced", out.enforced);
}

void RecordReader::pod_container(const JsonNode& object, core::Container& out) {
  text(object, "name", out.name);
  word(object, "kind", kKindWords, out.kind);
  part(object, "resources", out.resources, &RecordReader::resources);
}

void RecordReader::pod(const JsonNode& object, core::Pod& out) {
  text(object, "uid", out.uid);
  text(object, "name", out.name);
  text(object, "namespace", out.pod_namespace);
  list(object, "containers", out.containers, &RecordReader::pod_container);
  list(object, "initContainers", out.init_containers, &RecordReader::pod_container);
  list(object, "ephemeralContainers", out.ephemeral_containers, &RecordReader::pod_container);
  if (find(object, "resources") != nullptr) {
    part(object, "resources", out.resources.emplace(), &RecordReader::resources);
  }
  part(object, "overhead", out.overhead, &RecordReader::quantities);
  if (find(object, "priority") != nullptr) number(object, "priority", out.priority.emplace());
  text(object, "priorityClassName", out.priority_class_name);
  if (find(object, "statusQosClass") != nullptr) {
    word(object, "statusQosClass", kClassWords, out.status_qos_class.emplace());
  }
  flag(object, "static", out.is_static);
}

void RecordReader::sum(const JsonNode& object, core::TierSum& out) {
  number(object, "pods", out.pods);
  unit(object, "cpuMilli", out.cpu);
  unit(object, "memoryBytes", out.memory);
}

void RecordReader::sums(const JsonNode& object, core::TierSums& out) {
  part(object, "guaranteed", out.guaranteed, &RecordReader::sum);
  part(object, "burstable", out.burstable, &RecordReader::sum);
  part(object, "besteffort", out.besteffort, &RecordReader::sum);
  part(object, "requested", out.requested, &RecordReader::sum);
}

void RecordReader::container(const JsonNode& object, core::ContainerRecord& out) {
  text(object, "id", out.id);
  text(object, "bundle", out.bundle);
  text(object, "name", out.name);
  word(object, "state", kStateWords, out.state);
  unit(object, "pid", out.pid);
  unit(object, "startTime", out.start_time);
  text(object, "cgroup", out.cgroup);
  flag(object, "sandbox", out.sandbox);
  optional_unit(object, "backedMemoryBytes", out.backed_memory);
}

void RecordReader::pending(const JsonNode& object, core::PendingEntry& out) {
  text(object, "uid", out.uid);
  text(object, "id", out.id);
  text(object, "bundle", out.bundle);
  unit(object, "pid", out.pid);
  unit(object, "startTime", out.start_time);
}

void RecordReader::retained(const JsonNode& object, core::RetainedEntry& out) {
  text(object, "uid", out.uid);
  unit(object, "until", out.until);
  text(object, "cgroup", out.cgroup);
}

void RecordReader::cut(const JsonNode& object, core::CutEntry& out) {
  text(object, "uid", out.uid);
  unit(object, "cpuMilli", out.cpu);
  unit(object, "memoryBytes", out.memory);
}

void RecordReader::uid(const JsonNode& object, std::string& out) {
  text(object, "uid", out);
}

void RecordReader::tree(const JsonNode& object, core::TreeRecord& out) {
  text(object, "kubepods", out.kubepods);
  text(object, "top", out.top);
  flag(object, "yielded", out.yielded);
  part(object, "sums", out.sums, &RecordReader::sums);
}

void RecordReader::pod_record(const JsonNode& object, core::PodRecord& out) {
  part(object, "pod", out.pod, &RecordReader::pod);
  flag(object, "complete", out.complete);
  if (find(object, "engineSums") != nullptr)
    part(object, "engineSums", out.sums.emplace(), &RecordReader::engine_sums);
  word(object, "class", kClassWords, out.qos_class);
  word(object, "classSource", kSourceWords, out.class_source);
  if (find(object, "foundedBy") != nullptr)
    word(object, "foundedBy", kIdentityWords, out.founded_by.emplace());
  flag(object, "adopted", out.adopted);
  text(object, "sandboxId", out.sandbox_id);
  text(object, "cgroup", out.cgroup);
  part(object, "claimed", out.claimed, &RecordReader::sum);
  part(object, "granted", out.granted, &RecordReader::sum);
  list(object, "containers", out.containers, &RecordReader::container);
  optional_unit(object, "releasedAt", out.released_at);
  // Earlier releases stored the engine's sums as the pod's own resources, which only a complete pod
  // can have.
  if (out.complete || !out.pod.resources) return;
  if (!out.sums)
    out.sums = {.resources = *out.pod.resources,
                .enforced = out.founded_by == core::IdentitySource::kSandbox};
  out.pod.resources.reset();
}

void RecordReader::tiers(const JsonNode& object, core::TiersRecord& out) {
  part(object, "sums", out.sums, &RecordReader::sums);
  part(object, "adopted", out.sums.adopted, &RecordReader::sum);
  list(object, "pending", out.pending, &RecordReader::pending);
  list(object, "lingering", out.retained, &RecordReader::retained);
  list(object, "cut", out.cut, &RecordReader::cut);
  list(object, "uncounted", out.uncounted, &RecordReader::uid);
  list(object, "trees", out.trees, &RecordReader::tree);
  if (find(object, "weightFormula") != nullptr)
    word(object, "weightFormula", kWeightFormulaWords, out.weight_formula.emplace());
}

/// Parses a record, and checks its version before any other member.
Result<JsonTree> parse_versioned(std::string_view text) {
  // podqos has written it: its size is bound enough.
  auto tree = parse_json_tree(text, {.bytes = kMaxRecordSize, .values = kUnbounded});
  if (!tree) return fail(ErrorCode::kCorrupt, cat("record: ", tree.error().message));
  RecordReader reader;
  std::int64_t version = 0;
  reader.number(*tree, "version", version);
  PODQOS_TRY(reader.finish(version));
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
  return tree;
}

}  // namespace

Result<core::PodRecord> parse_pod_record(std::string_view text) {
  PODQOS_ASSIGN(const auto tree, parse_versioned(text));
  RecordReader reader;
  core::PodRecord record;
  reader.pod_record(tree, record);
  return reader.finish(std::move(record));
}

Result<core::TiersRecord> parse_tiers(std::string_view text) {
  PODQOS_ASSIGN(const auto tree, parse_versioned(text));
  RecordReader reader;
  core::TiersRecord record;
  reader.tiers(tree, record);
  return reader.finish(std::move(record));
}

}  // namespace podqos::codec
