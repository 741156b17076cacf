#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Errors are values here. A header only, for each release of a distribution has its own version of
// the library.
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 64
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

/// What a TOML file has at a path.
struct TomlValue {
  toml::node_view<const toml::node> node;
  std::string file;
  std::string place;  ///< "FILE:LINE" of the value or table, of what contains it if it is absent

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(node); }
  /// The boolean; nullopt for anything else.
  [[nodiscard]] std::optional<bool> flag() const { return node.value_exact<bool>(); }
  /// The string; "" for anything else.
  [[nodiscard]] std::string text() const { return node.value_exact<std::string>().value_or(""); }
  /// The elements of an array, "" for one that is not a string; nullopt for anything else.
  [[nodiscard]] std::optional<std::vector<std::string>> strings() const;
  /// Whether one of strings() is this one.
  [[nodiscard]] bool lists(std::string_view element) const;
};

/// A TOML file, read in order to understand it.
struct TomlDocument {
  std::string file;  ///< name for errors
  toml::table values;

  /// Parses TOML 1.0 (UTF-8, with or without a byte order mark).
  /// @return kInvalidArgument: "FILE:LINE: <what is wrong>", for duplicate tables and keys, and
  ///         for those that are nested too deeply, too.
  [[nodiscard]] static Result<TomlDocument> parse(std::string_view text, const std::string& file);

  /// @param path  keys from the top with "/" between them, "plugins/io.containerd.grpc.v1.cri"
  [[nodiscard]] TomlValue at(std::string_view path) const;
};

}  // namespace podqos::ctl
