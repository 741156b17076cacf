#include <span>
#include <string_view>

#include "hook/programs.h"

/// One executable for both programs: called as podqos-runtime it is the wrapper, else the hook.
int main(int argc, char** argv) {
  const std::span<const char* const> args{argv, static_cast<std::size_t>(argc)};
  const std::string_view self = args.empty() ? std::string_view{} : args.front();
  const std::string_view name = self.substr(self.rfind('/') + 1);
  const auto rest = args.empty() ? args : args.subspan(1);
  return name == "podqos-runtime" ? podqos::hook::run_wrapper(rest) : podqos::hook::run_hook(rest);
}
