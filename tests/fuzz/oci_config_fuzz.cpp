#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "tests/fuzz/require.h"

namespace {

using nlohmann::json;
using podqos::codec::HookRegistration;
using podqos::codec::OciConfig;
using podqos::codec::Splice;
using podqos::core::ConfigEdit;
using podqos::fuzz::require;

const HookRegistration kHooks{.path = "/usr/libexec/\"podqos-hook", .args = {"--config", "/x\n"}};

constexpr std::string_view kPath = "/kubepods/pod1/\"c\\\xc3\xa9";

/// Some of the members, chosen by the text itself, so that a saved input is a whole case.
ConfigEdit edit_for(std::string_view text) {
  const std::size_t choice = std::hash<std::string_view>{}(text);
  const auto chosen = [choice](unsigned bit) { return (choice >> bit & 1U) != 0; };
  ConfigEdit edit;
  if (chosen(0)) edit.cgroups_path = kPath;
  if (chosen(1)) edit.cgroups_path = podqos::cat("/", text.substr(0, 24));
  if (chosen(2)) edit.values.cpu_shares = podqos::CpuShares{512};
  if (chosen(3)) edit.values.cpu_quota = podqos::Micros{-1};
  if (chosen(4)) edit.values.cpu_period = podqos::Micros{100'000};
  if (chosen(5)) edit.values.memory_limit = podqos::Bytes{1LL << 40U};
  if (chosen(6)) edit.values.pids_limit = 99;
  if (chosen(7)) edit.values.hugepages = {{"1GB", podqos::Bytes{1}}, {"2MB", podqos::Bytes{0}}};
  if (chosen(8)) edit.oom_score_adj = -998;
  return edit;
}

/// The result with each splice's text taken back out for the bytes that it replaced.
std::string undone(std::string_view before, std::string_view after,
                   const std::vector<Splice>& splices) {
  std::string text;
  std::size_t at_before = 0;
  std::size_t at_after = 0;
  for (const Splice& splice : splices) {
    const std::size_t kept = splice.begin - at_before;
    text += after.substr(at_after, kept);
    text += before.substr(splice.begin, splice.end - splice.begin);
    at_after += kept + splice.text.size();
    at_before = splice.end;
  }
  return text.append(after.substr(at_after));
}

/// What a parser of whole documents finds at `path`; null when a part of the path is absent.
json at(const json& document, std::string_view path) {
  const json::json_pointer pointer{std::string{path}};
  return document.contains(pointer) ? document.at(pointer) : json{};
}

/// Compares a text with what is read of it by members in their own case.
void check_facts(std::string_view text) {
  const auto exact = OciConfig::parse(text, podqos::codec::MemberNames::kExact);
  if (!exact) return;  // what is repeated
  const OciConfig& config = *exact;
  const json document = json::parse(text);
  const json path = at(document, "/linux/cgroupsPath");
  require(path.is_null() || config.facts.cgroups_path.value_or("") == path.get<std::string>());
  const json score = at(document, "/process/oomScoreAdj");
  require(score.is_null() || config.facts.oom_score_adj.has_value());
  const json shares = at(document, "/linux/resources/cpu/shares");
  require(shares.is_null() || config.facts.resources.cpu_shares.has_value() == (shares != 0));
  const json annotations = at(document, "/annotations");
  if (annotations.is_null()) return;
  for (const auto& [key, value] : config.facts.annotations)
    require(annotations.at(key) == value);
}

/// Each asked value that was set is there; what was not asked for is as it was.
void check_reached(const OciConfig& before, const OciConfig& after, const ConfigEdit& edit) {
  podqos::core::ContainerFacts want = before.facts;
  if (edit.cgroups_path) want.cgroups_path = edit.cgroups_path;
  if (edit.values.cpu_shares) want.resources.cpu_shares = edit.values.cpu_shares->value();
  if (edit.values.cpu_quota) want.resources.cpu_quota = edit.values.cpu_quota->value();
  if (edit.values.cpu_period) want.resources.cpu_period = edit.values.cpu_period->value();
  if (edit.values.memory_limit) want.resources.memory_limit = edit.values.memory_limit->value();
  if (edit.values.pids_limit) want.resources.pids_limit = edit.values.pids_limit;
  if (edit.oom_score_adj) want.oom_score_adj = edit.oom_score_adj;
  want.resources.hugepages.insert(edit.values.hugepages.begin(), edit.values.hugepages.end());
  require(after.facts == want);
}

void check_edit(std::string_view text, const OciConfig& config) {
  const ConfigEdit edit = edit_for(text);
  const auto splices = podqos::codec::plan_splices(config, edit, kHooks);
  if (!splices) {
    // Only a path made of the input's own bytes can be unfit.
    require(edit.cgroups_path && edit.cgroups_path != kPath);
    return;
  }
  const auto after = podqos::codec::apply_splices(text, *splices);
  require(after.has_value());
  require(undone(text, *after, *splices) == text);
  require(json::accept(*after));
  const auto again = OciConfig::parse(*after);
  require(again.has_value());
  check_facts(*after);
  check_reached(config, *again, edit);
  require(again->has_create_hook && again->has_poststop_hook);
  const auto second = podqos::codec::plan_splices(*again, edit, kHooks);
  require(second && second->empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(bytes, size);
  const auto config = OciConfig::parse(text);
  if (!config) {
    if (config.error().message.starts_with("malformed JSON"))
      require(!json::accept(text) || text.contains('\0'));
    return 0;
  }
  require(!text.contains('\0'));
  // What Go takes beside JSON.
  if (!json::accept(text)) return 0;
  check_facts(text);
  check_edit(text, *config);
  return 0;
}
