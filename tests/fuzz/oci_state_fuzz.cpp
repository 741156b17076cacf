#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "common/codec/annotations.h"
#include "common/codec/oci_config.h"
#include "tests/fuzz/require.h"

namespace {

using nlohmann::json;
using podqos::fuzz::require;

void check_against(const json& document, const podqos::codec::OciState& state) {
  require(document.at("id") == state.facts.id);
  if (state.pid) require(document.at("pid") == state.pid->value());
  if (!state.facts.bundle.empty()) require(document.at("bundle") == state.facts.bundle);
  if (state.facts.annotations.empty()) return;
  const json& annotations = document.at("annotations");
  for (const auto& [key, value] : state.facts.annotations)
    require(annotations.at(key) == value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(bytes, size);
  const auto state = podqos::codec::parse_oci_state(text);
  if (!state) return 0;
  require(json::accept(text) && !text.contains('\0'));
  require(!state->facts.id.empty() && state->facts.id.size() <= 1024);
  require(std::ranges::all_of(state->facts.id, [](char c) { return c > ' ' && c < '\x7f'; }));
  require(!state->pid || (state->pid->value() > 0 && state->pid->value() <= INT32_MAX));
  require(!state->facts.bundle.contains('\0'));
  for (const auto& [key, value] : state->facts.annotations) {
    require(podqos::codec::is_known_annotation(key));
    require(value.size() <= podqos::codec::kMaxAnnotationSize);
  }
  check_against(json::parse(text), *state);
  return 0;
}
