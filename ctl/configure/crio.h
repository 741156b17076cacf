#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace podqos::ctl {

/// The row of CRI-O's runtime table; for an empty `like` that of examples/cri-o/50-podqos.conf.
/// @param like  another row, of which it gets what is not of the runtime itself: CRI-O's packages
///              name their conmon there, which CRI-O does not start without (cri-o
///              pkg/config/config.go, ValidateConmonPath), and what annotations may do
[[nodiscard]] std::string format_crio_runtime(const nlohmann::json& like);

/// The table that switches on NRI in CRI-O 1.26 to 1.29; that of
/// examples/cri-o/60-podqos-nri.conf.
[[nodiscard]] std::string format_crio_nri();

}  // namespace podqos::ctl
