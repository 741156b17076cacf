#pragma once

#include <cstddef>
#include <string_view>

namespace podqos::hook {

/// Scans JSON's structure, not its values. After anything unexpected sound() stays false.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text, std::size_t at = 0) : text_(text), at_(at) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool sound() const { return sound_; }
  [[nodiscard]] bool at_end() const { return sound_ && at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void fail() { sound_ = false; }

  void skip_space() {
    while (accept(' ') || accept('\t') || accept('\r') || accept('\n')) {
    }
  }
  bool accept(char c) {
    if (!sound_ || peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  bool accept_text(std::string_view expected) {
    if (!sound_ || !text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  /// The raw text between the quotes.
  std::string_view string() {
    expect('"');
    const std::size_t begin = at_;
    std::size_t end = text_.find('"', begin);
    while (end != std::string_view::npos && is_escaped(begin, end))
      end = text_.find('"', end + 1);
    if (end == std::string_view::npos) fail();
    if (!sound_) return {};
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  /// A number, true, false or null: all bytes up to the next structural character.
  void literal() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !std::string_view{" \t\r\n,:{}[]\""}.contains(text_[at_]))
      ++at_;
    if (at_ == begin) fail();
  }
  /// A whole value, with all that is in it. @return its text
  std::string_view value() {
    const std::size_t begin = at_;
    std::size_t open = 0;
    do {
      skip_space();
      const char next = peek();
      if (next == '"') {
        string();
      } else if (accept('{') || accept('[')) {
        ++open;
      } else if (open > 0 && (accept('}') || accept(']'))) {
        --open;
      } else if (open == 0 || (!accept(',') && !accept(':'))) {
        literal();
      }
    } while (sound_ && open > 0);
    return sound_ ? text_.substr(begin, at_ - begin) : std::string_view{};
  }

 private:
  /// Whether the byte at `end` follows an odd number of backslashes.
  [[nodiscard]] bool is_escaped(std::size_t begin, std::size_t end) const {
    std::size_t at = end;
    while (at > begin && text_[at - 1] == '\\')
      --at;
    return (end - at) % 2 != 0;
  }

  std::string_view text_;
  std::size_t at_;
  bool sound_ = true;
};

}  // namespace podqos::hook
