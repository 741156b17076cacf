#pragma once

#include <string>

namespace podqos::ctl {

/// The row of CRI-O's runtime table; that of examples/cri-o/50-podqos.conf.
[[nodiscard]] std::string format_crio_runtime();

/// The table that switches on NRI in CRI-O 1.26 to 1.29; that of
/// examples/cri-o/60-podqos-nri.conf.
[[nodiscard]] std::string format_crio_nri();

}  // namespace podqos::ctl
