#include "hook/opened_config.h"

#include <fcntl.h>

#include <utility>

#include "common/app/place.h"
#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "hook/former_config.h"

namespace podqos::hook {

namespace {

/// Whether podqos may be concerned by a config.json that it cannot edit, such as a symlink, read as
/// the runtime will read it: an ordinary container must start nevertheless.
bool uneditable_may_concern(const std::string& path, const core::Settings& settings) {
  const sys::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!fd.valid()) return false;
  const auto text = sys::read_all(fd.get(), codec::kMaxConfigSize, path);
  return !text || app::may_concern(*text, settings);
}

}  // namespace

Result<std::optional<OpenedConfig>> OpenedConfig::open(const RuntimeCall& call,
                                                       const core::Settings& settings) {
  auto bundle = Bundle::open(call.bundle);
  // The runtime reports a bundle that cannot be read, in the form that its engine expects.
  if (!bundle) return std::nullopt;
  std::optional<Bundle> elsewhere;
  std::string name = call.config_name;
  // Only this very name is the bundle's file for crun; any other is a path, relative to the working
  // directory (src/run.c).
  if (name != "config.json") {
    const std::size_t slash = name.rfind('/');
    auto directory = Bundle::open(slash == std::string::npos ? "." : name.substr(0, slash + 1));
    if (!directory) return std::nullopt;
    elsewhere = std::move(*directory);
    name.erase(0, slash + 1);
  }
  OpenedConfig opened{std::move(*bundle), std::move(elsewhere), std::move(name)};
  auto file = opened.directory().read_config(opened.name_);
  const std::string path = cat(opened.directory().canonical(), "/", opened.name_);
  if (!file &&
      (file.error().code == ErrorCode::kNotFound || !uneditable_may_concern(path, settings)))
    return std::nullopt;
  if (!file) return fail(std::move(file).error());
  opened.concerned_ = app::may_concern(*file, settings);
  // Only while podqos is switched off may it be unconcerned by a file that it has edited.
  if (!opened.concerned_ && (settings.enabled || !file->contains(codec::kEditRecord)))
    return std::nullopt;
  opened.file_ = std::move(*file);
  opened.text_ = former_config(opened.file_);
  return opened;
}

Status OpenedConfig::write(std::string text) {
  if (text == file_) return {};
  if (auto written = directory().write_config(text, name_); !written) return written;
  file_ = std::move(text);
  return {};
}

}  // namespace podqos::hook
