#include "common/app/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/record_json.h"
#include "common/codec/settings_json.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::app {
namespace {

/// Whether the owner is root or the caller. In a user namespace a file of a user without a mapping,
/// such as the host's root, belongs to the overflow uid; there the file only tells which runtime is
/// to run, with nothing but the caller's privileges.
/// @note user_namespaces(7), "Unmapped user and group IDs".
bool is_trusted(uid_t owner) {
  constexpr uid_t kOverflowUid = 65534;  // the default of /proc/sys/kernel/overflowuid
  return owner == 0 || owner == ::geteuid() || (owner == kOverflowUid && !cgroup::owns_host());
}

/// Whether the file system of a file is mounted read-only, as a ConfigMap is for a container:
/// it cannot be written, whatever the modes.
bool is_read_only(int fd) {
  struct statfs found = {};
  return ::fstatfs(fd, &found) == 0 && (found.f_flags & ST_RDONLY) != 0;
}

/// Refuses a file or directory that another user could change.
Status check_owner(int fd, const struct stat& found, const std::string& path) {
  if (!is_trusted(found.st_uid))
    return fail(ErrorCode::kPermission,
                cat(path, ": owned by uid ", found.st_uid,
                    ", but the configuration must be owned by root: run chown root ", path));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_read_only(fd))
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
  PODQOS_TRY(check_owner(fd.get(), found, path));
  return sys::read_all(fd.get(), codec::kMaxSettingsSize, path, sys::FileEnd::kShortRead);
}

