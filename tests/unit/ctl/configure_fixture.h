#pragma once

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/configure/setup.h"
#include "ctl/configure/toml.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {

/// A tree of files, in which `configure` works as with --root.
class Tree {
 public:
  Tree() = default;
  Tree(std::initializer_list<std::pair<std::string, std::string>> files) {
    for (const auto& [path, text] : files)
      put(path, text);
  }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(at(path).parent_path());
    std::ofstream{at(path), std::ios::binary} << text;
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(at(path).parent_path());
    std::filesystem::create_symlink(target, at(path));
  }

  /// A file's content; "-> TARGET" for a symlink, "" if there is nothing.
  [[nodiscard]] std::string text(const std::string& path) const {
    if (std::filesystem::is_symlink(at(path)))
      return "-> " + std::filesystem::read_symlink(at(path)).string();
    std::ifstream file{at(path), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  /// The text() of all files.
  [[nodiscard]] std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> found;
    for (const auto& each : std::filesystem::recursive_directory_iterator{root()})
      if (const auto path = each.path().string().substr(root().size());
          each.is_symlink() || !each.is_directory())
        found[path] = text(path);
    return found;
  }

  /// A run of `configure` that has been planned; `error` says why it was not.
  struct Planned : Setup {
    std::string error = {};
  };
  /// @param words  engine, perhaps version, method, "default", "undo", "force", path of --config:
  ///               "containerd 1.7 nri"
  [[nodiscard]] Planned plan(const std::string& words) const {
    Planned planned{{.version = parse_version(words), .root = root()}};
    for (const Engine& engine : engines())
      if (has_word(words, engine.name)) planned.engine = &engine;
    for (std::size_t method = 0; method < kMethods.size(); ++method)
      if (has_word(words, kMethods[method])) planned.method = static_cast<Method>(method);
    planned.undo = has_word(words, "undo");
    planned.set_default = has_word(words, "default");
    if (has_word(words, "force")) planned.restart = Restart::kForce;
    if (const auto at = words.find(" /"); at != std::string::npos)
      planned.config = words.substr(at + 1);
    if (const Status done = ctl::plan(planned); !done) planned.error = done.error().message;
    return planned;
  }

  /// Carries a plan out; the test fails if there is none.
  static void apply(const Planned& planned) {
    EXPECT_EQ(planned.error, "");
    EngineFiles files{planned.root};
    const Status applied = files.apply(planned.changes);
    EXPECT_TRUE(applied) << applied.error().message;
  }

 private:
  [[nodiscard]] std::string root() const { return directory_.path(); }
  [[nodiscard]] std::filesystem::path at(const std::string& path) const { return root() + path; }
  TemporaryDirectory directory_;
};

/// Registers, sees that twice is once, and that undo restores each byte.
/// @return the registered files
inline std::map<std::string, std::string> there_and_back(const Tree& tree,
                                                         const std::string& words) {
  const auto config = std::min(words.find(" /"), words.size());
  const std::string undo = words.substr(0, words.find(' ')) + " undo" + words.substr(config);
  const auto before = tree.all();
  const auto planned = tree.plan(words);
  EXPECT_FALSE(planned.changes.empty());
  Tree::apply(planned);
  const auto registered = tree.all();
  EXPECT_TRUE(tree.plan(words).changes.empty());
  Tree::apply(tree.plan(undo));
  EXPECT_EQ(tree.all(), before);
  EXPECT_TRUE(tree.plan(undo).changes.empty());
  return registered;
}

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

}  // namespace podqos::ctl
