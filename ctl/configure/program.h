#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// Runs a program with an environment of its own and no input, and waits for its end, not for that
/// of processes which it leaves behind. On a terminal a line says so meanwhile.
/// @param argv  the first is the program's absolute path; no PATH is searched
/// @param status  exit status that is success
/// @return standard output, the first 16 MiB, no newline at its end; kRefused for another exit
///         status or a signal, with the first 2000 bytes of standard error, or of standard output
///         if that is empty; kTimeout, after SIGKILL for its process group, if it has not ended
///         within `patience`.
[[nodiscard]] Result<std::string> run_program(const std::vector<std::string>& argv, int status = 0,
                                              std::chrono::seconds patience = std::chrono::minutes{
                                                  2});

/// A function that does what run_program() does.
using Run = std::function<Result<std::string>(const std::vector<std::string>& argv)>;

/// Asks again and again, in this interval. @return false if the answer was no until the end of
/// `patience`.
bool wait_until(std::chrono::milliseconds patience, std::chrono::milliseconds interval,
                const std::function<bool()>& is_so);

}  // namespace podqos::ctl
