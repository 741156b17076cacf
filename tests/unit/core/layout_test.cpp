#include "common/core/layout.h"

#include <gtest/gtest.h>

#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;

TEST(CgroupLayout, KnowsTheVersionOfEachController) {
  const CgroupLayout layout{.cpu = kV1, .hugetlb = kV2, .pids = kV1, .io = kV2};
  EXPECT_EQ(layout.version_of(Controller::kCpu), kV1);
  EXPECT_EQ(layout.version_of(Controller::kMemory), std::nullopt);
  EXPECT_EQ(layout.version_of(Controller::kHugetlb), kV2);
  EXPECT_EQ(layout.version_of(Controller::kPids), kV1);
  EXPECT_EQ(layout.version_of(Controller::kCpuset), std::nullopt);
  EXPECT_EQ(layout.version_of(Controller::kIo), kV2);
}

// Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/blkio-controller.rst.
TEST(RowOf, NamesTheControllerOfDisksAsEachVersionDoes) {
  EXPECT_EQ(row_of(Controller::kIo).v1_name, "blkio");
  EXPECT_EQ(row_of(Controller::kIo).v2_name, "io");
  EXPECT_EQ(row_of(Controller::kIo).enabled, Enabled::kOnDemand);
  EXPECT_EQ(row_of(Controller::kMemory).v1_name, "memory");
  EXPECT_EQ(row_of(Controller::kMemory).v2_name, "memory");
  EXPECT_EQ(row_of(Controller::kMemory).enabled, Enabled::kAlways);
}

}  // namespace
}  // namespace podqos::core
