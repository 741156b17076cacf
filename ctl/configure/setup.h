#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "ctl/cli/table.h"
#include "ctl/configure/files.h"
#include "ctl/configure/program.h"
#include "ctl/configure/toml.h"
#include "ctl/node/finding.h"

namespace podqos::ctl {

/// What engines call.
constexpr std::string_view kWrapperPath = "/usr/bin/podqos-runtime";
/// The name of the runtime or handler.
constexpr std::string_view kHandler = "podqos";

/// The error of what an operator has to change: `cat(parts…)`.
template <class... Parts>
[[nodiscard]] std::unexpected<Error> refuse(const Parts&... parts) {
  return fail(ErrorCode::kConflict, cat(parts...));
}

/// The plugin for NRI, which a package of its own brings.
constexpr const char* kHookPath = "/usr/libexec/oci/hooks.d/podqos-hook";
constexpr const char* kPlugin = "/usr/sbin/podqos-nri";
constexpr const char* kPluginUnit = "podqos-nri.service";
constexpr const char* kSystemctl = "/usr/bin/systemctl";

/// How podqos is registered with an engine.
enum class Method : std::uint8_t {
  kWrapper,  ///< podqos-runtime in place of the OCI runtime
  kNri,      ///< the plugin podqos-nri
  kHooks,    ///< OCI hooks: Podman's precreate, elsewhere createRuntime and poststop
};
/// On the command line, in the order of the enumeration.
constexpr std::array<std::string_view, 3> kMethods = {"wrapper", "nri", "hooks"};

/// How far --restart may go.
enum class Restart : std::uint8_t {
  kNo,
  kHarmless,  ///< unless running containers would stop
  kForce,     ///< whatever it costs
};

/// What is compared of a version: "1.7.24~ds1" is {1, 7}.
struct Version {
  std::int64_t major = 0;
  std::int64_t minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

/// The first word of a program's `--version` that begins with a number and a dot, "v" in front
/// allowed: "containerd github.com/containerd/containerd/v2 2.1.9+ds1 …" is {2, 1}.
/// @return nullopt if there is none.
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);
/// "1.7".
[[nodiscard]] std::string format_version(const Version& version);

/// What is done beside the files, or found: members of the JSON, in its order.
constexpr std::array<std::string_view, 7> kEvents = {
    "checked",          // the engine has accepted the configuration
    "reloaded",         // its service
    "restarted",        // its service
    "stale",            // what runs has another configuration than the files
    "pluginEnabled",    // podqos-nri.service was enabled and started
    "pluginConnected",  // the engine sends it its events
    "pluginDisabled",   // it was stopped and disabled
};

struct Setup;
enum class EngineId : std::uint8_t { kContainerd, kCrio, kPodman, kDocker };

/// What an engine's files say beside the registration itself.
struct EngineSettings {
  std::optional<core::Driver> driver = std::nullopt;  ///< nullopt: they do not say
  bool is_default = false;           ///< containers get podqos's runtime without asking for it
  std::vector<Finding> checks = {};  ///< of settings on which the registration depends
};

/// An engine that `podqosctl configure` knows.
struct Engine {
  EngineId id = EngineId::kContainerd;
  std::string_view name;           ///< of the command line, "containerd"
  std::string_view recorded;       ///< in records of its pods (core::format_engine), "cri-o"
  std::string_view title;          ///< in messages, "containerd"
  std::string_view program;        ///< that tells the version and checks the configuration
  std::string_view config;         ///< the file that it reads first
  std::string_view config_option;  ///< with which the program reads another; "" if none does
  std::string_view check;          ///< what the program is told to check its configuration
  std::string_view service;        ///< to restart; "" for an engine without daemon
  std::string_view start;          ///< starts a container with podqos's runtime
  std::optional<Version> nri;      ///< the first version with NRI
  Status (*plan)(Setup& setup);
  Result<EngineSettings> (*inspect)(Setup& setup);
};

/// All of them, in the order of the enumeration.
[[nodiscard]] std::span<const Engine> engines();

/// The engine's program in /usr and /usr/local.
/// @return nullopt if it is not installed; kConflict if two different ones are, because which of
///         them runs, and what version it has, only the operator knows.
[[nodiscard]] Result<std::optional<std::string>> find_program(const Engine& engine);

/// One run of `podqosctl configure`: what is asked, what is planned, and what came of it.
struct Setup {
  const Engine* engine = nullptr;
  Method method = Method::kWrapper;
  std::optional<Version> version = {};      ///< required where the files depend on it
  std::optional<std::string> program = {};  ///< nullopt if it is not installed, and with --root
  bool plugin_installed = false;            ///< /usr/sbin/podqos-nri exists
  bool undo = false;
  bool set_default = false;  ///< podqos's runtime becomes the engine's default
  bool dry_run = false;
  Restart restart = Restart::kNo;
  /// What the engine reads in place of Engine::config, of --config; "" for that one.
  std::string config = {};
  std::string root = {};  ///< of --root; "" for the machine itself
  EngineFiles files{root};
  /// The engine's TOML files as their owners wrote them, in the order in which it reads them.
  std::vector<TomlDocument> documents = {};

