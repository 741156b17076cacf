#include "common/core/cgroups/plan.h"

#include <gtest/gtest.h>

namespace podqos::core {
namespace {

TEST(Render, PrintsOneLineAStep) {
  const Plan plan{
      EnsureCgroup{.path = "/kubepods", .also = Controller::kIo},
      EnsureCgroup{.path = "/kubepods/pod42"},
      WriteFile{.path = "/kubepods/pod42",
                .file = "cpu.weight",
                .value = "39",
                .reason = "sum of requests"},
      WriteFile{.path = "/kubepods/pod42", .file = "cpu.max", .value = "max 100000", .reason = ""},
      MoveProcess{.path = "/kubepods/pod42/ctr", .pid = Pid{7}},
      SetOomScore{.pid = Pid{7}, .start_time = StartTime{99}, .score = -997},
      RemoveCgroup{.path = "/kubepods/pod41"},
      RemoveCgroup{.path = "/kubepods/pod40", .nested = Nested::kRemoved},
  };
  EXPECT_EQ(render(plan),
            "mkdir  /kubepods +io\n"
            "mkdir  /kubepods/pod42\n"
            "write  /kubepods/pod42/cpu.weight = 39  # sum of requests\n"
            "write  /kubepods/pod42/cpu.max = max 100000\n"
            "move   7 -> /kubepods/pod42/ctr\n"
            "oom    /proc/7/oom_score_adj = -997\n"
            "rmdir  /kubepods/pod41\n"
            "rmdir  /kubepods/pod40 and all below\n");
}

TEST(Render, KeepsTheRootPathPlain) {
  EXPECT_EQ(render({WriteFile{
                .path = "/", .file = "cgroup.subtree_control", .value = "+cpu", .reason = ""}}),
            "write  /cgroup.subtree_control = +cpu\n");
}

TEST(Render, PrintsNothingForNothing) {
  EXPECT_EQ(render({}), "");
}

}  // namespace
}  // namespace podqos::core
