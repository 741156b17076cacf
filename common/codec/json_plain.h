#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/codec/json_tree.h"

namespace podqos::codec {

/// Finds the end of a member's value, if all of the value is plain JSON: valid by RFC 8259, without
/// escaped surrogates, exponents or numbers longer than 32 bytes. nlohmann's parser is certain to
/// accept plain JSON, but takes more than ten times as long.
///
/// @param name_end  offset after the name's closing quote; white space and the colon may follow
/// @param levels  maximum nesting of objects and arrays in the value
/// @return the offset after the value; nullopt if the value is malformed, too deep, or valid but
/// not plain, so that a full parser has to decide.
[[nodiscard]] std::optional<std::size_t> end_of_plain_member(std::string_view text,
                                                             std::size_t name_end,
                                                             std::size_t levels);

/// The tree of a text that is plain JSON throughout and has no escapes in its strings: podqos's own
/// records and most hand-written files. Equal to the tree of parse_json_tree(), in a quarter of the
/// time.
///
/// @param levels  maximum nesting of objects and arrays in the text
/// @return nullopt if the text is malformed, too deep, or valid but not plain.
[[nodiscard]] std::optional<JsonTree> plain_tree(std::string_view text, std::size_t levels);

}  // namespace podqos::codec
