#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <termios.h>

#include "common/base/error.h"

namespace podqos::ctl {

/// A screen in columns and lines.
struct ScreenSize {
  std::size_t width = 80;
  std::size_t height = 24;
};

/// The terminal of standard input and output while it shows a screen that is drawn again and again:
/// keys arrive at once and are not echoed, and what was on the screen before comes back at the end.
/// @note xterm's ctlseqs (1049, 25), which all terminals of today follow; termios(3)
class RawTerminal {
 public:
  static Result<RawTerminal> open();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  RawTerminal(RawTerminal&& other) noexcept : saved_(std::exchange(other.saved_, std::nullopt)) {}
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  /// Replaces the whole screen.
  [[nodiscard]] Status show(const std::vector<std::string>& lines);

 private:
  explicit RawTerminal(const termios& saved) : saved_(saved) {}
  std::optional<termios> saved_;  ///< nullopt: moved away
};

/// Whether standard output and `other`, a descriptor, are a terminal that understands the
/// sequences: TERM is set, and not "dumb".
[[nodiscard]] bool has_terminal(int other);
/// The size of the terminal that is standard output; 80 by 24 if it does not tell.
/// @note ioctl_tty(2) TIOCGWINSZ
[[nodiscard]] ScreenSize terminal_size();

}  // namespace podqos::ctl
