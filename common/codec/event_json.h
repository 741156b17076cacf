#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/events/event.h"

namespace podqos::codec {

/// Most bytes of an event as a line, with its newline.
constexpr std::size_t kMaxEventLine = 4096;
/// With what each line begins, and what no value of a line contains: where a line follows a part of
/// another one, it is found by this.
constexpr std::string_view kEventStart = R"({"time":")";

/// An event as a line of JSON: {"time":"2026-01-31T23:59:59.999Z","event":"placed","program":…,
/// "engine":…,"namespace":…,"name":…,"uid":…,"container":{"id":…,"name":…},"class":…,"cgroup":…,
/// "text":…}, without what is not known. Names are cut after 256 bytes, cgroups after 1024, and the
/// text where the line would exceed kMaxEventLine. Control bytes are escaped as \xNN, and all
/// others, too, where a value is not UTF-8.
[[nodiscard]] std::string format_event(const core::Event& event);

/// Parses a line of format_event(); members that are not known are ignored.
/// @return nullopt if it is damaged, or of a kind that is not known
[[nodiscard]] std::optional<core::Event> parse_event(std::string_view line);

}  // namespace podqos::codec
