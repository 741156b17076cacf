#include <cstdint>
#include <optional>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/record_json.h"
#include "common/codec/record_words.h"

namespace podqos::codec {

namespace {

/// Appends one JSON object to a string, member by member. No tree is built, since records are
/// written on every container start.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;
  ObjectWriter(ObjectWriter&&) = delete;
  ObjectWriter& operator=(ObjectWriter&&) = delete;
  ~ObjectWriter() { out_ += '}'; }

  // Paths and names may contain bytes that are not UTF-8.
  void text(std::string_view name, std::string_view value) {
    member(name) += quote_json(utf8_from_bytes(value));
  }
  /// A member whose name is untrusted input and may need escapes.
  void entry(std::string_view name, std::string_view value) {
    const std::string quoted = quote_json(utf8_from_bytes(name));
    text(std::string_view{quoted}.substr(1, quoted.size() - 2), value);
  }
  void number(std::string_view name, std::int64_t value) { member(name) += std::to_string(value); }
  void flag(std::string_view name, bool value) { member(name) += value ? "true" : "false"; }
  /// Omitted if absent.
  template <class T>
  void unit(std::string_view name, const std::optional<T>& value) {
    if (value) number(name, value->value());
  }
  /// Appends the name; the caller appends the value. `name` must not need escapes.
  std::string& member(std::string_view name) {
    out_ += first_ ? "\"" : ",\"";
    first_ = false;
    out_ += name;
    return out_ += "\":";
  }
  /// An array, each element of which `append` writes.
  template <class List, class Append>
  void list(std::string_view name, const List& entries, Append append) {
    member(name) += '[';
    bool first = true;
    for (const auto& entry : entries) {
      if (!first) out_ += ',';
      first = false;
      append(out_, entry);
    }
    out_ += ']';
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_quantities(std::string& out, const core::ResourceList& list) {
  ObjectWriter writer{out};
  for (const auto& [name, quantity] : list)
    writer.entry(name, quantity.format_decimal());
}

void append_resources(std::string& out, const core::Resources& resources) {
  ObjectWriter writer{out};
  append_quantities(writer.member("requests"), resources.requests);
  append_quantities(writer.member("limits"), resources.limits);
}

void append_engine_sums(std::string& out, const core::EngineSums& sums) {
  ObjectWriter writer{out};
  append_resources(writer.member("resources"), sums.resources);
  writer.flag("enforced", sums.enforced);
}

void append_pod_container(std::string& out, const core::Container& container) {
  ObjectWriter writer{out};
  writer.text("name", container.name);
  writer.text("kind", word_for(kKindWords, container.kind));
  append_resources(writer.member("resources"), container.resources);
}

/// The pod as podqos knows it, in the API's names where they exist.
void append_pod(std::string& out, const core::Pod& pod) {
  ObjectWriter writer{out};
  writer.text("uid", pod.uid);
  writer.text("name", pod.name);
  writer.text("namespace", pod.pod_namespace);
  writer.list("containers", pod.containers, append_pod_container);
  writer.list("initContainers", pod.init_containers, append_pod_container);
  writer.list("ephemeralContainers", pod.ephemeral_containers, append_pod_container);
  if (pod.resources) append_resources(writer.member("resources"), *pod.resources);
  append_quantities(writer.member("overhead"), pod.overhead);
  if (pod.priority) writer.number("priority", *pod.priority);
  writer.text("priorityClassName", pod.priority_class_name);
  if (pod.status_qos_class)
    writer.text("statusQosClass", word_for(kClassWords, *pod.status_qos_class));
  writer.flag("static", pod.is_static);
}

void append_sum(std::string& out, const core::TierSum& sum) {
  ObjectWriter writer{out};
  writer.number("pods", sum.pods);
  writer.number("cpuMilli", sum.cpu.value());
  writer.number("memoryBytes", sum.memory.value());
}

void append_container(std::string& out, const core::ContainerRecord& container) {
  ObjectWriter writer{out};
  writer.text("id", container.id);
  writer.text("bundle", container.bundle);
  writer.text("name", container.name);
  writer.text("state", word_for(kStateWords, container.state));
  writer.number("pid", container.pid.value());
  writer.number("startTime", container.start_time.value());
  writer.text("cgroup", container.cgroup);
  writer.flag("sandbox", container.sandbox);
  writer.unit("backedMemoryBytes", container.backed_memory);
}

void append_pending(std::string& out, const core::PendingEntry& entry) {
  ObjectWriter writer{out};
  writer.text("uid", entry.uid);
  writer.text("id", entry.id);
  writer.text("bundle", entry.bundle);
  writer.number("pid", entry.pid.value());
  writer.number("startTime", entry.start_time.value());
}

void append_retained(std::string& out, const core::RetainedEntry& entry) {
  ObjectWriter writer{out};
  writer.text("uid", entry.uid);
  writer.number("until", entry.until.value());
  writer.text("cgroup", entry.cgroup);
}

void append_cut(std::string& out, const core::CutEntry& entry) {
  ObjectWriter writer{out};
  writer.text("uid", entry.uid);
  writer.number("cpuMilli", entry.cpu.value());
  writer.number("memoryBytes", entry.memory.value());
}

void append_uid(std::string& out, const std::string& uid) {
  ObjectWriter{out}.text("uid", uid);
}

void append_sums(std::string& out, const core::TierSums& sums) {
  ObjectWriter writer{out};
  append_sum(writer.member("guaranteed"), sums.guaranteed);
  append_sum(writer.member("burstable"), sums.burstable);
  append_sum(writer.member("besteffort"), sums.besteffort);
  append_sum(writer.member("requested"), sums.requested);
}

void append_tree(std::string& out, const core::TreeRecord& tree) {
  ObjectWriter writer{out};
  writer.text("kubepods", tree.kubepods);
  writer.text("top", tree.top);
  writer.flag("yielded", tree.yielded);
  append_sums(writer.member("sums"), tree.sums);
}

/// Precedes all other members (in tiers.json all but the mark), so that releases can tell formats
/// apart.
void put_version(ObjectWriter& writer) {
  writer.number("version", kRecordVersion);
  writer.text("writer", PODQOS_VERSION);
}

}  // namespace

std::string format_pod_record(const core::PodRecord& record) {
  std::string out;
  {
    ObjectWriter writer{out};
    put_version(writer);
    append_pod(writer.member("pod"), record.pod);
    writer.flag("complete", record.complete);
    if (record.sums) append_engine_sums(writer.member("engineSums"), *record.sums);
    writer.text("class", word_for(kClassWords, record.qos_class));
    writer.text("classSource", word_for(kSourceWords, record.class_source));
    if (record.founded_by) writer.text("foundedBy", word_for(kIdentityWords, *record.founded_by));
    writer.flag("adopted", record.adopted);
    writer.text("sandboxId", record.sandbox_id);
    writer.text("cgroup", record.cgroup);
    append_sum(writer.member("claimed"), record.claimed);
    append_sum(writer.member("granted"), record.granted);
    writer.list("containers", record.containers, append_container);
    writer.unit("releasedAt", record.released_at);
  }
  return out;
}

std::string format_tiers(const core::TiersRecord& record) {
  std::string out;
  {
    ObjectWriter writer{out};
    put_version(writer);
    append_sums(writer.member("sums"), record.sums);
    append_sum(writer.member("adopted"), record.sums.adopted);
    writer.list("pending", record.pending, append_pending);
    writer.list("lingering", record.retained, append_retained);
    writer.list("cut", record.cut, append_cut);
    writer.list("uncounted", record.uncounted, append_uid);
    writer.list("trees", record.trees, append_tree);
    if (record.weight_formula)
      writer.text("weightFormula", word_for(kWeightFormulaWords, *record.weight_formula));
  }
  return out;
}

}  // namespace podqos::codec
