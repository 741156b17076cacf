#pragma once

#include <string_view>

#include "ctl/cli/json.h"
#include "ctl/node/node_model.h"

namespace podqos::ctl {

/// The node as `status -o json` and `tree -o json` print it; see podqosctl(1). "warnings" has the
/// text of each finding, and "warningKinds" its kind.
[[nodiscard]] Json node_json(const Node& node);

/// "log" or "linear".
[[nodiscard]] std::string_view word_of(core::WeightFormula formula);

/// One of its pods, with the texts of the findings about it.
[[nodiscard]] Json pod_json(const PodEntry& pod, const Findings& findings);

}  // namespace podqos::ctl
