// A node in memory, with the events of its containers' life.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/log.h"
#include "common/app/preview.h"
#include "common/app/reconciler.h"
#include "common/app/transaction.h"
#include "tests/unit/app/fake_files.h"
#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::app {

/// A container that a test's runtime creates.
struct FakeContainer {
  std::string id;
  std::string uid;                       ///< of its pod
  core::Annotations annotations = {};    ///< beside podqos.io/pod-uid and podqos.io/container
  core::EngineResources resources = {};  ///< linux.resources, as its engine wrote them
  std::optional<std::int64_t> oom_score = std::nullopt;  ///< process.oomScoreAdj
  bool named = true;  ///< podqos.io/container is its id unless a test says otherwise
};

/// A fake machine, records in memory, and the runtime's part in each event.
class FakeNode {
 public:
  explicit FakeNode(core::CgroupVersion version, core::Driver driver = core::Driver::kCgroupfs)
      : tree{version}, driver{driver} {
    settings.log_sink = "none";
    settings.weight_formula = core::WeightFormulaSetting::kLinear;
    settings.release_delay_seconds = 0;
  }

  /// Lets the program make this many changes; every one after it fails, as after a kill -9.
  void allow(int count) { changes_left = count; }
  void allow_all() {
    changes_left = std::numeric_limits<int>::max();
    failing = false;
  }
  /// Refuses one change, the one behind this many others, as a full disk may that has room again.
  void fail_once_after(int count) {
    changes_left = count;
    failing = true;
  }

  /// A transaction on this node.
  Transaction begin() {
    log = std::make_shared<Log>("test", settings);
    const auto spend = [this](const std::string& change) -> Status {
      if (changes_left == 0) {
        if (std::exchange(failing, false)) {
          allow_all();
          return fail(ErrorCode::kIo, "no space left on device");
        }
        return fail(ErrorCode::kIo, "the program was killed");
      }
      --changes_left;
      if (refuses && refuses(change)) return fail(ErrorCode::kTimeout, cat(change, ": no reply"));
      if (on_change) on_change(change);
      changes.push_back(change);
      return {};
    };
    auto store = store::Store::over(
        std::make_unique<FakeFiles>(records, [spend] { return spend("record"); }, state));
    EXPECT_TRUE(store) << store.error().message;
    Transaction transaction{settings, *log, std::make_unique<store::Store>(std::move(*store)),
                            std::make_unique<cgroup::FakeMachine>(tree, spend), capacity};
    transaction.keep_settings();
    return transaction;
  }

  /// What a hook tells of a container.
  /// @param cgroup  the one that its engine names, or of its init
  Result<std::optional<AdmissionRequest>> request_of(const FakeContainer& container,
                                                     std::optional<std::string> cgroup) const {
    core::ContainerFacts facts;
    facts.id = container.id;
    facts.bundle = "/run/" + container.id;
    facts.annotations = container.annotations;
    facts.annotations["podqos.io/pod-uid"] = container.uid;
    if (container.named) facts.annotations.try_emplace("podqos.io/container", container.id);
    facts.resources = container.resources;
    facts.oom_score_adj = container.oom_score;
    return admission_request(std::move(facts), settings, std::move(cgroup));
  }

  /// A runtime is about to create the container: its process `creator`, which is started if it does
  /// not run, runs the hook or wrapper.
  /// @param placed_at  the cgroup that its engine names
  Result<std::optional<Admission>> admit(const FakeContainer& container, Pid creator = Pid{99},
                                         std::optional<std::string> placed_at = std::nullopt) {
    if (!tree.processes.contains(creator)) tree.start(creator, "/");
    PODQOS_ASSIGN(auto request, request_of(container, std::move(placed_at)));
    request->driver = driver;
    request->process = {creator, tree.processes.at(creator).start_time};
    request->pending_since = pending_since;
    Transaction transaction = begin();
    auto admission = app::admit(transaction, *std::move(request));
    if (admission) PODQOS_TRY(transaction.finish());
    return admission;
  }

  /// createRuntime of a container that was placed: its init runs in its cgroup.
  Status confirm(const FakeContainer& container, Pid init) {
    const std::string& cgroup = tree.processes.at(init).cgroup;
    PODQOS_ASSIGN(auto request, request_of(container, cgroup));
    request->facts.resources = {};  // the OCI state has none
    Transaction transaction = begin();
    PODQOS_ASSIGN(const bool confirmed,
                  confirm_started(transaction, request->facts, started(init), Reporter::kHook));
    return confirmed ? Status{} : fail(ErrorCode::kNotFound, "container is not known");
  }

  /// The start of a process, of a placed container or another, as NRI's StartContainer or
  /// createRuntime reports it.
  Status report_start(const FakeContainer& container, const Init& init, Reporter reporter,
                      const std::function<Status(const Admission&)>& registered = {}) {
    PODQOS_ASSIGN(auto request, request_of(container, init.cgroup));
    if (reporter == Reporter::kPlugin) request->facts.bundle = "";
    Transaction transaction = begin();
    PODQOS_ASSIGN(const bool confirmed,
                  confirm_started(transaction, request->facts, init, reporter));
    if (confirmed) return {};
    return register_started(transaction, *std::move(request), init, reporter, registered);
  }
  [[nodiscard]] Init started(Pid init) const {
    const cgroup::FakeProcess& process = tree.processes.at(init);
    return {.process = {init, process.start_time}, .cgroup = process.cgroup};
  }

