#include "common/cgroup/flat_keyed.h"

#include "common/base/text.h"

namespace podqos::cgroup {

std::string_view read_until(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

std::optional<std::int64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ' ') == key) return parse_int(line);
  }
  return std::nullopt;
}

}  // namespace podqos::cgroup
