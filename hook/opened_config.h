#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/core/settings.h"
#include "hook/bundle.h"
#include "hook/runtime_argv.h"

namespace podqos::hook {

/// The config.json of a container about to be created, where podqos may be concerned by it or has
/// edited it.
class OpenedConfig {
 public:
  /// Opens the bundle, and the file that the runtime will read.
  /// @return nullopt: podqos does nothing and runs the runtime
  static Result<std::optional<OpenedConfig>> open(const RuntimeCall& call,
                                                  const core::Settings& settings);

  /// The bundle's canonical path.
  [[nodiscard]] const std::string& bundle() const { return bundle_.canonical(); }
  /// The text as it was before podqos edited it, see former_config().
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether podqos may be concerned by the container.
  [[nodiscard]] bool is_concerned() const { return concerned_; }
  /// Replaces the file atomically, unless it has this text already.
  [[nodiscard]] Status write(std::string text);
  /// Takes earlier edits back: what podqos filled in for an earlier container of this bundle has no
  /// meaning for one that it does not place, its cgroup least of all.
  [[nodiscard]] Status restore() { return write(text_); }

 private:
  OpenedConfig(Bundle bundle, std::optional<Bundle> elsewhere, std::string name)
      : bundle_(std::move(bundle)), elsewhere_(std::move(elsewhere)), name_(std::move(name)) {}
  [[nodiscard]] Bundle& directory() { return elsewhere_ ? *elsewhere_ : bundle_; }

  Bundle bundle_;
  std::optional<Bundle> elsewhere_;  ///< directory of the file, where it is not the bundle
  std::string name_;                 ///< of the file in it
  std::string file_;                 ///< its text
  std::string text_;
  bool concerned_ = false;
};

}  // namespace podqos::hook
