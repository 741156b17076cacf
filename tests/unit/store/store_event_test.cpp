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
using ::testing::SizeIs;
using ::testing::StartsWith;

class StoreEvent : public StoreTest {};

TEST_F(StoreEvent, MarksUntilItIsCommitted) {
  make_state();
  const std::string clean = read("tiers.json");
  EXPECT_FALSE(has("dirty"));
  Store store = opened();
  EXPECT_TRUE(store.begin());
  EXPECT_TRUE(has("dirty"));
  EXPECT_EQ(read("tiers.json"), clean);
  EXPECT_TRUE(store.commit());
  EXPECT_FALSE(has("dirty"));
  EXPECT_EQ(read("tiers.json"), clean);
}

TEST_F(StoreEvent, WritesNoSumsThatAreAsTheyWere) {
  make_state();
  const auto inode = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(path("tiers.json").c_str(), &status), 0);
    return status.st_ino;
  };
  const ino_t before = inode();
  EXPECT_TRUE(opened().commit());
  EXPECT_EQ(inode(), before);
  {
    Store store = opened();
    ++store.tiers().sums.burstable.pods;
    EXPECT_TRUE(store.commit());
  }
  EXPECT_EQ(opened().tiers().sums.burstable.pods, 2);
}

TEST_F(StoreEvent, CheckpointsItsSumsUnderTheMark) {
  make_state();
  {
    Store store = opened();
    EXPECT_TRUE(store.begin());
    store.tiers().trees = {{.kubepods = "/podqos/kubepods"}};
    EXPECT_TRUE(store.checkpoint());
    EXPECT_TRUE(has("dirty"));
  }
  {
    Store store = opened();
    EXPECT_TRUE(store.dirty());
    EXPECT_EQ(store.tiers().trees.at(0).kubepods, "/podqos/kubepods");
  }
  recompute();
  EXPECT_FALSE(opened().dirty());
}

TEST_F(StoreEvent, WritesNoSumsThatCouldNotBeReadBack) {
  make_state();
  const std::string before = read("tiers.json");
  {
    Store store = opened();
    for (int i = 0; i < 30'000; ++i)
      store.tiers().revisits.push_back({.uid = std::string(200, 'u'), .until = BootSeconds{i}});
    const auto refused = store.commit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(refused.error().message, StartsWith(path("tiers.json")));
  }
  EXPECT_EQ(read("tiers.json"), before);
  Store store = opened();
  EXPECT_THAT(store.incidents(), IsEmpty());
  EXPECT_EQ(store.tiers().sums.burstable.pods, 1);
}

TEST_F(StoreEvent, IsFoundByTheNextUnlessItWasCommittedLast) {
  struct Case {
    const char* name;
    Status (*event)(Store&);
    bool dirty;
  };
  for (const auto& [name, event, dirty] : {
           Case{"a change without begin",
                [](Store& store) { return store.put_pod(record_of("pod-1")); }, true},
           Case{"another under the same lock",
                [](Store& store) -> Status {
                  PODQOS_TRY(store.begin());
                  PODQOS_TRY(store.commit());
                  return store.begin();
                },
                true},
           Case{"the mark is to be left",
                [](Store& store) -> Status {
                  store.keep_mark();
                  PODQOS_TRY(store.put_pod(record_of("pod-1")));
                  return store.commit();
                },
                true},
           Case{"a checkpoint without begin",
                [](Store& store) -> Status {
                  PODQOS_TRY(store.checkpoint());
                  EXPECT_TRUE(store.is_marked());
                  PODQOS_TRY(store.put_pod(record_of("pod-1")));
                  return store.commit();
                },
                false},
       }) {
    SCOPED_TRACE(name);
    {
      Store store = opened();
      EXPECT_TRUE(event(store));
    }
    EXPECT_EQ(has("dirty"), dirty);
    EXPECT_EQ(opened().dirty(), dirty);
    if (dirty) recompute();
    EXPECT_FALSE(opened().dirty());
  }
}

TEST_F(StoreEvent, CutShortAtAnyStepIsFoundByTheNext) {
  using Step = Status (*)(Store&);
  const auto steps = std::to_array<Step>({
      [](Store& s) { return s.begin(); },
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
      EXPECT_EQ(store.dirty(), done > 0 && done < steps.size()) << done << " steps";
      EXPECT_THAT(store.incidents(), IsEmpty());
      EXPECT_EQ(store.pod("pod-2")->has_value(), done > 2) << done << " steps";
      EXPECT_EQ(store.pod("pod-1")->has_value(), done < 4) << done << " steps";
    }
    std::filesystem::remove_all(options_.path);
  }
}

TEST_F(StoreEvent, RemovesTemporaryFilesOfAKilledProcess) {
  make_state();
  write(".tiers.json.podqos-tmp", "half");
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
    EXPECT_TRUE(store.begin());
    ++store.tiers().sums.burstable.pods;
    EXPECT_TRUE(store.commit());
  }
  EXPECT_FALSE(has(".tiers.json.podqos-tmp"));
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
      EXPECT_TRUE(store.begin());
      EXPECT_TRUE(store.put_pod(record_of("pod-" + std::to_string(i))));
      store.tiers().sums.burstable.pods += 1;
      store.tiers().sums.burstable.cpu = MilliCpu{store.tiers().sums.burstable.cpu.value() + 10};
      EXPECT_TRUE(store.commit());
    }));
  }
  for (const pid_t child : children)
    EXPECT_EQ(wait_for(child), 0);
  Store store = opened();
  EXPECT_FALSE(store.dirty());
  EXPECT_EQ(store.tiers().sums.burstable.pods, 200);
  EXPECT_EQ(store.tiers().sums.burstable.cpu, MilliCpu{2000});
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
      EXPECT_TRUE(store.begin());
      const auto refused = store.put_pod(record_of("pod-2"));
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().message,
                "replace " + path("pods/pod-2.json") + ": write: No space left on device");
      ++store.tiers().sums.burstable.pods;
      EXPECT_FALSE(store.commit());
    }
    ::unlink(temporary_.path("filler").c_str());
    Store store = opened();
    EXPECT_TRUE(store.dirty());
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
