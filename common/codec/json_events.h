#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/text.h"

namespace podqos::codec {

/// Levels of nested objects and arrays; deeper JSON is kTooLarge.
constexpr std::size_t kMaxJsonDepth = 64;

/// The read position of nlohmann's lexer. At a string, literal or bracket it is the byte after it.
/// For a number only an upper bound is known, since the lexer reads one byte ahead.
class JsonCursor {
 public:
  JsonCursor() = default;
  explicit JsonCursor(std::string_view text)
      : text_(text), at_(text.data()), end_(text.data() + text.size()) {}

  /// The whole input.
  [[nodiscard]] std::string_view text() const { return text_; }
  /// Bytes of the input that the lexer has read.
  [[nodiscard]] std::size_t offset() const {
    return static_cast<std::size_t>((resume_ == nullptr ? at_ : resume_) - text_.data());
  }

  /// Called from a reader's key(): lets the lexer skip the member's value, which ends at offset
  /// `value_end`. The lexer sees an empty string instead.
  void jump_over_value(std::size_t value_end) {
    static constexpr std::string_view kStandIn = R"(:"")";
    resume_ = text_.data() + value_end;
    at_ = kStandIn.data();
    end_ = kStandIn.data() + kStandIn.size();
  }

 private:
  friend class CursorIterator;

  bool done() {
    if (at_ != end_) return false;
    if (resume_ == nullptr) return true;
    at_ = std::exchange(resume_, nullptr);
    end_ = text_.data() + text_.size();
    return at_ == end_;
  }

  std::string_view text_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;     // end of the text, or of a replacement for a value
  const char* resume_ = nullptr;  // where the text continues after a replacement
};

/// Input iterator over a cursor, so that parser events can be mapped to offsets.
/// Default-constructed: the end.
class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CursorIterator() = default;
  explicit CursorIterator(JsonCursor* cursor) : cursor_(cursor) {}
  reference operator*() const { return *cursor_->at_; }
  CursorIterator& operator++() {
    ++cursor_->at_;
    return *this;
  }
  CursorIterator operator++(int) {
    CursorIterator before = *this;
    ++cursor_->at_;
    return before;
  }
  friend bool operator==(const CursorIterator& a, const CursorIterator& b) {
    return a.done() == b.done();
  }

 private:
  [[nodiscard]] bool done() const { return cursor_ == nullptr || cursor_->done(); }
  JsonCursor* cursor_ = nullptr;
};

/// Kinds of JSON values that a reader is called with; integers are told apart from other numbers.
enum class JsonKind : std::uint8_t { kNull, kBoolean, kInteger, kFloat, kString, kObject, kArray };

/// "null", "a boolean", …, for error messages.
[[nodiscard]] std::string_view format_json_kind(JsonKind kind);

/// A value other than an object or array.
struct JsonScalar {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;     ///< clamped to 2^63-1 if it fits in 64 unsigned bits
  double number = 0;            ///< kFloat; also integers beyond 64 bits
  std::string* text = nullptr;  ///< kString; may be moved from
};

/// Adapts nlohmann's SAX interface to four functions of a Reader, each of which may return an
/// error:
///   Status scalar(JsonScalar&); Status begin(JsonKind); Status end(); Status key(std::string&).
/// Nesting beyond kMaxJsonDepth is kTooLarge.
template <class Reader>
class JsonEvents {
 public:
  JsonEvents(Reader& reader, const JsonCursor& cursor) : reader_(reader), cursor_(cursor) {}

  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar({.kind = JsonKind::kBoolean, .boolean = value}); }
  bool number_integer(std::int64_t value) {
    return scalar({.kind = JsonKind::kInteger, .integer = value});
  }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    return number_integer(static_cast<std::int64_t>(value < kMax ? value : kMax));
  }
  bool number_float(double value, const std::string& /*token*/) {
    return scalar({.kind = JsonKind::kFloat, .number = value});
  }
  bool string(std::string& value) { return scalar({.kind = JsonKind::kString, .text = &value}); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }  // no such thing in JSON text
  bool start_object(std::size_t /*elements*/) { return begin(JsonKind::kObject); }
  bool start_array(std::size_t /*elements*/) { return begin(JsonKind::kArray); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& value) { return accept(reader_.key(value)); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& reason) {
    return syntax_error(reason.what());
  }

  [[nodiscard]] std::optional<Error>& error() { return error_; }

 private:
  bool scalar(JsonScalar value) { return accept(reader_.scalar(value)); }
  bool begin(JsonKind kind) {
    if (++depth_ > kMaxJsonDepth) {
      return accept(
          fail(ErrorCode::kTooLarge, cat("JSON at offset ", cursor_.offset(),
                                         " is nested deeper than ", kMaxJsonDepth, " levels")));
    }
    return accept(reader_.begin(kind));
  }
  bool end() {
    --depth_;
    return accept(reader_.end());
  }
  bool accept(Status status) {
    if (status) return true;
    if (!error_) error_ = std::move(status).error();
    return false;
  }
  bool syntax_error(std::string_view what) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    if (const std::size_t detail = what.find(": "); detail != std::string_view::npos)
      what.remove_prefix(detail + 2);
    if (!error_) {
      error_ = Error{ErrorCode::kInvalidArgument, cat("malformed JSON at offset ", cursor_.offset(),
                                                      ": ", printable(what, 200))};
    }
    return false;
  }

  Reader& reader_;
  const JsonCursor& cursor_;
  std::size_t depth_ = 0;
  std::optional<Error> error_;
};

/// Parses the whole of `cursor` in one pass.
/// @return the reader's own error, or kInvalidArgument / kTooLarge with the offset.
template <class Reader>
[[nodiscard]] Status read_json(JsonCursor& cursor, Reader& reader) {
  // nlohmann's lexer takes a NUL as the end of the text and ignores what follows.
  if (const std::size_t nul = cursor.text().find('\0'); nul != std::string_view::npos)
    return fail(ErrorCode::kInvalidArgument, cat("malformed JSON at offset ", nul, ": NUL byte"));
  JsonEvents<Reader> events{reader, cursor};
  const bool whole = nlohmann::json::sax_parse(CursorIterator{&cursor}, CursorIterator{}, &events);
  if (whole) return {};
  if (events.error()) return fail(*std::move(events.error()));
  return fail(ErrorCode::kInvalidArgument, "malformed JSON");
}

/// A cursor at the start of `text`, which must outlive it.
[[nodiscard]] inline JsonCursor cursor_over(std::string_view text) {
  return JsonCursor{text};
}

}  // namespace podqos::codec
