#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class StoreEvent : public StoreTest {};

TEST_F(StoreEvent, ChangesAPodUntilItIsCommitted) {
  make_state();
  const std::string clean = read("rows");
  Store store = opened();
  EXPECT_FALSE(store.is_marked());
  EXPECT_TRUE(store.begin("pod-1"));
  EXPECT_TRUE(store.is_marked());
  EXPECT_TRUE(store.commit());
  EXPECT_FALSE(store.is_marked());
  EXPECT_EQ(read("rows"), clean);
}

TEST_F(StoreEvent, KeepsARowForEachPod) {
  make_state();
  Store store = opened();
  EXPECT_EQ(store.node().sums.burstable,
            (core::TierSum{.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{1 << 20}}));
  EXPECT_TRUE(store.put_pod(record_of("pod-2")));
  EXPECT_EQ(store.node().sums.burstable.cpu, MilliCpu{500});
  EXPECT_TRUE(store.erase_pod("pod-1"));
  EXPECT_EQ(store.node().sums.burstable.cpu, MilliCpu{250});
  EXPECT_EQ(store.node().trees.at(0).sums.burstable.cpu, MilliCpu{250});
  EXPECT_TRUE(store.commit());
  const std::size_t size = read("rows").size();
  // The place of the one that has gone is free.
  EXPECT_TRUE(store.put_pod(record_of("pod-3")));
  EXPECT_TRUE(store.commit());
  EXPECT_EQ(read("rows").size(), size);
  EXPECT_EQ(store.node().sums.burstable.pods, 2);
}

/// Its row is not there twice where the transaction is interrupted.
TEST_F(StoreEvent, GivesAPodThatComesBackItsPlace) {
  make_state();
  {
    Store store = opened();
    EXPECT_TRUE(store.put_pod(record_of("pod-2")));
    EXPECT_TRUE(store.erase_pod("pod-1"));
    EXPECT_TRUE(store.erase_pod("pod-2"));
    EXPECT_TRUE(store.put_pod(record_of("pod-1")));
  }
  Store store = opened();
  EXPECT_THAT(store.take_interrupted(), ElementsAre("pod-1", "pod-2"));
  EXPECT_THAT(store.node().rows, SizeIs(2));
}

/// Of a record that is stored already, as podqos has found it.
TEST_F(StoreEvent, WritesARowThatIsAnotherThanTheRecords) {
  make_state();
  core::PodRecord record = record_of("pod-1");
  record.due = BootSeconds{9};
  {
    Store store = opened();
    EXPECT_TRUE(store.put_row(record_of("pod-1")));
    EXPECT_FALSE(store.is_marked()) << "nothing has changed";
    EXPECT_TRUE(store.put_row(record));
    EXPECT_TRUE(store.commit());
    EXPECT_EQ(store.node().rows.at(0).due, BootSeconds{9});
    store.postpone("pod-1", BootSeconds{12});
    store.postpone("gone", BootSeconds{12});
    EXPECT_TRUE(store.commit());
  }
  Store store = opened();
  EXPECT_EQ(store.node().rows.at(0).due, BootSeconds{12});
  EXPECT_THAT(store.node().rows, SizeIs(1));
}

TEST_F(StoreEvent, WritesNoNodeThatIsAsItWas) {
  make_state();
  const auto inode = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(path("node.json").c_str(), &status), 0);
    return status.st_ino;
  };
  const ino_t before = inode();
  EXPECT_TRUE(opened().commit());
  EXPECT_EQ(inode(), before);
  {
    Store store = opened();
    store.node().weight_formula = core::WeightFormula::kLinear;
    EXPECT_TRUE(store.commit());
  }
  EXPECT_EQ(opened().node().weight_formula, core::WeightFormula::kLinear);
}

TEST_F(StoreEvent, WritesTheNodeBeforeTheNextStep) {
  make_state();
  {
    Store store = opened();
    store.node().trees.push_back({.kubepods = "/podqos.slice/podqos-kubepods.slice"});
    EXPECT_TRUE(store.write_node());
  }
  EXPECT_THAT(opened().node().trees, SizeIs(2));
}

