#include "common/codec/oci_edit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::codec {

namespace {

constexpr std::string_view kHugepageLimits = "/linux/resources/hugepageLimits";
constexpr std::string_view kUnified = "/linux/resources/unified";
constexpr std::string_view kCreateRuntime = "/hooks/createRuntime";
constexpr std::string_view kPoststop = "/hooks/poststop";

/// Collects changes to the config and turns them into splices, starting with the innermost object,
/// so that a missing object becomes a member of its parent.
class SplicePlanner {
 public:
  explicit SplicePlanner(const OciConfig& config) : config_(config) {}

  /// Sets a member to `literal` (JSON text); no change if it has this value.
  void set(std::string_view pointer, const std::string& literal) {
    const JsonNode* const node = config_.tree.at(pointer, config_.names);
    const std::string_view old = node == nullptr ? "" : node->raw;
    if (old == literal) return;
    record(pointer, literal, old);
    put(node, pointer, literal);
  }
  /// Appends the value of one page size or unified file.
  void add_keyed(std::string_view container, const std::string& key, std::string_view literal) {
    record(cat(container, "/", key), literal, "");
    append(container, container == kHugepageLimits
                          ? cat("{\"pageSize\":", quote_json(key), ",\"limit\":", literal, "}")
                          : cat(quote_json(key), ":", literal));
  }
  /// Appends an element to an array, or a member to an object.
  void append(std::string_view container, std::string_view element) {
    std::string& joined = additions_[container];
    joined += cat(joined.empty() ? "" : ",", element);
  }

  std::vector<Splice> plan() {
    // What is added to a container stands behind it in the map, so that the innermost comes first.
    while (!additions_.empty() && !additions_.rbegin()->first.empty()) {
      const auto innermost = additions_.extract(std::prev(additions_.end()));
      add_to(innermost.key(), innermost.mapped());
    }
    // As the root's last member, for those who read the file.
    if (!record_.empty()) note_record();
    if (!additions_.empty()) add_to("", additions_.begin()->second);
    std::ranges::sort(splices_, {}, &Splice::begin);
    return std::move(splices_);
  }

 private:
  void record(std::string_view at, std::string_view literal, std::string_view old) {
    record_ += cat(record_.empty() ? "" : ",", "{\"at\":", quote_json(at), ",\"is\":", literal,
                   old.empty() ? "" : ",\"was\":", old, "}");
  }
  void note_record() {
    const std::string literal = cat("[", record_, "]");
    if (const JsonNode* former = config_.tree.find(kEditRecord, config_.names))
      return replace(former->raw, literal);
    append("", cat(quote_json(kEditRecord), ":", literal));
  }
  void replace(std::string_view part, std::string literal) {
    const auto begin = static_cast<std::size_t>(part.data() - config_.text.data());
    splices_.push_back({.begin = begin, .end = begin + part.size(), .text = std::move(literal)});
  }
  /// Replaces the value of a member, or adds the member to its parent.
  void put(const JsonNode* node, std::string_view pointer, const std::string& literal) {
    if (node != nullptr) return replace(node->raw, literal);
    const std::size_t slash = pointer.rfind('/');
    append(pointer.substr(0, slash), cat(quote_json(pointer.substr(slash + 1)), ":", literal));
  }
  /// Splices the additions of one object or array; creates it if it is missing or null.
  void add_to(std::string_view container, const std::string& joined) {
    const JsonNode* const node = config_.tree.at(container, config_.names);
    if (node != nullptr && !node->is_null()) {
      // After the last member, before the white space in front of the closing bracket. The children
      // may be those of an earlier object of this name.
      const std::size_t last = node->raw.find_last_not_of(" \t\r\n", node->raw.size() - 2);
      return replace(node->raw.substr(last + 1, 0), last == 0 ? joined : cat(",", joined));
    }
    const bool list = container == kHugepageLimits || container.starts_with("/hooks/");
    put(node, container, list ? cat("[", joined, "]") : cat("{", joined, "}"));
  }

