#include "common/core/events/event.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace podqos::core {
namespace {

constexpr UnixMillis kNow{1'800'000'000'000};
constexpr UnixMillis kAnHourAgo{1'799'996'400'000};

Event failure(UnixMillis time) {
  return {.time = time,
          .kind = EventKind::kFailed,
          .program = "podqos-hook",
          .uid = "42",
          .container_id = "c1",
          .text = "no room"};
}

TEST(IsRecent, ForAnHour) {
  EXPECT_TRUE(is_recent(failure(kNow), kNow));
  EXPECT_TRUE(is_recent(failure(kAnHourAgo), kNow));
  EXPECT_FALSE(is_recent(failure(kAnHourAgo - UnixMillis{1}), kNow));
}

TEST(HasLately, WhateverTheProgram) {
  Event event = failure(kNow);
  event.program = "podqos-nri";
  EXPECT_TRUE(has_lately(std::vector{failure(kAnHourAgo)}, event, kNow));
  EXPECT_FALSE(has_lately(std::vector{failure(kAnHourAgo - UnixMillis{1})}, event, kNow));
  EXPECT_FALSE(has_lately({}, event, kNow));
}

TEST(HasLately, OnlyTheSameOfTheSameContainer) {
  Event kind = failure(kNow);
  kind.kind = EventKind::kRefused;
  Event uid = failure(kNow);
  uid.uid = "43";
  Event id = failure(kNow);
  id.container_id = "c2";
  Event text = failure(kNow);
  text.text = "no lock";
  for (const auto& [name, other] : std::vector<std::pair<std::string, Event>>{
           {"kind", kind}, {"uid", uid}, {"container", id}, {"text", text}})
    EXPECT_FALSE(has_lately(std::vector{other}, failure(kNow), kNow)) << name;
}

}  // namespace
}  // namespace podqos::core
