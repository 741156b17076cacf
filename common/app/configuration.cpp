#include "common/app/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/settings_json.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::app {
namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

/// Whether the owner is root or the caller. In a user namespace a file of a user without a mapping,
/// such as the host's root, belongs to the overflow uid; there the file only tells which runtime is
/// to run, with nothing but the caller's privileges.
/// @note user_namespaces(7), "Unmapped user and group IDs".
bool is_trusted(uid_t owner) {
  constexpr uid_t kOverflowUid = 65534;  // the default of /proc/sys/kernel/overflowuid
  return owner == 0 || owner == ::geteuid() || (owner == kOverflowUid && !cgroup::owns_host());
}

/// Refuses a file or directory that another user could change.
Status check_owner(const struct stat& found, const std::string& path) {
  if (!is_trusted(found.st_uid))
    return fail(ErrorCode::kPermission,
                cat(path, ": owned by uid ", found.st_uid,
                    ", but the configuration must be owned by root: run chown root ", path));
  if ((found.st_mode & kWritableByOthers) != 0)
    return fail(ErrorCode::kPermission,
                cat(path, ": writable by group or others: run chmod go-w ", path));
  return {};
}

/// Opens `name` (absolute, or relative to `directory`) and reads it, if it can be trusted.
Result<std::string> read_trusted(int directory, const char* name, const std::string& path) {
  // O_NONBLOCK: a FIFO in its place must not block the start of a container.
  const sys::UniqueFd fd{::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!fd.valid()) return fail_errno(errno, cat("open ", path));
  struct stat found = {};
  if (::fstat(fd.get(), &found) != 0) return fail_errno(errno, cat("stat ", path));
  if (!S_ISREG(found.st_mode)) return fail(ErrorCode::kConflict, cat(path, ": not a regular file"));
  PODQOS_TRY(check_owner(found, path));
  return sys::read_all(fd.get(), codec::kMaxSettingsSize, path, sys::FileEnd::kShortRead);
}

/// Receives the text of each file, or why it cannot be read, in order of increasing precedence.
/// @return an error ends the reading.
using UseFile = std::function<Status(const Result<std::string>& text, const std::string& path)>;

/// Whether a name ends like that of a configuration file of another kind.
bool looks_like_configuration(std::string_view name) {
  constexpr std::array<std::string_view, 6> kSuffixes = {".yaml", ".yml",   ".toml",
                                                         ".conf", ".json5", ".jsonc"};
  return std::ranges::any_of(kSuffixes,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

/// Reads conf.d, which need not exist.
/// @param ignored  gets files that look like configuration and are not read; may be nullptr
Status read_directory(const std::string& path, const UseFile& use,
                      std::vector<std::string>* ignored) {
  auto directory = sys::Directory::open(path);
  if (!directory) {
    if (directory.error().code == ErrorCode::kNotFound) return {};
    return use(fail(std::move(directory).error()), path);
  }
  struct stat found = {};
  if (::fstat(directory->fd(), &found) != 0)
    return use(fail_errno(errno, cat("stat ", path)), path);
  if (auto owner = check_owner(found, path); !owner)
    return use(fail(std::move(owner).error()), path);
  auto names = directory->entries();
  if (!names) return use(fail(std::move(names).error()), path);
  std::erase_if(*names, [](const std::string& name) { return name.starts_with('.'); });
  std::ranges::sort(*names);
  for (const std::string& name : *names) {
    const std::string shown = cat(path, "/", name);
    if (name.ends_with(".json")) {
      PODQOS_TRY(use(read_trusted(directory->fd(), name.c_str(), shown), shown));
    } else if (ignored != nullptr && looks_like_configuration(name)) {
      ignored->push_back(shown);
    }
  }
  return {};
}

/// Reads the main file and conf.d, or only `file`.
Status read_files(const std::optional<std::string>& file, const ConfigurationPaths& paths,
                  const UseFile& use, std::vector<std::string>* ignored = nullptr) {
  const std::string& main_file = file ? *file : paths.file;
  const auto text = read_trusted(AT_FDCWD, main_file.c_str(), main_file);
  if (text || file || text.error().code != ErrorCode::kNotFound) {
    PODQOS_TRY(use(text, main_file));
  }
  return file ? Status{} : read_directory(paths.directory, use, ignored);
}

}  // namespace

Result<core::Settings> load_settings(const std::optional<std::string>& file,
                                     const ConfigurationPaths& paths) {
  core::Settings settings;
  const auto merge = [&](const Result<std::string>& text, const std::string& path) -> Status {
    if (!text) return fail(text.error());
    auto merged = codec::merge_settings(std::move(settings), *text);
    if (!merged) return fail(std::move(merged).error().with_context(path));
    settings = std::move(*merged);
    return {};
  };
  PODQOS_TRY(read_files(file, paths, merge));
  return settings;
}

ConfigurationReport inspect_configuration(const std::optional<std::string>& file,
                                          const ConfigurationPaths& paths) {
  ConfigurationReport report;
  const auto check = [&](const Result<std::string>& text, const std::string& path) -> Status {
    if (!text) {
      report.errors.push_back(text.error().message);
      return {};
    }
    report.files.push_back(path);
    auto checked = codec::check_settings(std::move(report.settings), *text);
    report.settings = std::move(checked.settings);
    for (Error& error : checked.errors)
      report.errors.push_back(std::move(error).with_context(path).message);
    return {};
  };
  if (auto done = read_files(file, paths, check, &report.ignored); !done)
    report.errors.push_back(std::move(done).error().message);
  return report;
}

Result<std::vector<std::string>> salvage_runtimes(const std::optional<std::string>& file,
                                                  const ConfigurationPaths& paths) {
  Result<std::vector<std::string>> runtimes = core::Settings{}.runtimes;
  const auto salvage = [&](const Result<std::string>& text, const std::string& path) -> Status {
    if (!text) return fail(text.error());
    auto salvaged = codec::salvage_runtimes(*text);
    if (!salvaged) {
      // A later file may still set them.
      runtimes = fail(std::move(salvaged).error().with_context(path));
    } else if (*salvaged) {
      runtimes = std::move(**salvaged);
    }
    return {};
  };
  PODQOS_TRY(read_files(file, paths, salvage));
  return runtimes;
}

}  // namespace podqos::app