TEST_F(StoreEvent, WritesNoNodeThatCouldNotBeReadBack) {
  make_state();
  const std::string before = read("node.json");
  {
    Store store = opened();
    for (int i = 0; i < 30'000; ++i)
      store.node().trees.push_back({.kubepods = std::string(200, 'u')});
    const auto refused = store.commit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(refused.error().message, StartsWith(path("node.json")));
  }
  EXPECT_EQ(read("node.json"), before);
  Store store = opened();
  EXPECT_THAT(store.incidents(), IsEmpty());
  EXPECT_EQ(store.node().sums.burstable.pods, 1);
}

TEST_F(StoreEvent, IsFoundByTheNextUnlessItWasCommittedLast) {
  struct Case {
    const char* name;
    Status (*event)(Store&);
    std::vector<std::string> interrupted;
  };
  for (const auto& [name, event, interrupted] : std::vector<Case>{
           {"a change without begin",
            [](Store& store) { return store.put_pod(record_of("pod-1")); },
            {"pod-1"}},
           {"another under the same lock",
            [](Store& store) -> Status {
              PODQOS_TRY(store.begin("pod-1"));
              PODQOS_TRY(store.commit());
              return store.begin("pod-1");
            },
            {"pod-1"}},
           {"a pod is to be left",
            [](Store& store) -> Status {
              store.leave_unfinished("pod-1");
              PODQOS_TRY(store.put_pod(record_of("pod-1")));
              PODQOS_TRY(store.put_pod(record_of("pod-2")));
              return store.commit();
            },
            {"pod-1"}},
           {"it is committed",
            [](Store& store) -> Status {
              PODQOS_TRY(store.begin("pod-1"));
              PODQOS_TRY(store.put_pod(record_of("pod-1")));
              return store.commit();
            },
            {}},
       }) {
    SCOPED_TRACE(name);
    make_state();
    {
      Store store = opened();
      EXPECT_TRUE(event(store));
    }
    Store store = opened();
    EXPECT_EQ(store.take_interrupted(), interrupted);
    EXPECT_THAT(store.take_interrupted(), IsEmpty()) << "once";
    EXPECT_FALSE(store.dirty());
    std::filesystem::remove_all(options_.path);
  }
}

/// Until all is compared, each transaction finds that it is to be.
TEST_F(StoreEvent, AComparisonThatIsNotFinishedIsBegunAnew) {
  make_state();
  EXPECT_TRUE(opened().begin_comparison());
  {
    Store store = opened();
    EXPECT_TRUE(store.dirty());
    EXPECT_TRUE(store.commit());
  }
  compare();
  EXPECT_FALSE(opened().dirty());
}

TEST_F(StoreEvent, CutShortAtAnyStepIsFoundByTheNext) {
  using Step = Status (*)(Store&);
  const auto steps = std::to_array<Step>({
      [](Store& s) { return s.begin("pod-2"); },
      [](Store& s) { return s.put_entry(entry_of("c2", "pod-2")); },
      [](Store& s) { return s.put_pod(record_of("pod-2")); },
      [](Store& s) { return s.erase_pod("pod-1"); },
      [](Store& s) { return s.erase_entry(entry_of("c1", "pod-1")); },
      [](Store& s) { return s.commit(); },
  });
  for (std::size_t done = 0; done <= steps.size(); ++done) {
    make_state();
    const int status = run_in_child([&] {
      Store store = opened();
      for (std::size_t i = 0; i < done; ++i)
        EXPECT_TRUE(steps.at(i)(store));
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);  // no destructor runs, as after SIGKILL
    });
    EXPECT_EQ(status, 0);
    {
      Store store = opened();
      EXPECT_FALSE(store.dirty());
      EXPECT_EQ(!store.take_interrupted().empty(), done > 0 && done < steps.size())
          << done << " steps";
      EXPECT_THAT(store.incidents(), IsEmpty());
      EXPECT_EQ(store.pod("pod-2")->has_value(), done > 2) << done << " steps";
      EXPECT_EQ(store.pod("pod-1")->has_value(), done < 4) << done << " steps";
    }
    std::filesystem::remove_all(options_.path);
  }
}

