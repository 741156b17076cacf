#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// How a program ended.
struct ProgramEnd {
  int status = 0;  ///< exit status; 128 and the number for a signal
  /// Standard output and standard error, the first 16 MiB, no newline at its end.
  std::string output;
};

/// Runs a program with an environment of its own and no input, and waits for its end.
/// @param argv  the first is the program's absolute path; no PATH is searched
/// @return kTimeout, after SIGKILL for its process group, if it has not ended in two minutes.
[[nodiscard]] Result<ProgramEnd> run_program(const std::vector<std::string>& argv);

/// A function that does what run_program() does.
using Run = std::function<Result<ProgramEnd>(const std::vector<std::string>& argv)>;

/// Asks again and again, every 10 ms. @return false if the answer was no until the end of
/// `patience`.
[[nodiscard]] bool wait_until(std::chrono::milliseconds patience,
                              const std::function<bool()>& is_so);

}  // namespace podqos::ctl
