// What podqos reads of config.json, and makes of it, for tests/fuzz/go/config: for each text on
// standard input, which is preceded by its size and a newline, a line of JSON. Bytes are in base
// 64, as Go has them in JSON.

#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"

namespace {

using nlohmann::json;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view part = bytes.substr(at, 3);
    unsigned bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8U | (i < part.size() ? static_cast<unsigned char>(part[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= part.size() ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

template <class Number>
json number(const std::optional<Number>& value) {
  return value ? json(*value) : json(nullptr);
}

json answer(std::string_view text) {
  using podqos::codec::OciConfig;
  const auto config = OciConfig::parse(text);
  if (!config) return {{"error", config.error().message}};
  podqos::core::ConfigEdit edit{.cgroups_path = "/kubepods/pod1/c", .oom_score_adj = -998};
  edit.values.cpu_shares = podqos::CpuShares{512};
  edit.values.memory_limit = podqos::Bytes{1LL << 30U};
  const auto edited = podqos::codec::edit_config(
      *config, edit, podqos::codec::HookRegistration{.path = "/bin/podqos-hook", .args = {}});
  if (!edited) return {{"error", edited.error().message}};
  const podqos::core::ContainerFacts& facts = config->facts;
  const auto annotation = [&](std::string_view name) {
    const auto found = facts.annotations.find(name);
    return base64(found == facts.annotations.end() ? std::string_view{} : found->second);
  };
  return {{"path", base64(facts.cgroups_path.value_or(""))},
          {"podUid", annotation("podqos.io/pod-uid")},
          {"sandbox", annotation("io.kubernetes.cri.sandbox-id")},
          {"numbers",
           {number(facts.oom_score_adj), number(facts.resources.cpu_quota),
            number(facts.resources.memory_limit), number(facts.resources.memory_reservation)}},
          {"edited", base64(*edited)}};
}

}  // namespace

int main() {
  std::string size;
  while (std::getline(std::cin, size)) {
    std::string text(std::stoul(size), '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    std::cout << answer(text).dump(-1, ' ', false, json::error_handler_t::replace) << '\n'
              << std::flush;
  }
}
