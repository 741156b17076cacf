#pragma once

#include <string_view>

#include "common/sys/fd.h"

namespace podqos::ctl {

/// What takes long where no other program is waited for.
inline constexpr std::string_view kReading = "reading pods, or waiting for their lock";

/// Says at a terminal what podqosctl is waiting for: "3 s: waiting for docker", a line on standard
/// error once a second has passed, rewritten each second and erased at the end.
/// It does nothing unless both standard output and standard error are terminals.
///
/// Another process writes the line: timers are the file lock's (common/sys/wake_up.h), and a thread
/// would keep what narrow() takes from this one. It ends with this process, however that ends.
class Progress {
 public:
  /// To be called before narrow(), whose allow-list has no fork(2).
  /// @param what  what the line says until the first say()
  explicit Progress(std::string_view what = kReading);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress() { end(); }

  /// Says something else from the next second on.
  void say(std::string_view what) const;
  /// The same, "waiting for" something.
  void wait_for(std::string_view what) const;
  /// Erases the line for good, as the destructor does. To be called before anything is printed, and
  /// after the last program was run: children are not to be waited for any more.
  void end();

 private:
  sys::UniqueFd other_;  ///< a socket to the other process; invalid if there is none
};

}  // namespace podqos::ctl
