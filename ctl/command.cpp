#include "ctl/command.h"

#include <cstdio>

#include "common/base/text.h"
#include "common/sys/sandbox.h"

namespace podqos::ctl {

Status narrow(std::span<const int> kept) {
  if (auto status = sys::keep_capabilities(kept); !status) return status;
  return sys::install_filter(sys::Filter::kTool);
}

bool print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

int finish(bool printed) {
  if (std::fflush(stdout) != 0 || !printed) {
    warn("standard output cannot be written");
    return kRefused;
  }
  return kDone;
}

int log_failure(const Error& error) {
  warn(error.message);
  return kRefused;
}

void warn(std::string_view message) {
  const std::string line = cat("podqosctl: ", message, "\n");
  // Nobody is left to be told when standard error itself fails.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

}  // namespace podqos::ctl
