#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// A value of a YAML document, with where it stands in the text.
struct YamlNode {
  enum class Kind : std::uint8_t { kScalar, kSequence, kMap };
  Kind kind = Kind::kScalar;
  bool plain = false;  ///< of a scalar: neither quoted nor tagged, so that its text tells its type
  bool flow = false;   ///< of a sequence or map: in brackets
  std::string text;    ///< of a scalar
  /// The elements of a sequence; the keys and values of a map in turn. An alias is the node that it
  /// refers to, so that nodes may have several parents, or contain themselves.
  std::vector<const YamlNode*> children;
  std::size_t offset = 0;  ///< of its first byte; of a flow map, of the brace
  std::size_t end = 0;     ///< of a scalar: offset behind it
  std::size_t column = 0;  ///< of its first character, counted from 0

  /// Whether this is the key that merges maps.
  [[nodiscard]] bool is_merge_key() const { return plain && text == "<<"; }
};

/// Maximum number of values in one document, aliases expanded.
constexpr std::size_t kMaxYamlNodes = 100'000;

/// A YAML document.
struct YamlTree {
  std::deque<YamlNode> nodes;
  const YamlNode* root = nullptr;  ///< nullptr if there are only comments

  /// @param first_line  number of its first line in the file, counted from 1, for messages
  /// @return kInvalidArgument with the line for text that is not YAML, or more than one document;
  ///         kTooLarge beyond codec::kMaxJsonDepth levels or kMaxYamlNodes values.
  [[nodiscard]] static Result<YamlTree> parse(std::string_view text, std::size_t first_line = 1);
};

}  // namespace podqos::ctl
