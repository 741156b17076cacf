// Random events on a node in memory: whatever has happened, a reconciliation makes everything as
// the living containers need it, and finds nothing to do a second time, nor after events that
// nothing has disturbed.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/app/truth.h"

namespace podqos::app {
namespace {

using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::UnorderedElementsAreArray;

using core::CgroupVersion;
using core::Driver;
using truth::Known;

constexpr int kEvents = 50;

/// How many nodes live, each with events of its own: PODQOS_RANDOM_RUNS, of all kinds together.
int runs() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  const char* const text = std::getenv("PODQOS_RANDOM_RUNS");
  return text == nullptr ? 16 : static_cast<int>(parse_int(text).value_or(0));
}

/// A kind of node.
struct Kind {
  const char* name;
  CgroupVersion version;
  std::vector<Driver> drivers;  ///< of its engines; a pod has one
  bool is_full;                 ///< has less memory than all pods request, and refuses
};

const std::vector<Kind>& kinds() {
  using enum CgroupVersion;
  using enum Driver;
  static const std::vector<Kind> kAll{
      {"V1", kV1, {kCgroupfs}, false},
      {"V2", kV2, {kCgroupfs}, false},
      {"V1Systemd", kV1, {kSystemd}, false},
      {"V2Systemd", kV2, {kSystemd}, false},
      {"V1Full", kV1, {kCgroupfs}, true},
      {"V2SystemdFull", kV2, {kSystemd}, true},
      {"V2Two", kV2, {kCgroupfs, kSystemd}, false},
      {"V1Two", kV1, {kCgroupfs, kSystemd}, false},
  };
  return kAll;
}

/// The pods that there may be, without containers.
const std::vector<Known>& pods() {
  static const std::vector<Known> kAll{
      truth::burstable({.id = "", .uid = "a"}, Pid{}, 750, 96),
      truth::burstable({.id = "", .uid = "b"}, Pid{}, 100, 512),
      truth::burstable({.id = "", .uid = "c"}, Pid{}, 20, 1024),
      truth::guaranteed({.id = "", .uid = "d"}, Pid{}, 1000, 1024),
      truth::guaranteed({.id = "", .uid = "e"}, Pid{}, 250, 64),
      Known{.container = {.id = "", .uid = "f"}, .init = Pid{}},
      Known{.container = {.id = "", .uid = "g"}, .init = Pid{}},
  };
  return kAll;
}

/// A node and what happens there.
class Life {
 public:
  /// @param is_calm  no program dies, and the end of each container is told
  Life(const Kind& kind, std::uint32_t seed, bool is_calm)
      : kind_(kind), is_calm_(is_calm), random_(seed), node_(kind.version, kind.drivers.front()) {
    if (!kind.is_full) return;
    node_.capacity.memory = Bytes{2LL << 30U};
    node_.settings.admission.memory = core::AdmissionPolicy::kEnforce;
  }

  /// All that has happened, for whoever looks for the fault.
  [[nodiscard]] const std::string& story() const { return story_; }

  void live() {
    reconcile();
    for (int number = 0; number < kEvents && !::testing::Test::HasFailure(); ++number) {
      happen();
      // No program has died, and each end and each failed creation has been told.
      if (!is_disturbed_) expect_nothing_to_do();
    }
    if (::testing::Test::HasFailure()) return;
    story_ += "; the end";
    reconcile(Danger::kNone);
  }

