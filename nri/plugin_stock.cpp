// What the runtime had when it synchronized the plugin: taken in, piece by piece.

#include <chrono>
#include <cstdint>
#include <map>
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

/// Far below the 2 s that a runtime waits, and the least that others wait for the lock.
constexpr std::chrono::milliseconds kStockAtOnce{100};

}  // namespace

std::vector<app::Told> Plugin::told_in(const api::SynchronizeRequest& stock) {
  std::vector<app::Told> all;
  // One that cannot be read is there nevertheless, and is not taken for another's.
  const auto add = [&](Result<core::ContainerFacts> facts, const std::string& id,
                       const std::string& sandbox, std::uint32_t pid) {
    if (!facts) complain("synchronize", facts.error(), "");
    core::ContainerFacts nameless;
    nameless.id = id;
    all.push_back({.facts = facts ? std::move(*facts) : std::move(nameless),
                   .process = facts ? process_of(pid) : app::Process{},
                   .sandbox = sandbox});
  };
  std::map<std::string_view, const api::PodSandbox*> pods;
  for (const api::PodSandbox& pod : stock.pods()) {
    pods.emplace(pod.id(), &pod);
    add(sandbox_facts(pod), pod.id(), pod.id(), pod.pid());
  }
  for (const api::Container& container : stock.containers()) {
    const auto pod = pods.find(container.pod_sandbox_id());
    if (pod == pods.end()) continue;
    add(container_facts(*pod->second, container), container.id(), pod->second->id(),
        container.pid());
  }
  return all;
}

bool Plugin::read_stock() {
  if (!stock_) return taking_.has_value();
  auto stock = std::move(*std::exchange(stock_, std::nullopt)).read();
  if (!stock) {
    complain("synchronize", stock.error(),
             "; what the runtime has is compared when it tells again");
    return false;
  }
  // What stays comes first: between what goes it would keep pages from the rest of the machine.
  for (const api::PodSandbox& pod : stock->pods())
    remember(pod);
  for (const api::Container& container : stock->containers()) {
    if (container.pid() == 0 && container.state() == api::CONTAINER_CREATED)
      created_.try_emplace(container.id(),
                           Creation{.sandbox = container.pod_sandbox_id(), .since = clock_.now()});
  }
  taking_.emplace(told_in(*stock));
  // Whatever is left undone from here on is to be done afterwards.
  due_ = false;
  return true;
}

app::Ids Plugin::creating() const {
  app::Ids ids;
  for (const auto& [id, creation] : created_)
    ids.insert(id);
  return ids;
}

bool Plugin::take_stock() {
  if (!read_stock()) return false;
  return note_taken(taking_->go_on(configuration_.settings(), log(), own_pid_, creating(),
                                   kStockAtOnce, housekeeping(kStockAtOnce)));
}

bool Plugin::note_taken(const Result<bool>& taken) {
  if (!taken) {
    complain("synchronize", taken.error(), "; trying again");
    due_ = true;
    return false;
  }
  if (!*taken) return true;
  log().info(cat("knows what the runtime has: ", taking_->size(), " sandboxes and containers"));
  // What a full node takes here is more than all that is needed until the next time.
  taking_.reset();
  static_cast<void>(::malloc_trim(0));
  reconciled();
  return false;
}

void Plugin::catch_up(const std::string& sandbox, const app::Patience& patience) {
  if (!read_stock() || !taking_->awaits(sandbox)) return;
  static_cast<void>(note_taken(taking_->take_pod(configuration_.settings(), log(), own_pid_,
                                                 creating(), sandbox, patience)));
}

}  // namespace podqos::nri
