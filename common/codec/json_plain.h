#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/codec/json_tree.h"

namespace podqos::codec {

/// The offset behind the value of the member whose name ends at `name_end`, if all of that value is
/// plain JSON: valid by RFC 8259, without escaped surrogates, exponents or numbers of more than 32
/// bytes. That much nlohmann's parser is certain to accept, at more than ten times the price.
///
/// @param name_end  offset behind the name's closing quote; white space and the colon may follow
/// @param levels    how many levels of objects and arrays the value may have
/// @return nullopt: the value is malformed, too deep, or valid but not plain: a parser has to tell.
[[nodiscard]] std::optional<std::size_t> end_of_plain_member(std::string_view text,
                                                             std::size_t name_end,
                                                             std::size_t levels);

/// The tree of a text that is plain JSON from end to end, and in which every string stands for
/// itself, without any escape: podqos's own records, and most of what people write. The same tree
/// as parse_json_tree's, at a quarter of the price.
///
/// @param levels  how many levels of objects and arrays the text may have
/// @return nullopt: the text is malformed, too deep, or valid but not that plain.
[[nodiscard]] std::optional<JsonTree> plain_tree(std::string_view text, std::size_t levels);

}  // namespace podqos::codec