  // Planned.
  std::vector<FileChange> changes = {};  ///< empty: nothing to do
  /// What is registered already, and what the operator should do.
  std::vector<std::string> notes = {};
  /// Files of containerd or CRI-O that have podqos's registration, or had it: an engine that is
  /// older than their last change has not read them.
  std::vector<std::string> registered_in = {};

  // Done.
  /// Those of kEvents that have happened, each with its line for people.
  std::map<std::string_view, std::string> events = {};
  bool stale = false;         ///< what runs has another configuration than the files
  bool plugin_ready = false;  ///< podqos-nri.service is enabled and runs
  /// Running containers of a Docker without live-restore: those that a restart stops.
  std::int64_t containers = 0;
  std::optional<Error> failure = {};  ///< what failed after the files were changed for good

  [[nodiscard]] bool is(EngineId id) const { return engine->id == id; }
  [[nodiscard]] std::string config_file() const {
    return config.empty() ? std::string{engine->config} : config;
  }
  /// Whether the daemon of this machine's service reads these files.
  [[nodiscard]] bool is_service() const { return root.empty() && config.empty(); }
  [[nodiscard]] bool changed() const { return !changes.empty(); }
  /// TomlDocument::at() of the last of the documents that has the path: that is the one that
  /// counts.
  [[nodiscard]] TomlValue at(std::string_view path) const;
};

/// The default method: NRI for an engine that has it, if the plugin is installed, because it needs
/// no handler and counts a kubelet's pods; else the wrapper. Podman has precreate instead.
[[nodiscard]] Method best_method(const Setup& setup);

/// Plans what registers podqos by the method, or the removal of all that was ever written for this
/// engine, by any method. Both depend on nothing but the version and the files.
/// @return an error if a file cannot be understood or must be changed by its owner: it names file,
///         line, value, and what to add by hand. Nothing is to be changed then. kUnsupported with
///         the remedy if the engine does not have the method. kAlreadyExists if a runtime of
///         podqos's name is registered that is another program.
[[nodiscard]] Status plan(Setup& setup);

/// Has the engine check and read what apply() has made of the files of this machine, as far as
/// --restart allows, and starts or stops podqos-nri.service.
///
/// Docker is reloaded, which costs no container anything, and restarted only where that was not
/// enough: a reload does not forget the last runtime. A restart of containerd or CRI-O costs no
/// container anything. Nothing is done where the engine has this configuration already.
/// @param patience  how long an engine may take to show what it was told: Docker that it has read
///                  its file after a reload (10 s at most where it is to forget a runtime),
///                  containerd and CRI-O that podqos-nri has found them, which it tries at least
///                  every 5 s
/// @return an error after which the files are as they were and nothing is to be reported.
[[nodiscard]] Status activate(Setup& setup, const Run& run,
                              std::chrono::milliseconds patience = std::chrono::seconds{30});

/// For people: a line for each change with how to undo it, the notes, what was done, and what is
/// left to the operator. Of a dry run the diffs of all changes, and the notes in lines that begin
/// with "#".
/// @return an error if diff(1) cannot be run
[[nodiscard]] Result<std::string> format_text(const Setup& setup, ColourMode mode);
/// For programs: engine, version, method, undo, changes (path, action, what, backup, of a dry run
/// diff), notes, next, and whether each of kEvents has happened.
[[nodiscard]] Result<std::string> format_json(const Setup& setup);

// inspect() of each engine: reads all its files anew.
[[nodiscard]] Result<EngineSettings> inspect_containerd(Setup& setup);
[[nodiscard]] Result<EngineSettings> inspect_crio(Setup& setup);
[[nodiscard]] Result<EngineSettings> inspect_podman(Setup& setup);
[[nodiscard]] Result<EngineSettings> inspect_docker(Setup& setup);

// plan() of each engine.
[[nodiscard]] Status plan_containerd(Setup& setup);
[[nodiscard]] Status plan_crio(Setup& setup);
[[nodiscard]] Status plan_podman(Setup& setup);
[[nodiscard]] Status plan_docker(Setup& setup);

}  // namespace podqos::ctl
