#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

// Errors are values here. A header only, for each release of a distribution has its own version of
// the library.
#define TOML_EXCEPTIONS 0
#if __has_include(<toml++/impl/preprocessor.hpp>)
#include <toml++/impl/preprocessor.hpp>  // from 3.4 on
#else
#include <toml++/impl/preprocessor.h>
#endif
// toml++ 3.3 asserts, and in a release build assumes, that a table's name begins like a name: "[=]"
// would end the program. Without that it reports the error as any other.
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include "common/base/error.h"

namespace podqos::ctl {

/// Where a value stands in a TOML document: the keys from the top, without quotes.
using TomlPath = std::vector<std::string>;

/// A TOML file, read in order to understand it.
struct TomlDocument {
  /// Keys and brackets within each other that are read; no engine's file has more than ten.
  static constexpr std::size_t kMaxLevels = 64;

  std::string file;  ///< name for errors
  toml::table values;

  /// Parses TOML 1.0 (UTF-8, with or without a byte order mark).
  /// @return kInvalidArgument: "FILE:LINE: <what is wrong>", for duplicate tables and keys, and
  ///         for more than kMaxLevels, too.
  [[nodiscard]] static Result<TomlDocument> parse(std::string_view text, const std::string& file);

  /// The value at `path`; nullptr if there is none.
  [[nodiscard]] const toml::node* at(const TomlPath& path) const;
  /// The boolean at `path`; nullopt if it is absent or no boolean.
  [[nodiscard]] std::optional<bool> flag_at(const TomlPath& path) const;
  /// The string at `path`; "" if it is absent or no string.
  [[nodiscard]] std::string text_at(const TomlPath& path) const;
  /// Whether the array of strings at `path` has this element.
  [[nodiscard]] bool lists(const TomlPath& path, std::string_view element) const;
  /// "FILE:LINE" of the value or table at `path`, of what contains it if it is absent.
  [[nodiscard]] std::string place_of(const TomlPath& path) const;
};

/// `path` with more keys at its end.
[[nodiscard]] TomlPath below(TomlPath path, std::initializer_list<std::string_view> keys);

/// A value on one line: strings and keys in quotes, tables inline; "[]" for a date or time, which
/// no engine takes.
[[nodiscard]] std::string format_toml(const toml::node& value);

}  // namespace podqos::ctl
