#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

/// The engines that `podqosctl configure` knows.
enum class Engine : std::uint8_t { kContainerd, kCrio, kPodman, kDocker };

/// How podqos is registered with an engine.
enum class Method : std::uint8_t {
  kWrapper,  ///< podqos-runtime in place of the OCI runtime
  kNri,      ///< the plugin podqos-nri
  kHooks,    ///< OCI hooks: Podman's precreate, elsewhere createRuntime and poststop
};

/// What is compared of a version: "1.7.24~ds1" is {1, 7}.
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

/// An engine's names and programs.
struct EngineFacts {
  std::string_view name;            ///< of the command line, "containerd"
  std::string_view title;           ///< in messages, "containerd"
  std::string_view program;         ///< that tells the version and checks the configuration
  std::string_view service;         ///< to restart; "" for an engine without daemon
  std::optional<Version> nri = {};  ///< the first version with NRI
};

/// The facts of one engine.
[[nodiscard]] const EngineFacts& facts_of(Engine engine);
/// The engine with this name on the command line; nullopt if there is none.
[[nodiscard]] std::optional<Engine> parse_engine(std::string_view name);
/// The names on the command line, in the order of the enumeration.
[[nodiscard]] std::span<const EngineFacts> engines();

/// "wrapper", "nri" or "hooks".
[[nodiscard]] std::string_view format_method(Method method);
/// The reverse; nullopt for any other word.
[[nodiscard]] std::optional<Method> parse_method(std::string_view word);

/// The first word of a program's `--version` that begins with a number and a dot, "v" in front
/// allowed: "containerd github.com/containerd/containerd/v2 2.1.9+ds1 …" is {2, 1}.
/// @return nullopt if there is none.
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);
/// "1.7".
[[nodiscard]] std::string format_version(const Version& version);

/// The default method: NRI for an engine that has it, if the plugin is installed, because it needs
/// no handler and adopts a kubelet's pods; else the wrapper. Podman has precreate instead.
/// @param version  nullopt counts as a version without NRI
[[nodiscard]] Method best_method(Engine engine, const std::optional<Version>& version,
                                 bool plugin_installed);

/// Whether the engine of this version can be registered by this method.
/// @return kUnsupported with the reason and the remedy.
[[nodiscard]] Status check_method(Engine engine, Method method,
                                  const std::optional<Version>& version);

}  // namespace podqos::ctl
