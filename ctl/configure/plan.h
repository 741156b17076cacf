#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/engine.h"

namespace podqos::ctl {

/// What engines call.
constexpr std::string_view kWrapperPath = "/usr/bin/podqos-runtime";
/// The name of the runtime or handler.
constexpr std::string_view kHandler = "podqos";
/// Appended to the name of a file for the copy of it that is kept before its first change.
constexpr std::string_view kBackupSuffix = ".podqos-backup";

/// What is at a path.
struct FileState {
  enum class Kind : std::uint8_t { kAbsent, kFile, kLink };
  Kind kind = Kind::kAbsent;
  std::string text;  ///< a file's content, a symlink's target

  [[nodiscard]] static FileState file(std::string text) {
    return {.kind = Kind::kFile, .text = std::move(text)};
  }
  [[nodiscard]] static FileState link(std::string target) {
    return {.kind = Kind::kLink, .text = std::move(target)};
  }
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// The machine's files as a plan reads them. Paths are absolute, without the --root in front.
struct ConfigSource {
  /// The state of a path; an error for what cannot be read or is too large.
  std::function<Result<FileState>(const std::string& path)> read;
  /// The content of the file that a path leads to, symlinks followed; nullopt if there is none. For
  /// files that are looked at and never changed.
  std::function<Result<std::optional<std::string>>(const std::string& path)> follow;
  /// Names of a directory's entries, sorted by their bytes, those of directories with a "/" at the
  /// end; empty if it does not exist.
  std::function<Result<std::vector<std::string>>(const std::string& directory)> list;
};

/// One question: the engine and the method, and what is known before an engine's file is read.
struct ConfigureRequest {
  Engine engine = Engine::kContainerd;
  Method method = Method::kWrapper;
  std::optional<Version> version = {};      ///< required where the files depend on it
  std::optional<std::string> program = {};  ///< nullopt if it is not installed, and with --root
  bool plugin_installed = false;            ///< /usr/sbin/podqos-nri exists
  bool kubelet = false;                     ///< /var/lib/kubelet exists
};

/// One file that changes.
struct FileChange {
  std::string path;
  FileState before;
  FileState after;
  std::string what;     ///< "handler podqos", for the line that is printed
  bool backup = false;  ///< whether `before` is kept beside the file unless a backup is there
  /// Whether the backup has become the file again, so that it is removed.
  bool drop_backup = false;
  friend bool operator==(const FileChange&, const FileChange&) = default;
};

/// Everything that is to be done, as data: what --dry-run prints and what is carried out.
struct ConfigurePlan {
  std::vector<FileChange> changes;  ///< empty: nothing to do
  std::vector<std::string> notes;   ///< what is registered already, and what the operator should do
  /// Files and directories of containerd or CRI-O that have podqos's registration, or had it: an
  /// engine that is older than their last change has not read them.
  std::vector<std::string> registered_in;
  /// Why the engine should not be restarted with these files now; "" if nothing speaks against it.
  std::string restart_harm;
  friend bool operator==(const ConfigurePlan&, const ConfigurePlan&) = default;
};

/// Plans the registration of podqos.
/// @return an error if a file cannot be understood or must be changed by its owner: it names file,
///         line, value, and what to add by hand. Nothing is to be changed then.
[[nodiscard]] Result<ConfigurePlan> plan_registration(const ConfigureRequest& request,
                                                      const ConfigSource& source);

/// Plans the removal of all that plan_registration() has ever written for this engine, by any
/// method.
[[nodiscard]] Result<ConfigurePlan> plan_removal(Engine engine, const ConfigSource& source);

// One engine each; called by the two above.
[[nodiscard]] Result<ConfigurePlan> plan_containerd(const ConfigureRequest& request,
                                                    const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_crio(const ConfigureRequest& request,
                                              const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_podman(const ConfigureRequest& request,
                                                const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_docker(const ConfigureRequest& request,
                                                const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_containerd_removal(const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_crio_removal(const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_podman_removal(const ConfigSource& source);
[[nodiscard]] Result<ConfigurePlan> plan_docker_removal(const ConfigSource& source);

}  // namespace podqos::ctl
