#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace podqos::sys::test {

/// The value of one line of /proc/self/status.
inline std::string own_status(std::string_view key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key) && line.at(key.size()) == ':') return line.substr(key.size() + 2);
  }
  return "";
}

}  // namespace podqos::sys::test
