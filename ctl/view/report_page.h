#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/events/event.h"
#include "ctl/doctor/doctor.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {

/// What `podqosctl report` shows.
struct Report {
  std::string host;  ///< the machine's name
  UnixMillis time;   ///< when it was looked at
  Diagnosis diagnosis;
  Result<UsageSample> usage;                ///< or why it could not be read
  Result<std::vector<core::Event>> events;  ///< the newest last; or why they could not be read
};

/// A page of HTML that needs nothing beside it: no script, no other file, no network. It is dark or
/// light as its reader's other programs are, and is made for screens from 400 pixels on. Names and
/// texts of others are only ever text in it.
/// @note https://html.spec.whatwg.org; its Content-Security-Policy forbids whatever it does without
[[nodiscard]] std::string format_report(const Report& report);

}  // namespace podqos::ctl
