#pragma once

#include <string_view>

#include "common/codec/oci_edit.h"

/// The cgroup and the hooks that the tests of hook/edit_check.h let podqos write.
namespace podqos::hook::test {

inline constexpr std::string_view kContainerPath = "/kubepods/burstable/pod42/c1";

inline codec::HookRegistration own_hooks() {
  return {.path = "/usr/bin/podqos-hook", .args = {"--config", "/x.json"}};
}

}  // namespace podqos::hook::test