 private:
  int below(std::uint32_t bound) { return static_cast<int>(random_() % bound); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

  void happen() {
    switch (below(12)) {
      case 0: reconcile(); break;
      case 1:
        // Of a tree that a program has not marked before it died the state alone tells.
        if (!is_calm_ && !was_killed_ && one_in(4)) return lose_state();
        [[fallthrough]];
      case 2:
      case 3:
      case 4: end(); break;
      case 5:
        if (!is_calm_) return fail_to_create();
        [[fallthrough]];
      default: start(); break;
    }
  }

  /// The program of the next event may die at one of its changes.
  void endanger() {
    if (is_calm_ || !one_in(4)) return;
    const int changes = below(20);
    story_ += cat(" (killed after ", changes, ")");
    node_.allow(changes);
  }
  /// The event is over.
  void reconcile_interrupted() {
    was_killed_ = was_killed_ || node_.changes_left == 0;
    is_disturbed_ = is_disturbed_ || was_killed_;
    node_.allow_all();
  }

  [[nodiscard]] Driver driver_of(const Known& pod) const {
    return kind_
        .drivers[static_cast<std::size_t>(pod.container.uid.front()) % kind_.drivers.size()];
  }

  /// A container of some pod, which another one may have been before.
  Known next() {
    Known known =
        pods()[static_cast<std::size_t>(below(static_cast<std::uint32_t>(pods().size())))];
    node_.driver = driver_of(known);
    const int number = below(3);
    known.container.id = cat(known.container.uid, number);
    const auto lives = [&](const Known& other) { return other.container.id == known.container.id; };
    if (std::ranges::any_of(living_, lives))
      known.container.id = cat(known.container.id, "-", ++last_);
    known.init = Pid{10'000 + ++last_};
    return known;
  }

  void start() {
    const Known known = next();
    const Pid creator{known.init.value() + 100'000};
    story_ += cat("; start ", known.container.id);
    endanger();
    const auto admission = node_.admit(known.container, creator);
    reconcile_interrupted();
    if (!admission) {
      story_ += " fails";
      node_.tree.end(creator);
      is_disturbed_ = is_disturbed_ || admission.error().code != ErrorCode::kRefused;
      EXPECT_TRUE(is_disturbed_ || kind_.is_full) << admission.error().message;
      return;
    }
    node_.tree.start(known.init, (*admission)->container.cgroup);
    node_.tree.end(creator);
    living_.push_back(known);
    endanger();
    const auto confirmed = node_.confirm(known.container, known.init);
    reconcile_interrupted();
    EXPECT_TRUE(is_disturbed_ || confirmed) << confirmed.error().message;
  }

  /// Its runtime gives up, and tells nothing.
  void fail_to_create() {
    const Known known = next();
    const Pid creator{known.init.value() + 100'000};
    story_ += cat("; not created ", known.container.id);
    const auto admission = node_.admit(known.container, creator);
    is_disturbed_ = is_disturbed_ || admission || admission.error().code != ErrorCode::kRefused;
    node_.tree.end(creator);
  }

  void end() {
    if (living_.empty()) return;
    const auto at = living_.begin() + below(static_cast<std::uint32_t>(living_.size()));
    const Known known = *at;
    living_.erase(at);
    story_ += cat("; end ", known.container.id);
    node_.tree.end(known.init);
    if (!is_calm_ && one_in(4)) {
      story_ += " untold";
      is_disturbed_ = true;
      return;
    }
    endanger();
    const auto ended = node_.end(known.container);
    reconcile_interrupted();
    EXPECT_TRUE(is_disturbed_ || ended) << ended.error().message;
  }

  void lose_state() {
    story_ += "; lost state";
    node_.records = {};
    is_disturbed_ = true;
  }

  enum class Danger : std::uint8_t { kNone, kSome };

  void reconcile(Danger danger = Danger::kSome) {
    story_ += "; reconcile";
    if (danger == Danger::kSome) endanger();
    const auto first = node_.reconcile();
    const bool is_killed = node_.changes_left == 0;
    reconcile_interrupted();
    if (is_killed) return;
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_THAT(first->failed, IsEmpty());
    is_disturbed_ = was_killed_ = false;
    expect_nothing_to_do();
    expect_truth();
  }

  void expect_nothing_to_do() {
    const auto preview = node_.preview();
    ASSERT_TRUE(preview) << preview.error().message;
    EXPECT_THAT(preview->plan, IsEmpty());
  }

  /// As truth::expect_truth(), for engines of several drivers.
  void expect_truth() {
    if (kind_.drivers.size() == 1) return truth::expect_truth(node_, living_);
    std::vector<std::string> cgroups{"/"};
    core::TierSums sums;
    for (const Driver driver : kind_.drivers) {
      node_.driver = driver;
      std::vector<Known> own;
      std::ranges::copy_if(living_, std::back_inserter(own),
                           [&](const Known& each) { return driver_of(each) == driver; });
      const truth::Truth truth = truth::truth_of(node_, own);
      cgroups.insert(cgroups.end(), truth.cgroups.begin() + 1, truth.cgroups.end());
      for (const auto qos_class :
           {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort})
        sums.of(qos_class) += truth.sums.of(qos_class);
      for (const auto& [path, milli_cpu] : truth.milli_cpu)
        truth::expect_shares(node_, path, milli_cpu);
    }
    std::vector<std::string> existing;
    for (const auto& [path, cgroup] : node_.tree.cgroups)
      existing.push_back(path);
    EXPECT_THAT(existing, UnorderedElementsAreArray(cgroups));
    for (const auto qos_class :
         {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort})
      EXPECT_EQ(node_.records.node.sums.of(qos_class), sums.of(qos_class));
  }

  const Kind& kind_;
  bool is_calm_;
  std::mt19937 random_;
  FakeNode node_;
  std::vector<Known> living_;
  int last_ = 0;
  bool is_disturbed_ = false;  ///< since the last reconciliation
  bool was_killed_ = false;    ///< likewise, a program in its event
  std::string story_ = "an empty node";
};

class RandomEvents : public TestWithParam<std::size_t> {};

TEST_P(RandomEvents, LeaveWhatAReconciliationMakes) {
  const Kind& kind = kinds()[GetParam()];
  const int count = runs() / static_cast<int>(kinds().size());
  ASSERT_GT(count, 0) << "PODQOS_RANDOM_RUNS";
  for (int seed = 1; seed <= count && !HasFailure(); ++seed) {
    const auto own = static_cast<std::uint32_t>(seed + 10'000 * static_cast<int>(GetParam()));
    Life life{kind, own, seed % 2 == 0};
    life.live();
    if (HasFailure()) ADD_FAILURE() << "seed " << own << ": " << life.story();
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, RandomEvents, ::testing::Range(std::size_t{0}, kinds().size()),
                         [](const TestParamInfo<std::size_t>& row) {
                           return std::string{kinds()[row.param].name};
                         });

}  // namespace
}  // namespace podqos::app
