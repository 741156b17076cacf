#pragma once

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"

namespace podqos::ctl {

/// Files of a machine in memory.
class FilesInMemory {
 public:
  FilesInMemory() = default;
  FilesInMemory(std::initializer_list<std::pair<const std::string, FileState>> files)
      : files_(files) {}
  FilesInMemory(std::initializer_list<std::pair<const std::string, std::string>> files) {
    for (const auto& [path, text] : files)
      put(path, text);
  }

  [[nodiscard]] ConfigSource source() const {
    return {.read = [this](const std::string& path) -> Result<FileState> { return at(path); },
            .follow = [this](const std::string& path) -> Result<std::optional<std::string>> {
              const FileState state = at(path);
              if (state.kind == FileState::Kind::kAbsent) return std::nullopt;
              return state.kind == FileState::Kind::kLink ? at(state.text).text : state.text;
            },
            .list = [this](const std::string& directory) -> Result<std::vector<std::string>> {
              std::set<std::string> names;
              for (const auto& [path, state] : files_)
                if (path.starts_with(directory + "/") && state.kind != FileState::Kind::kAbsent)
                  names.insert(path.substr(directory.size() + 1));
              return std::vector<std::string>{names.begin(), names.end()};
            }};
  }

  [[nodiscard]] FileState at(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? FileState{} : found->second;
  }
  void put(const std::string& path, const std::string& text) {
    files_[path] = FileState::file(text);
  }

  /// Carries out a plan as the effectful part does.
  void apply(const ConfigurePlan& plan) {
    for (const FileChange& change : plan.changes) {
      EXPECT_EQ(at(change.path), change.before) << change.path;
      const std::string backup = change.path + std::string{kBackupSuffix};
      if (change.backup && at(backup).kind == FileState::Kind::kAbsent)
        files_[backup] = change.before;
      files_[change.path] = change.after;
      if (change.drop_backup) files_.erase(backup);
      if (change.after.kind == FileState::Kind::kAbsent) files_.erase(change.path);
    }
  }

  friend bool operator==(const FilesInMemory&, const FilesInMemory&) = default;

 private:
  std::map<std::string, FileState> files_;
};

/// A file of the project's tree, which PODQOS_TEST_DATA/../.. is the top of.
[[nodiscard]] inline std::string project_file(const std::string& name) {
  std::ifstream file{std::string{PODQOS_TEST_DATA} + "/../../" + name, std::ios::binary};
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// All tables and values of a TOML text.
[[nodiscard]] inline nlohmann::json toml_values(const std::string& text) {
  const auto document = TomlDocument::parse(text, "text");
  EXPECT_TRUE(document) << document.error().message;
  if (!document) return {};
  std::ostringstream json;
  json << toml::json_formatter{document->values};
  return nlohmann::json::parse(json.str());
}

/// The plan, applied; the test fails if there is none.
inline ConfigurePlan must(Result<ConfigurePlan> plan) {
  if (plan) return std::move(*plan);
  ADD_FAILURE() << plan.error().message;
  return {};
}

}  // namespace podqos::ctl