  const OciConfig& config_;
  std::map<std::string_view, std::string> additions_;  ///< by the pointer of a container
  std::vector<Splice> splices_;
  std::string record_;  ///< elements of kEditRecord
};

/// The hook's entry in config.json (OCI runtime-spec, config.md "POSIX-platform Hooks"). It has no
/// timeout: the hook ends itself.
std::string hook_literal(const HookRegistration& hooks, std::string_view stage) {
  std::string args = quote_json("podqos-hook");
  for (const std::string& arg : hooks.args)
    args += cat(",", quote_json(arg));
  return cat("{\"path\":", quote_json(hooks.path), ",\"args\":[", args, ",", quote_json(stage),
             "]}");
}

/// Whether parse() takes what is written anew.
bool is_valid(const core::ConfigEdit& edit, const std::optional<HookRegistration>& hooks) {
  const std::string path = edit.cgroups_path.value_or("");
  return is_utf8(path) && path.size() <= kMaxCgroupsPathSize &&
         std::ranges::none_of(path, is_control) &&
         (!hooks || (is_utf8(hooks->path) && std::ranges::all_of(hooks->args, is_utf8)));
}

void plan_edit(SplicePlanner& planner, const OciConfig& config, const core::ConfigEdit& edit) {
  const auto set_number = [&](std::string_view pointer, const auto& value) {
    if (value) planner.set(pointer, std::to_string(value->value()));
  };
  if (edit.cgroups_path && edit.cgroups_path != config.facts.cgroups_path)
    planner.set("/linux/cgroupsPath", quote_json(*edit.cgroups_path));
  set_number("/linux/resources/cpu/shares", edit.values.cpu_shares);
  set_number("/linux/resources/cpu/quota", edit.values.cpu_quota);
  set_number("/linux/resources/cpu/period", edit.values.cpu_period);
  set_number("/linux/resources/memory/limit", edit.values.memory_limit);
  if (edit.values.pids_limit)
    planner.set("/linux/resources/pids/limit", std::to_string(*edit.values.pids_limit));
  if (edit.oom_score_adj) planner.set("/process/oomScoreAdj", std::to_string(*edit.oom_score_adj));
  for (const auto& [size, limit] : edit.values.hugepages) {
    // The engine's own value stays.
    if (config.facts.resources.hugepages.contains(size)) continue;
    planner.add_keyed(kHugepageLimits, size, std::to_string(limit.value()));
  }
  for (const auto& [file, value] : edit.values.unified) {
    if (config.facts.resources.unified.contains(file)) continue;
    planner.add_keyed(kUnified, file, quote_json(value));
  }
}

}  // namespace

Result<std::vector<Splice>> plan_splices(const OciConfig& config, const core::ConfigEdit& edit,
                                         const std::optional<HookRegistration>& hooks) {
  if (hooks && hooks->path.empty())
    return refuse_value("the path of podqos-hook cannot be read from /proc/self/exe");
  if (!is_valid(edit, hooks))
    return refuse_value(
        "a new string is not valid UTF-8, or cgroupsPath is too long or has control bytes");
  SplicePlanner planner{config};
  plan_edit(planner, config, edit);
  if (hooks && !config.has_create_hook)
    planner.append(kCreateRuntime, hook_literal(*hooks, "createRuntime"));
  if (hooks && !config.has_poststop_hook)
    planner.append(kPoststop, hook_literal(*hooks, "poststop"));
  return planner.plan();
}

Result<std::string> edit_config(const OciConfig& config, const core::ConfigEdit& edit,
                                const std::optional<HookRegistration>& hooks) {
  PODQOS_ASSIGN(const auto splices, plan_splices(config, edit, hooks));
  return apply_splices(config.text, splices);
}

Result<std::string> apply_splices(std::string_view text, const std::vector<Splice>& splices) {
  std::string out;
  std::size_t done = 0;
  for (const Splice& splice : splices) {
    if (splice.begin < done || splice.end < splice.begin || splice.end > text.size())
      return refuse_value("splice [", splice.begin, ", ", splice.end, ") of ", text.size(),
                          " bytes overlaps or is out of range");
    out += text.substr(done, splice.begin - done);
    out += splice.text;
    done = splice.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace podqos::codec