  /// Creates, starts and confirms the container as process `init`.
  void run(const FakeContainer& container, Pid init) {
    const Pid creator{init.value() + 1000};
    const auto admission = admit(container, creator);
    ASSERT_TRUE(admission) << admission.error().message;
    ASSERT_TRUE(*admission);
    tree.start(init, (*admission)->container.cgroup);
    update(init, container.resources);
    tree.end(creator);
    const auto confirmed = confirm(container, init);
    ASSERT_TRUE(confirmed) << confirmed.error().message;
  }

  /// A runtime sets resources of a container, when it creates it or in `runc update`. Weights are
  /// those of the linear formula.
  void update(Pid init, const core::EngineResources& resources) {
    auto& files = tree.cgroups.at(tree.processes.at(init).cgroup).files;
    const auto set = [&](const char* file, const std::optional<std::int64_t>& value) {
      if (value) files.at(file) = std::to_string(*value);
    };
    if (!tree.is_v2()) {
      set("cpu.shares", resources.cpu_shares);
      set("cpu.cfs_period_us", resources.cpu_period);
      set("cpu.cfs_quota_us", resources.cpu_quota);
      set("memory.limit_in_bytes", resources.memory_limit);
      return;
    }
    if (resources.cpu_shares) files.at("cpu.weight") = written(*resources.cpu_shares);
    const auto max = [](std::int64_t value) {
      return value < 0 ? std::string{"max"} : std::to_string(value);
    };
    if (resources.cpu_quota)
      files.at("cpu.max") =
          cat(max(*resources.cpu_quota), " ", resources.cpu_period.value_or(100'000));
    if (resources.memory_limit) files.at("memory.max") = max(*resources.memory_limit);
  }

  /// poststop of a container.
  /// @param caller  the process that reports it
  Result<EndResult> end(const FakeContainer& container,
                        IfStillDying if_still_dying = IfStillDying::kDrop, Pid caller = {}) {
    Transaction transaction = begin();
    return end_container(transaction,
                         {.id = container.id, .bundle = "/run/" + container.id, .caller = caller},
                         if_still_dying);
  }
  /// Its init has ended, then poststop.
  void stop(const FakeContainer& container, Pid init) {
    tree.end(init);
    const auto ended = end(container);
    ASSERT_TRUE(ended) << ended.error().message;
  }
  /// Its runtime gives up before the container has a process.
  void fail_to_create(const FakeContainer& container, Pid creator = Pid{1100}) {
    ASSERT_TRUE(admit(container, creator));
    tree.end(creator);
  }

  Result<ReconcileReport> reconcile() {
    Transaction transaction = begin();
    Reconciler all{Warnings::kLogged, follow_runtime};
    PODQOS_TRY(all.run(transaction));
    ReconcileReport report = std::move(all.report());
    PODQOS_TRY(transaction.finish());
    std::ranges::copy(transaction.failures(), std::back_inserter(report.failed));
    for (const Refusal& unfinished : transaction.unfinished())
      report.failed.push_back(unfinished.error.message);
    return report;
  }

  /// This node, which refuses to be changed.
  NodeView view() {
    const auto refuse = [](const std::string& change) -> Status {
      return fail(ErrorCode::kIo, cat("a preview has made a change: ", change));
    };
    return {.files = std::make_unique<FakeFiles>(
                records, [=] { return refuse("record"); }, state),
            .machine = std::make_unique<cgroup::FakeMachine>(tree, refuse),
            .capacity = capacity};
  }
  /// What reconcile() would do.
  Result<ReconcilePreview> preview() { return preview_reconcile(settings, view()); }

  /// Content of a control file; "" if it does not exist.
  [[nodiscard]] std::string file(const std::string& path, const std::string& name) const {
    const auto cgroup = tree.cgroups.find(path);
    if (cgroup == tree.cgroups.end() || !cgroup->second.files.contains(name)) return "";
    return cgroup->second.files.at(name);
  }
  /// The file of a cgroup that has its CPU shares, and what it holds for some, by the linear
  /// formula of runc and KEP-2254 on cgroup v2.
  [[nodiscard]] const char* share_file() const {
    return tree.is_v2() ? "cpu.weight" : "cpu.shares";
  }
  [[nodiscard]] std::string shares(const std::string& path) const {
    return file(path, share_file());
  }
  [[nodiscard]] std::string written(std::int64_t shares) const {
    return std::to_string(tree.is_v2() ? 1 + ((shares - 2) * 9999 / 262142) : shares);
  }
  /// The file of a cgroup that has its memory limit.
  [[nodiscard]] std::string memory(const std::string& path) const {
    return file(path, tree.is_v2() ? "memory.max" : "memory.limit_in_bytes");
  }

  cgroup::FakeTree tree;
  core::Driver driver;  ///< of the node's runtimes
  FakeRecords records;
  core::Settings settings;
  std::optional<BootSeconds> pending_since;  ///< of the next containers that are admitted
  core::NodeCapacity capacity{.memory = Bytes{16LL << 30U}, .cpu = MilliCpu{8000}, .pids = 32'768};
  std::shared_ptr<Log> log;               ///< shared, so that a node can be copied
  const sys::Directory* state = nullptr;  ///< where events are recorded; nullptr: nowhere
  std::function<void(const std::string& change)> on_change;  ///< called before each change
  /// Changes that are refused each time, as by a systemd that does not answer.
  std::function<bool(const std::string& change)> refuses;
  int changes_left = std::numeric_limits<int>::max();
  bool failing = false;  ///< the next change that is refused is the only one
  std::vector<std::string>
      changes;  ///< made so far: those of the machine as cgroup::FakeMachine names them
};

}  // namespace podqos::app
