// Plugin: registers the runtime's state after Synchronize, in pieces.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <malloc.h>

#include "common/base/text.h"
#include "nri/facts.h"
#include "nri/plugin.h"

namespace podqos::nri {

namespace {

/// Maximum time of a piece: far below the 2 s of a request, and below other lock timeouts.
constexpr std::chrono::milliseconds kPieceAtOnce{100};

}  // namespace

std::vector<app::ContainerEvent> Plugin::reported_in(NodeState state) {
  std::vector<app::ContainerEvent> all;
  // A pod or container with invalid facts exists nevertheless: its id is passed on.
  const auto add = [&](Result<core::ContainerFacts> facts, std::uint32_t pid,
                       app::ContainerEvent event) {
    auto process = process_of(pid);
    if (!facts || !process) {
      log_failure("synchronize", facts ? process.error() : facts.error(), "");
    } else {
      event.facts = std::move(*facts);
      event.init = *process;
    }
    all.push_back(std::move(event));
  };
  const auto event_of = [](const std::string& id, const std::string& sandbox,
                           std::shared_ptr<const core::Annotations> of_pod) {
    app::ContainerEvent event{
        .facts = {}, .init = {}, .sandbox = sandbox, .of_pod = std::move(of_pod)};
    event.facts.id = id;
    return event;
  };
  struct Known {
    const Pod* pod;
    std::shared_ptr<const core::Annotations> annotations;
  };
  std::map<std::string_view, Known> pods;
  for (Pod& pod : state.pods) {
    auto facts = sandbox_facts(pod);
    std::shared_ptr<const core::Annotations> annotations;
    if (facts) {
      annotations =
          std::make_shared<const core::Annotations>(std::exchange(facts->annotations, {}));
      pod.annotations.clear();
    }
    pods.emplace(pod.id, Known{.pod = &pod, .annotations = annotations});
    add(std::move(facts), pod.pid, event_of(pod.id, pod.id, std::move(annotations)));
  }
  for (const Container& container : state.containers) {
    const auto found = pods.find(container.sandbox_id);
    if (found == pods.end()) continue;
    const auto& [pod, annotations] = found->second;
    add(container_facts(*pod, container), container.pid,
        event_of(container.id, pod->id, annotations));
  }
  return all;
}

bool Plugin::read_state() {
  auto state = std::exchange(state_, std::nullopt);
  if (!state) return synchronization_.has_value();
  // Long-lived allocations first: among temporary ones they would keep pages from being returned.
  for (const Pod& pod : state->pods)
    register_sandbox(pod);
  for (const Container& container : state->containers) {
    if (container.pid == 0 && container.created)
      created_.try_emplace(container.id,
                           Creation{.sandbox = container.sandbox_id, .since = clock_.now()});
  }
  synchronization_.emplace(reported_in(std::move(*state)),
                           [this](const Error& error) { log_failure("synchronize", error, ""); });
  // A recomputation deferred from here on runs after the synchronization.
  recomputes_ = false;
  return true;
}

app::EngineList Plugin::listener() const {
  app::EngineList self{.ids = {}, .listener = own_process_};
  for (const auto& [id, creation] : created_)
    self.ids.insert(id);
  return self;
}

bool Plugin::synchronize_piece(const app::Timeouts& timeouts) {
  if (!read_state()) return false;
  return note_synchronized(synchronization_->resume(configuration_.settings(), log(), listener(),
                                                    kPieceAtOnce, whole_node(timeouts)));
}

bool Plugin::note_synchronized(const Result<bool>& taken) {
  if (!taken) {
    log_failure("synchronize", taken.error(), "; retrying");
    recomputes_ = true;
    return false;
  }
  if (!*taken) return true;
  log().info(cat("synchronized ", synchronization_->size(), " sandboxes and containers"));
  // The synchronization of a full node needs more memory than everything until the next one.
  synchronization_.reset();
  static_cast<void>(::malloc_trim(0));
  // It has compared everything.
  next_recomputation_ = clock_.now() + kRecomputation;
  metrics_.reconciled();
  return false;
}

void Plugin::forget_reported(const std::string& id) {
  if (synchronization_) synchronization_->forget(id);
}

void Plugin::synchronize_pod(const std::string& sandbox, const app::Timeouts& timeouts) {
  if (!read_state() || !synchronization_->awaits(sandbox)) return;
  static_cast<void>(note_synchronized(
      synchronization_->run_pod(configuration_.settings(), log(), listener(), sandbox, timeouts)));
}

}  // namespace podqos::nri
