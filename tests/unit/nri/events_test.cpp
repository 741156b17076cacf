#include "nri/events.h"

#include <string>

#include <gtest/gtest.h>

namespace podqos::nri {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct RuntimeCase {
  std::string name;
  std::string runtime;
  std::string version;
  std::string nri_version;
  EventMask want;
};
class EventsKnownTo : public TestWithParam<RuntimeCase> {};

TEST_P(EventsKnownTo, AsksForNoneThatTheRuntimeRefuses) {
  const ConfigureRequest request{.config = "",
                                 .runtime_name = GetParam().runtime,
                                 .runtime_version = GetParam().version,
                                 .nri_version = GetParam().nri_version};
  EXPECT_EQ(events_known_to(request), GetParam().want);
}

constexpr auto kOldest = EventMask::kOldest;
constexpr auto kWithResize = EventMask::kWithResize;

INSTANTIATE_TEST_SUITE_P(Table, EventsKnownTo,
                         ValuesIn<RuntimeCase>({
                             {"Containerd17", "containerd", "1.7.24~ds1", "", kOldest},
                             {"Containerd21", "containerd", "v2.1.9", "", kOldest},
                             {"Containerd22", "containerd", "v2.2.0", "", kWithResize},
                             {"Containerd22Rc", "containerd", "v2.2.0-rc.1", "", kWithResize},
                             {"Containerd22WithoutV", "containerd", "2.2.7", "", kWithResize},
                             {"Containerd23WithoutItsNri", "containerd", "v2.3.3", "", kOldest},
                             {"Containerd23", "containerd", "v2.3.4", "v0.12.0", kWithResize},
                             {"Containerd23UnknownNri", "containerd", "v2.3.4", "0.0.0-unknown",
                              kWithResize},
                             {"Crio132", "cri-o", "1.32.5", "", kOldest},
                             {"Crio133", "cri-o", "1.33.0", "", kWithResize},
                             {"Crio136", "cri-o", "1.36.1", "", kWithResize},
                             {"Crio137", "cri-o", "1.37.0", "", kOldest},
                             {"Crio137Named", "cri-o", "1.37.0", "v0.12.0", kWithResize},
                             {"Docker", "docker", "2.2.0", "", kOldest},
                             {"NoName", "", "", "", kOldest},
                             {"NoVersion", "containerd", "unknown", "", kOldest},
                             {"HalfAVersion", "containerd", "v2", "", kOldest},
                             {"EmptyMinor", "containerd", "2.", "", kOldest},
                             {"HugeVersion", "containerd", "99999999999999999999.2", "", kOldest},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(EventMask, NeverAsksForValidation) {
  EXPECT_EQ(static_cast<int>(EventMask::kOldest), 0x07ff);
  EXPECT_EQ(static_cast<int>(EventMask::kWithResize), 0x1fff);
}

}  // namespace
}  // namespace podqos::nri
