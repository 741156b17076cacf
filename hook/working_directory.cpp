#include "hook/working_directory.h"

#include <linux/limits.h>
#include <unistd.h>

#include <array>

#include "common/base/text.h"

namespace podqos::hook {

std::string working_directory() {
  std::array<char, PATH_MAX> buffer{};
  return ::getcwd(buffer.data(), buffer.size()) == nullptr ? "" : buffer.data();
}

std::string absolute_path(std::string path) {
  if (path.starts_with('/')) return path;
  return cat(working_directory(), "/", path);
}

}  // namespace podqos::hook