/// Whether a name ends like that of a configuration file of another kind.
bool looks_like_configuration(std::string_view name) {
  constexpr std::array<std::string_view, 6> kSuffixes = {".yaml", ".yml",   ".toml",
                                                         ".conf", ".json5", ".jsonc"};
  return std::ranges::any_of(kSuffixes,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

/// A file of the configuration.
struct ConfigurationFile {
  std::string path;
  Result<std::string> text;  ///< or why it cannot be read
};

/// The names in conf.d, sorted.
Result<std::vector<std::string>> list_trusted(const sys::Directory& directory) {
  struct stat found = {};
  if (::fstat(directory.fd(), &found) != 0)
    return fail_errno(errno, cat("stat ", directory.path()));
  PODQOS_TRY(check_owner(directory.fd(), found, directory.path()));
  PODQOS_ASSIGN(auto names, directory.entries());
  std::ranges::sort(names);
  return names;
}

/// Reads the main file, which need not exist, and then conf.d, or only `file`: in order of
/// increasing precedence.
/// @param ignored  gets files that look like configuration and are not read; may be nullptr
std::vector<ConfigurationFile> read_files(const std::optional<std::string>& file,
                                          const ConfigurationPaths& paths,
                                          std::vector<std::string>* ignored = nullptr) {
  std::vector<ConfigurationFile> files;
  const std::string& main_file = file ? *file : paths.file;
  auto text = read_trusted(AT_FDCWD, main_file.c_str(), main_file);
  if (text || file || text.error().code != ErrorCode::kNotFound)
    files.push_back({.path = main_file, .text = std::move(text)});
  if (file) return files;
  const auto directory = sys::Directory::open(paths.directory);
  if (!directory && directory.error().code == ErrorCode::kNotFound) return files;
  const auto names = directory ? list_trusted(*directory) : fail(directory.error());
  if (!names) {
    files.push_back({.path = paths.directory, .text = fail(names.error())});
    return files;
  }
  for (const std::string& name : *names) {
    if (name.starts_with('.')) continue;
    const std::string shown = cat(paths.directory, "/", name);
    if (name.ends_with(".json")) {
      files.push_back({.path = shown, .text = read_trusted(directory->fd(), name.c_str(), shown)});
    } else if (ignored != nullptr && looks_like_configuration(name)) {
      ignored->push_back(shown);
    }
  }
  return files;
}

/// The settings of the last transaction; nullopt if there was none.
std::optional<core::Settings> last_valid(const std::string& state_dir) {
  const auto directory = store::open_state_directory(state_dir);
  if (!directory) return std::nullopt;
  const auto text = directory->read_file(store::kNodeName, codec::kMaxRecordSize);
  auto node = text ? codec::parse_node(*text) : fail(text.error());
  return node ? std::move(node->settings) : std::nullopt;
}

/// The field `runtimes` of files with errors: a mistake elsewhere must not make the wrapper run
/// another runtime than the configured one.
/// @return an error if a file cannot be read or trusted, or if the value cannot be recovered
///         (codec::salvage_runtimes) and no later file sets it.
Result<std::vector<std::string>> salvage_runtimes(const std::vector<ConfigurationFile>& files) {
  Result<std::vector<std::string>> runtimes = core::Settings{}.runtimes;
  for (const auto& [path, text] : files) {
    if (!text) return fail(text.error());
    auto salvaged = codec::salvage_runtimes(*text);
    if (!salvaged) {
      // A later file may still set them.
      runtimes = fail(std::move(salvaged).error().with_context(path));
    } else if (*salvaged) {
      runtimes = *std::move(*salvaged);
    }
  }
  return runtimes;
}

}  // namespace

ConfigurationReport inspect_configuration(const std::optional<std::string>& file,
                                          const ConfigurationPaths& paths) {
  ConfigurationReport report;
  const auto files = read_files(file, paths, &report.ignored);
  for (const auto& [path, text] : files) {
    if (!text) {
      report.errors.push_back(text.error().message);
      continue;
    }
    report.files.push_back(path);
    auto checked = codec::check_settings(std::move(report.settings), *text);
    report.settings = std::move(checked.settings);
    for (Error& error : checked.errors)
      report.errors.push_back(std::move(error).with_context(path).message);
  }
  if (report.errors.empty()) return report;
  if (auto last = last_valid(report.settings.state_dir)) {
    report.settings = *std::move(last);
    report.source = SettingsSource::kLastValid;
    return report;
  }
  report.source = SettingsSource::kReadable;
  auto runtimes = salvage_runtimes(files);
  report.settings.runtimes = runtimes.value_or(std::vector<std::string>{});
  if (!runtimes && std::ranges::count(report.errors, runtimes.error().message) == 0)
    report.errors.push_back(std::move(runtimes).error().message);
  return report;
}

std::string stamp_configuration(const std::optional<std::string>& file,
                                const ConfigurationPaths& paths) {
  std::vector<std::string> looked_at = {file ? *file : paths.file};
  if (!file) {
    looked_at.push_back(paths.directory);
    const auto directory = sys::Directory::open(paths.directory);
    const auto names = directory ? directory->entries() : fail(directory.error());
    for (const std::string& name : names.value_or(std::vector<std::string>{}))
      looked_at.push_back(cat(paths.directory, "/", name));
  }
  std::string stamp;
  for (const std::string& path : looked_at) {
    struct stat found = {};
    if (::stat(path.c_str(), &found) == 0)
      stamp +=
          cat(path, " ", found.st_ino, " ", found.st_ctim.tv_sec, " ", found.st_ctim.tv_nsec, "\n");
  }
  return stamp;
}

std::string_view describe_source(SettingsSource source) {
  switch (source) {
    case SettingsSource::kFiles: return "";
    case SettingsSource::kLastValid: return "the last valid settings stay in force";
    case SettingsSource::kReadable:
      return "new containers stay unmanaged, as no valid settings are known since the boot";
  }
  return "";
}

void log_errors(const ConfigurationReport& report, Log& log) {
  if (!report.errors.empty()) log.error(describe_errors(report));
}

std::string describe_errors(const ConfigurationReport& report) {
  std::string text;
  for (const std::string& error : report.errors)
    text += cat(error, "; ");
  return cat(text, "fix it and verify it with `podqosctl config check`; until then ",
             describe_source(report.source));
}

}  // namespace podqos::app
