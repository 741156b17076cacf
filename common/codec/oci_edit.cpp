#include "common/codec/oci_edit.h"

#include <algorithm>
#include <array>
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
/// so that a missing object becomes a member of its parent. Members are named by their pointers
/// (kConfigMembers).
class SplicePlanner {
 public:
  SplicePlanner(std::string_view text, const OciConfig& config) : text_(text), config_(config) {}

  /// Sets a member to `literal` (JSON text); no change if it has this value.
  void set(std::string_view pointer, const std::string& literal) {
    const NodePlace& place = config_.place(pointer);
    const std::string_view old = text_of(place);
    if (old == literal) return;
    record(pointer, literal, old);
    put(place, pointer, literal);
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
    std::string& joined = additions_.at(index_of(container));
    joined += cat(joined.empty() ? "" : ",", element);
  }

  std::vector<Splice> plan() {
    // Children come after their parents.
    for (std::size_t i = kConfigMembers.size(); i-- > 0;) {
      // As the root's last member, for those who read the file.
      if (i == 0 && !record_.empty()) note_record();
      if (!additions_.at(i).empty()) add_to(kConfigMembers.at(i), additions_.at(i));
    }
    std::ranges::sort(splices_, {}, &Splice::begin);
    return std::move(splices_);
  }

 private:
  [[nodiscard]] std::string_view text_of(const NodePlace& place) const {
    if (!place.value) return {};
    return text_.substr(place.value->begin, place.value->end - place.value->begin);
  }
  void record(std::string_view at, std::string_view literal, std::string_view old) {
    record_ += cat(record_.empty() ? "" : ",", "{\"at\":", quote_json(at), ",\"is\":", literal,
                   old.empty() ? "" : ",\"was\":", old, "}");
  }
  void note_record() {
    const std::string literal = cat("[", record_, "]");
    if (config_.edits.value) {
      replace(*config_.edits.value, literal);
    } else {
      append("", cat(quote_json(kEditRecord), ":", literal));
    }
  }
  void replace(ByteRange range, std::string literal) {
    splices_.push_back({.begin = range.begin, .end = range.end, .text = std::move(literal)});
  }
  /// Replaces the value of a member, or adds the member to its parent.
  void put(const NodePlace& place, std::string_view pointer, const std::string& literal) {
    if (place.value) return replace(*place.value, literal);
    const std::size_t slash = pointer.rfind('/');
    append(pointer.substr(0, slash), cat(quote_json(pointer.substr(slash + 1)), ":", literal));
  }
  /// Splices the additions of one object or array; creates it if it is missing or null.
  void add_to(std::string_view container, const std::string& joined) {
    const NodePlace& place = config_.place(container);
    if (place.value && !place.null) {
      // After the last member, before the white space in front of the closing bracket.
      const std::size_t last = text_.find_last_not_of(" \t\r\n", place.value->end - 2);
      return replace({last + 1, last + 1}, place.empty ? joined : cat(",", joined));
    }
    const bool array =
        container == kHugepageLimits || container == kCreateRuntime || container == kPoststop;
    put(place, container, array ? cat("[", joined, "]") : cat("{", joined, "}"));
  }

  std::string_view text_;
  const OciConfig& config_;
  std::array<std::string, kConfigMembers.size()> additions_;
  std::vector<Splice> splices_;
  std::string record_;  ///< elements of kEditRecord
};

/// Rejects a config that was not parsed from this text.
Status check_inside(std::string_view text, const OciConfig& config) {
  const std::optional<ByteRange>& root = config.place("").value;
  if (!root || root->end > text.size())
    return fail(ErrorCode::kInvalidArgument, "config was not parsed from this text");
  return {};
}

/// Never writes what parse() would refuse.
Status check_texts(const core::ConfigEdit& edit, const std::optional<HookRegistration>& hooks) {
  const std::string path = edit.cgroups_path.value_or("");
  bool valid =
      is_utf8(path) && path.size() <= kMaxCgroupsPathSize && std::ranges::none_of(path, is_control);
  if (hooks) valid = valid && is_utf8(hooks->path) && std::ranges::all_of(hooks->args, is_utf8);
  if (!valid) {
    return fail(ErrorCode::kInvalidArgument,
                "a new string is not valid UTF-8, or cgroupsPath contains control bytes or is "
                "too long");
  }
  return {};
}

void plan_edit(SplicePlanner& planner, const OciConfig& config, const core::ConfigEdit& edit) {
  const auto set_number = [&](std::string_view pointer, const auto& value) {
    if (value) planner.set(pointer, std::to_string(value->value()));
  };
  if (edit.cgroups_path && edit.cgroups_path != config.facts.cgroups_path) {
    planner.set("/linux/cgroupsPath", quote_json(*edit.cgroups_path));
  }
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

std::string hook_literal(const HookRegistration& hooks, std::string_view stage) {
  std::string args = quote_json("podqos-hook");
  for (const std::string& arg : hooks.args)
    args += cat(",", quote_json(arg));
  return cat("{\"path\":", quote_json(hooks.path), ",\"args\":[", args, ",", quote_json(stage),
             "]}");
}

Result<std::vector<Splice>> plan_splices(std::string_view text, const OciConfig& config,
                                         const core::ConfigEdit& edit,
                                         const std::optional<HookRegistration>& hooks) {
  PODQOS_TRY(check_inside(text, config));
  PODQOS_TRY(check_texts(edit, hooks));
  SplicePlanner planner{text, config};
  plan_edit(planner, config, edit);
  if (hooks && !config.has_create_hook)
    planner.append(kCreateRuntime, hook_literal(*hooks, "createRuntime"));
  if (hooks && !config.has_poststop_hook)
    planner.append(kPoststop, hook_literal(*hooks, "poststop"));
  return planner.plan();
}

Result<std::string> edit_config(std::string_view text, const OciConfig& config,
                                const core::ConfigEdit& edit,
                                const std::optional<HookRegistration>& hooks) {
  PODQOS_ASSIGN(const auto splices, plan_splices(text, config, edit, hooks));
  return apply_splices(text, splices);
}

Result<std::string> apply_splices(std::string_view text, const std::vector<Splice>& splices) {
  std::string out;
  std::size_t done = 0;
  for (const Splice& splice : splices) {
    if (splice.begin < done || splice.end < splice.begin || splice.end > text.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  cat("splice [", splice.begin, ", ", splice.end, ") of ", text.size(),
                      " bytes overlaps or is out of range"));
    }
    out += text.substr(done, splice.begin - done);
    out += splice.text;
    done = splice.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace podqos::codec
