#include "common/cgroup/flat_keyed.h"

#include "common/base/text.h"

namespace podqos::cgroup {

std::optional<std::int64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ' ') == key) return parse_int(line);
  }
  return std::nullopt;
}

}  // namespace podqos::cgroup
