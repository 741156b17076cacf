#include "ctl/cli/raw_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"

namespace podqos::ctl {
namespace {

// The other screen, without a cursor; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

}  // namespace

Result<RawTerminal> RawTerminal::open() {
  termios saved{};
  if (::tcgetattr(STDIN_FILENO, &saved) != 0) return fail_errno(errno, "read terminal modes");
  termios raw = saved;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  // A stopped output would block until it is started again.
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  // Stopped, the program would leave the terminal as it is.
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0)
    return fail_errno(errno, "set terminal modes");
  RawTerminal terminal{saved};
  PODQOS_TRY(sys::write_all(STDOUT_FILENO, kEnter));
  return terminal;
}

RawTerminal::~RawTerminal() {
  if (!saved_) return;
  // A terminal that has gone needs neither.
  static_cast<void>(sys::write_all(STDOUT_FILENO, kLeave).has_value());
  static_cast<void>(::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*saved_));
}

Status RawTerminal::show(const std::vector<std::string>& lines) {
  std::string out = "\x1b[H";
  for (const std::string& line : lines)
    out += cat(&line == lines.data() ? "" : "\r\n", line, "\x1b[K");
  return sys::write_all(STDOUT_FILENO, cat(out, "\x1b[J"));
}

bool has_terminal(int other) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): podqosctl has one thread
  const char* const term = std::getenv("TERM");
  return term != nullptr && std::string_view{term} != "dumb" && ::isatty(other) == 1 &&
         ::isatty(STDOUT_FILENO) == 1;
}

ScreenSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {.width = size.ws_col, .height = size.ws_row};
}

}  // namespace podqos::ctl
