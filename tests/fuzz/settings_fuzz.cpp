#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "common/codec/settings_json.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::core::Settings;
using podqos::fuzz::require;

/// Different from the defaults in every field that an input is likely to leave out.
Settings other_settings() {
  Settings out;
  out.enabled = false;
  out.cgroup_root = "/other";
  out.node_memory = podqos::Bytes{1};
  out.node_cpu = podqos::MilliCpu{1};
  out.reserve_memory_percent = 7;
  out.pod_pids_limit = 9;
  out.runtimes = {"/other"};
  out.log_sink = "none";
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(bytes, size);
  const auto settings = podqos::codec::merge_settings({}, text);
  if (!settings) return 0;
  require(nlohmann::json::accept(text, true) && !text.contains('\0'));
  require(settings->cgroup_root.starts_with('/') && settings->state_dir.starts_with('/'));
  require(!settings->runtimes.empty());
  const std::string formatted = podqos::codec::format_settings(*settings);
  require(nlohmann::json::accept(formatted));
  // All fields are written, so that nothing of what they are laid over is left.
  const auto again = podqos::codec::merge_settings(other_settings(), formatted);
  require(again == *settings);
  require(podqos::codec::format_settings(*again) == formatted);
  return 0;
}
