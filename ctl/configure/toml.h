#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/error.h"

namespace podqos::ctl {

/// Where a value stands in a TOML document: the keys from the top, without quotes.
using TomlPath = std::vector<std::string>;

/// The lines at which tables and values begin: a tree, so that it grows with the file alone.
struct TomlLines {
  std::size_t line = 0;
  std::map<std::string, TomlLines> children;
};

/// A TOML file, read in order to understand it; nothing is ever written from it.
class TomlDocument {
 public:
  /// Levels of tables and arrays that are read; no engine's file has more than ten.
  static constexpr std::size_t kMaxLevels = 64;

  /// Parses TOML 1.0 (UTF-8, with or without a byte order mark).
  /// @param file  name for errors
  /// @return kInvalidArgument: "FILE:LINE: <what is wrong>", for duplicate tables and keys, and
  ///         for more than kMaxLevels, too.
  [[nodiscard]] static Result<TomlDocument> parse(std::string_view text, const std::string& file);

  /// All tables and values; dates and times are strings.
  [[nodiscard]] const nlohmann::json& values() const { return values_; }
  /// The value at `path`; nullptr if there is none.
  [[nodiscard]] const nlohmann::json* at(const TomlPath& path) const;
  /// "FILE:LINE" of the value or table at `path`, of what contains it if it is absent.
  [[nodiscard]] std::string place_of(const TomlPath& path) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
  nlohmann::json values_ = nlohmann::json::object();
  TomlLines lines_;
};

/// `path` with more keys at its end.
[[nodiscard]] TomlPath below(TomlPath path, std::initializer_list<std::string_view> keys);

/// The value at `path` as text; "" if it is absent or no string.
[[nodiscard]] std::string text_at(const TomlDocument& document, const TomlPath& path);

/// Whether the array of strings at `path` has this element.
[[nodiscard]] bool lists(const TomlDocument& document, const TomlPath& path,
                         std::string_view element);

/// `values` with all that `more` has, tables merged into tables.
[[nodiscard]] nlohmann::json merged(nlohmann::json values, const nlohmann::json& more);

/// A value as TOML writes it on one line: strings and keys in quotes, tables inline.
[[nodiscard]] std::string format_toml(const nlohmann::json& value);

}  // namespace podqos::ctl
