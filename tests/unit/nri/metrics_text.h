#pragma once

#include <string>
#include <utility>

#include "nri/plugin_metrics.h"

namespace podqos::nri::test {

/// The metrics of the plugin as they are shown.
inline std::string text_of(const Metrics& metrics) {
  codec::Exposition out;
  metrics.write(out);
  return std::move(out).release();
}

}  // namespace podqos::nri::test
