#include "common/cgroup/mountinfo.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

/// Parses "0:26". Returns 0, which no mounted file system has, if it is malformed.
dev_t parse_device(std::string_view text) {
  const std::optional<std::int64_t> major_number = parse_int(read_until(text, ':'));
  const std::optional<std::int64_t> minor_number = parse_int(text);
  if (!major_number || !minor_number) return 0;
  return ::gnu_dev_makedev(static_cast<unsigned>(*major_number),
                           static_cast<unsigned>(*minor_number));
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

/// The hierarchy that a line describes; nullopt if it is about none, or malformed.
std::optional<Hierarchy> parse_line(std::string_view line) {
  // On a host with many containers few lines are about cgroups.
  if (!line.contains(" - cgroup")) return std::nullopt;
  // Id, id of the parent, device, root, mount point, options; optional fields ("shared:1"), which
  // end with a hyphen; type, source, options of the superblock.
  constexpr std::ptrdiff_t kFixed = 6;
  const std::vector<std::string> fields = parts_of(line, ' ');
  const auto hyphen = std::ranges::find(fields, "-");
  if (hyphen - fields.begin() < kFixed || fields.end() - hyphen < 3) return std::nullopt;
  const std::string& type = hyphen[1];
  // Any other root is a bind mount of a part of a hierarchy, as in a container, where paths would
  // name other cgroups.
  if (fields[3] != "/" || !fields[4].starts_with('/') || (type != "cgroup" && type != "cgroup2"))
    return std::nullopt;
  Hierarchy found{
      .controllers = {}, .mount_point = decode(fields[4]), .device = parse_device(fields[2])};
  if (type == "cgroup2") return found;
  found.version = core::CgroupVersion::kV1;
  // "rw,xattr,cpu,cpuacct": controllers, "name=…", and what else concerns the mount. A list of
  // controllers would lack those of later kernels.
  found.controllers = parts_of(fields.back(), ',');
  if (found.controllers.size() < 2) return std::nullopt;
  found.controllers.erase(found.controllers.begin());
  return found;
}

}  // namespace

std::vector<Hierarchy> parse_mountinfo(std::string_view text) {
  std::vector<Hierarchy> hierarchies;
  while (!text.empty()) {
    if (auto found = parse_line(read_until(text, '\n'))) hierarchies.push_back(*std::move(found));
  }
  return hierarchies;
}

}  // namespace podqos::cgroup
