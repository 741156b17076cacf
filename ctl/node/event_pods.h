#pragma once

#include <string>
#include <vector>

#include "common/core/events/event.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "ctl/cli/table.h"
#include "ctl/node/records.h"
#include "ctl/node/selector.h"

// Pods and containers as the journal of events knows them, which outlives their records.
namespace podqos::ctl {

/// The pod of an event. One that is only about a container stands for a pod of its own.
[[nodiscard]] const std::string& uid_of(const core::Event& event);

/// The pods and containers that events are about, by the newest ones, for select(). Of pods with
/// the same name only the newest has it, so that one that was made again is found by its name.
[[nodiscard]] std::vector<core::PodRecord> pods_in(const std::vector<core::Event>& events);

/// Gives events of pods whose names no program has told podqos those that the records have by
/// find_engine_names().
void name_events(std::vector<core::Event>& events, const NodeRecords& records);
/// The same with the records of now, if they can be read.
void name_events(std::vector<core::Event>& events, const core::Settings& settings);

/// Whether the event is about what was selected, or a container of it.
[[nodiscard]] bool is_about(const core::Event& event, const Selection& selection);

/// "web/front/app", as select() takes it; "-" for an event about neither pod nor container.
[[nodiscard]] std::string name_of(const core::Event& event);

/// TIME, EVENT, POD and WHAT of a table of events.
[[nodiscard]] Row row_of(const core::Event& event, const Screen& screen);

/// Red for what went wrong, yellow for what is not as it should be.
[[nodiscard]] Colour colour_of(core::EventKind kind);

}  // namespace podqos::ctl
