#include "common/cgroup/mountinfo.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

/// Fields of a line; the views point into the text, with escapes.
struct Mount {
  dev_t device = 0;
  std::string_view root;
  std::string_view point;
  std::string_view type;
  std::string_view options;  ///< of the superblock
};

/// Parses "0:26". Returns 0, which no mounted file system has, if it is malformed.
dev_t parse_device(std::string_view text) {
  const std::optional<std::int64_t> major_number = parse_int(read_until(text, ':'));
  const std::optional<std::int64_t> minor_number = parse_int(text);
  if (!major_number || !minor_number) return 0;
  return ::gnu_dev_makedev(static_cast<unsigned>(*major_number),
                           static_cast<unsigned>(*minor_number));
}

/// Parses the fields up to the mount point and removes them from `line`.
std::optional<Mount> parse_place(std::string_view& line) {
  Mount mount;
  read_until(line, ' ');  // id
  read_until(line, ' ');  // id of the parent
  mount.device = parse_device(read_until(line, ' '));
  mount.root = read_until(line, ' ');
  mount.point = read_until(line, ' ');
  if (!mount.root.starts_with('/') || !mount.point.starts_with('/')) return std::nullopt;
  return mount;
}

/// Parses the fields after the mount point.
void parse_type(std::string_view line, Mount& mount) {
  read_until(line, ' ');  // options of this mount
  // Optional fields ("shared:1") end with a single hyphen.
  while (!line.empty() && read_until(line, ' ') != "-") {
  }
  mount.type = read_until(line, ' ');
  read_until(line, ' ');  // source
  mount.options = read_until(line, ' ');
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

/// Decodes octal escapes (\040 is a space); any other backslash is kept.
std::string decode(std::string_view text) {
  constexpr std::size_t kEscape = 4;
  constexpr unsigned kBitsPerDigit = 3;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i).substr(0, kEscape).substr(1);
    if (text[i] != '\\' || digits.size() != kEscape - 1 || !std::ranges::all_of(digits, is_octal)) {
      out += text[i];
      continue;
    }
    unsigned code = 0;
    for (const char c : digits)
      code = (code << kBitsPerDigit) + static_cast<unsigned>(c - '0');
    out += static_cast<char>(code);
    i += kEscape - 1;
  }
  return out;
}

/// The super options ("rw,xattr,cpu,cpuacct") without the first: controllers, "name=…", and what
/// else concerns the mount. A list of controllers would lack those of later kernels.
std::vector<std::string> v1_options(std::string_view options) {
  read_until(options, ',');  // rw or ro
  std::vector<std::string> found;
  while (!options.empty())
    found.emplace_back(read_until(options, ','));
  return found;
}

}  // namespace

std::vector<Hierarchy> parse_mountinfo(std::string_view text) {
  std::vector<Hierarchy> hierarchies;
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    // On a host with many containers few lines are about cgroups.
    if (!line.contains(" - cgroup")) continue;
    std::optional<Mount> mount = parse_place(line);
    // Any other root is a bind mount of a part of a hierarchy, as in a container, where paths would
    // name other cgroups.
    if (!mount || mount->root != "/") continue;
    parse_type(line, *mount);
    const bool is_v1 = mount->type == "cgroup";
    Hierarchy found{.version = is_v1 ? core::CgroupVersion::kV1 : core::CgroupVersion::kV2,
                    .controllers = is_v1 ? v1_options(mount->options) : std::vector<std::string>{},
                    .mount_point = decode(mount->point),
                    .device = mount->device};
    if (is_v1 ? !found.controllers.empty() : mount->type == "cgroup2")
      hierarchies.push_back(std::move(found));
  }
  return hierarchies;
}

}  // namespace podqos::cgroup
