#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace podqos::hook {

/// What a runtime's argv asks for, as far as the wrapper cares.
enum class Verb : std::uint8_t {
  kPlaces,  ///< create, run, restore: the container is about to be made from a bundle
  kOther,   ///< everything else goes to the runtime untouched
};

struct RuntimeCall {
  Verb verb = Verb::kOther;
  std::string id;
  std::string bundle = ".";                 ///< --bundle; the working directory if absent
  std::string config_name = "config.json";  ///< crun's --config
  bool systemd = false;                     ///< --systemd-cgroup, --cgroup-manager=systemd
  std::string log_file;  ///< the runtime's own --log, where an engine looks for its errors
  bool log_json = false;
  std::optional<std::string> podqos_config;  ///< podqos's own --config, in front of all others
  std::vector<std::string>
      runtime_args;  ///< argv of the runtime without argv[0] and podqos's own option
};

/// Understands the argv of runc, crun and youki as engines and people write it: "--x v", "--x=v",
/// "-x v", short flags, crun's abbreviations.
/// @param args  argv without argv[0].
/// @note runc main.go, crun src/crun.c, youki crates/liboci-cli.
[[nodiscard]] RuntimeCall parse_runtime_argv(std::span<const char* const> args);

}  // namespace podqos::hook
