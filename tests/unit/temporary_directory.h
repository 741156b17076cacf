#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace podqos {

/// A directory of one test's own, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(std::string_view name) const {
    return path_ + "/" + std::string{name};
  }

  void write(std::string_view name, std::string_view content) const {
    std::ofstream{path(name), std::ios::binary} << content;
  }
  [[nodiscard]] std::string read(std::string_view name) const {
    std::ifstream file{path(name), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  [[nodiscard]] bool has(std::string_view name) const {
    struct stat found{};
    return ::lstat(path(name).c_str(), &found) == 0;
  }

 private:
  std::string path_ = "/tmp/podqos-test-XXXXXX";
};

}  // namespace podqos
