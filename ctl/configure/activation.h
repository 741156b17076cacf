#pragma once

#include <chrono>

#include "common/base/error.h"
#include "ctl/configure/program.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {

/// How long an engine may take to show what it was told: Docker that it has read its file after a
/// reload, containerd and CRI-O that podqos-nri has found them, which it tries at least every 5 s.
constexpr std::chrono::seconds kEnginePatience{10};

/// What follows on this machine once the files are as planned: has the engine check them and read
/// them as far as --restart allows, and starts or stops podqos-nri.service. The registration's
/// outcome says what came of it.
///
/// Docker is reloaded, which costs no container anything, and restarted only where that was not
/// enough: a reload does not forget the last runtime. A restart of containerd or CRI-O costs no
/// container anything. Nothing is done where the engine has this configuration already.
/// @return an error after which the files are as they were and nothing is to be reported.
[[nodiscard]] Status activate(Setup& setup, const Run& run,
                              std::chrono::milliseconds patience = kEnginePatience);

}  // namespace podqos::ctl
