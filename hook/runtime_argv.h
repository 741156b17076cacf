#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/codec/json_tree.h"
#include "common/core/pods/request.h"

namespace podqos::hook {

/// A parsed command line of podqos-runtime.
struct RuntimeCall {
  /// create, run, restore: the runtime is about to create a container from a bundle. Any call is
  /// passed to the runtime unchanged.
  bool places = false;
  /// update: the runtime is about to change limits of a running container.
  bool updates = false;
  std::string id;            ///< container id; set if `places` or `updates`
  std::string bundle = ".";  ///< --bundle; default: the working directory
  bool systemd = false;      ///< --systemd-cgroup, --cgroup-manager=systemd
  std::string log_file;      ///< the runtime's own --log, where an engine looks for its errors
  bool log_json = false;
  std::optional<std::string> podqos_config;  ///< podqos's own --config; first option only
  /// update: the file of --resources, "-" for standard input; then the runtime reads nothing else.
  std::optional<std::string> resources;
  core::EngineResources limits;  ///< update: CPU and memory as the other options have them
  /// Arguments for the runtime: `args` without podqos's own option.
  std::vector<std::string> runtime_args;
};

/// Parses the argv of runc, crun and youki as engines write it: "--x v", "--x=v", "-x v", "-bDIR"
/// and flags. An unknown option is passed over by its form: as a flag, or with the value behind
/// '='.
/// @param args  argv without argv[0].
/// @return `places` and `updates` are false also for a call without an id, with --help or
///         --version, `places` with
///         --cgroup-manager=disabled of crun: nothing is to be placed; and with crun's --config of
///         a file that is not the bundle's, which no engine gives.
/// @note runc main.go, crun src/crun.c, youki crates/liboci-cli.
[[nodiscard]] RuntimeCall parse_runtime_argv(std::span<const char* const> args);

/// How a runtime compares the names of config.json's members, by the name of its program.
/// @note crun: libocispec; youki: serde; all others are written in Go.
[[nodiscard]] codec::MemberNames member_names_of(std::string_view runtime);

}  // namespace podqos::hook