TEST_F(StoreEvent, RemovesTemporaryFilesOfAKilledProcess) {
  make_state();
  write(".node.json.podqos-tmp", "half");
  write("pods/.pod-1.json.podqos-tmp", "half");
  write("pods/.gone.json.podqos-tmp", "half");
  write("pods/pod-1.json.corrupt-1", "an older accident");
  write("containers/." + index_name("c1") + ".podqos-tmp", "half");
  {
    Store store = opened();
    EXPECT_THAT(*store.pod_uids(), ElementsAre("pod-1"));
    EXPECT_FALSE(has("pods/.pod-1.json.podqos-tmp"));
    EXPECT_FALSE(has("pods/.gone.json.podqos-tmp"));
    EXPECT_TRUE(has("containers/." + index_name("c1") + ".podqos-tmp"));
    EXPECT_THAT(*store.all_entries(), SizeIs(1));
    EXPECT_FALSE(has("containers/." + index_name("c1") + ".podqos-tmp"));
    EXPECT_TRUE(has("pods/pod-1.json.corrupt-1")) << "kept for a person";
    store.node().weight_formula = core::WeightFormula::kLog;
    EXPECT_TRUE(store.commit());
  }
  EXPECT_FALSE(has(".node.json.podqos-tmp"));
}

TEST_F(StoreEvent, PassesOverDirectoriesWithTheNameOfATemporaryFile) {
  make_state();
  for (const char* name : {"pods/x.podqos-tmp", "containers/x.podqos-tmp"})
    ASSERT_EQ(::mkdir(path(name).c_str(), 0700), 0);
  Store store = opened();
  ASSERT_TRUE(store.pod_uids() && store.all_entries());
  EXPECT_THAT(*store.pod_uids(), ElementsAre("pod-1"));
  EXPECT_THAT(*store.all_entries(), SizeIs(1));
  EXPECT_FALSE(store.dirty());
  EXPECT_TRUE(has("pods/x.podqos-tmp"));
}

TEST_F(StoreEvent, LosesNoUpdateOfManyProcesses) {
  options_.lock_timeout = std::chrono::seconds{120};
  std::vector<pid_t> children;
  for (int i = 0; i < 200; ++i) {
    children.push_back(start_child([this, i] {
      Store store = opened();
      EXPECT_FALSE(store.dirty());
      EXPECT_THAT(store.take_interrupted(), IsEmpty());
      EXPECT_TRUE(store.put_pod(record_of("pod-" + std::to_string(i))));
      EXPECT_TRUE(store.commit());
    }));
  }
  for (const pid_t child : children)
    EXPECT_EQ(wait_for(child), 0);
  Store store = opened();
  EXPECT_FALSE(store.dirty());
  EXPECT_EQ(store.node().sums.burstable.pods, 200);
  EXPECT_EQ(store.node().sums.burstable.cpu, MilliCpu{200 * 250});
  EXPECT_THAT(*store.pod_uids(), SizeIs(200));
}

TEST_F(StoreEvent, FailsOnAFullFileSystemAndKeepsWhatWasThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  const int status = run_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs(temporary_.path().c_str(), "size=256k"));
    make_state();
    // A file takes whole pages of the 64 there are; this one takes all that are left.
    temporary_.write("filler", std::string(std::size_t{1} << 20U, 'x'));
    {
      Store store = opened();
      EXPECT_TRUE(store.begin("pod-1"));
      const auto refused = store.put_pod(record_of("pod-2"));
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().message,
                "replace " + path("pods/pod-2.json") + ": write: No space left on device");
    }
    ::unlink(temporary_.path("filler").c_str());
    Store store = opened();
    EXPECT_THAT(store.take_interrupted(), Not(IsEmpty()));
    EXPECT_THAT(store.incidents(), IsEmpty());
    EXPECT_THAT(*store.pod_uids(), ElementsAre("pod-1"));
    EXPECT_EQ(*store.pod("pod-1"), record_of("pod-1"));
    EXPECT_TRUE(store.put_pod(record_of("pod-2")));
    EXPECT_TRUE(store.commit());
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace podqos::store
