#include "hook/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "hook/programs.h"

namespace podqos::hook {

namespace {

constexpr const char* kConfigName = "config.json";

}  // namespace

Result<Bundle> Bundle::open(const std::string& path) {
  auto directory = sys::Directory::open(path);
  if (!directory) return fail(std::move(directory).error().with_context("bundle"));
  std::string canonical = link_text(cat("/proc/self/fd/", directory->fd()));
  if (canonical.empty()) canonical = path;
  return Bundle{std::move(*directory), std::move(canonical)};
}

std::string Bundle::identity() const {
  struct stat status{};
  const bool lacks_config =
      ::fstatat(directory_.fd(), kConfigName, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  return lacks_config ? "" : canonical_;
}

Status Bundle::read_config() {
  PODQOS_ASSIGN(const auto file, directory_.open_file(kConfigName, O_RDONLY));
  const struct stat& status = file.status;
  PODQOS_ASSIGN(file_, sys::read_all(file.fd.get(), codec::kMaxConfigSize,
                                     cat(canonical_, "/", kConfigName), sys::FileEnd::kShortRead));
  owner_ = {.uid = status.st_uid, .gid = status.st_gid, .mode = status.st_mode & 07777U};
  return {};
}

bool Bundle::take_edits_back() {
  former_ = codec::former_config(file_);
  return former_.has_value();
}

Status Bundle::write_config(const std::string& text) {
  if (text == file_) return {};
  PODQOS_TRY(sys::replace_file(directory_, kConfigName, text, owner_));
  if (!former_) former_ = std::move(file_);
  file_ = text;
  return {};
}

Status Bundle::restore_config() {
  const std::string text = std::exchange(file_, {});
  PODQOS_TRY(read_config());
  return write_config(text);
}

std::string canonical_bundle(const std::string& path) {
  if (path.empty()) return path;
  const auto bundle = Bundle::open(path);
  return bundle ? bundle->identity() : path;
}

}  // namespace podqos::hook
