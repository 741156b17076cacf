#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

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

}  // namespace podqos::codec
