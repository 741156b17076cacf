#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "common/base/error.h"

/// protobuf's encoding, by protozero. A field is told by its number and its wire type: one of
/// another type is skipped, like one that is newer than podqos.
namespace podqos::nri {

/// A field of bytes and what takes it: a function of the reader.
template <class Take>
struct Field {
  std::uint32_t found;  ///< pbf_reader::tag_and_type()
  Take take;
};

/// A field of text, which replaces `out`; no text is no optional text.
template <class Text>
[[nodiscard]] auto text(protozero::pbf_tag_type number, Text& out) {
  const auto take = [&out](protozero::pbf_reader& reader) {
    const auto view = reader.get_view();
    out = Text{std::string{view.data(), view.size()}};
    if constexpr (requires { out.reset(); }) {
      if (view.empty()) out.reset();
    }
  };
  return Field{protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited), take};
}

/// A field of a number, enumeration or bool.
template <class Number>
[[nodiscard]] auto number(protozero::pbf_tag_type number, Number& out) {
  const auto take = [&out](protozero::pbf_reader& reader) {
    out = static_cast<Number>(reader.get_uint64());
  };
  return Field{protozero::tag_and_type(number, protozero::pbf_wire_type::varint), take};
}

/// A field of a message, of which `read` is given a reader.
template <class Read>
[[nodiscard]] auto message(protozero::pbf_tag_type number, const Read& read) {
  const auto take = [&read](protozero::pbf_reader& reader) { read(reader.get_message()); };
  return Field{protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited), take};
}

/// Reads a message: each field by what takes it, and skips all others.
template <class... Fields>
void read_fields(protozero::pbf_reader reader, const Fields&... fields) {
  while (reader.next()) {
    const std::uint32_t found = reader.tag_and_type();
    const auto take = [&](const auto& field) {
      if (field.found != found) return false;
      field.take(reader);
      return true;
    };
    if (!(take(fields) || ...)) reader.skip();
  }
}

/// Calls `read` with a reader of the bytes: the one place where exceptions of protozero, for
/// malformed bytes, become errors.
/// @return kInvalidArgument: "not a <what>".
template <class Read>
[[nodiscard]] auto parse_message(std::string_view what, std::string_view bytes, const Read& read)
    -> Result<decltype(read(protozero::pbf_reader{}))> {
  try {
    return read(protozero::pbf_reader{bytes.data(), bytes.size()});
  } catch (const protozero::exception&) {
    return fail(ErrorCode::kInvalidArgument, std::string{"not a "}.append(what));
  }
}

}  // namespace podqos::nri
