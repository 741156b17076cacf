#include "common/app/membership.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "common/app/counting.h"
#include "common/app/known_container.h"
#include "common/app/node.h"
#include "common/app/own_cgroup.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/app/settle.h"
#include "common/base/text.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/reservation.h"

namespace podqos::app {

namespace {

bool is_same(const core::ContainerRecord& container, const core::ContainerFacts& facts) {
  return container.id == facts.id && container.bundle == facts.bundle;
}

/// The record as join_pod wants it: this container itself taken out, and all others too if none of
/// them lives.
core::PodRecord without_dead(core::PodRecord record, const core::ContainerFacts& facts) {
  std::erase_if(record.containers,
                [&](const core::ContainerRecord& container) { return is_same(container, facts); });
  // Containers of podqos's own pods are not forgotten, so that each is looked for once.
  if (record.adopted) {
    for (const core::ContainerRecord& container : record.containers) {
      if (!lives(container)) forget_ended(record, container);
    }
  }
  if (std::ranges::none_of(record.containers, lives)) record.containers.clear();
  return record;
}

/// "pod 42 (web/front)": a pod as a person knows it.
std::string name_of(const core::Pod& pod) {
  if (pod.name.empty()) return cat("pod ", pod.uid);
  return cat("pod ", pod.uid, " (", printable(pod.pod_namespace), "/", printable(pod.name), ")");
}

/// "web, log".
std::string names_of(const core::Pod& pod) {
  std::string names;
  for (const core::Container& container : pod.containers)
    names += cat(names.empty() ? "" : ", ", printable(container.name));
  return names;
}

struct Joining {
  Event* event;
  Arrival* arrival;
  core::Identity identity;
  core::PodClaim claim;
  Result<std::string> root;  ///< of podqos's own pods
};

Result<core::PodRecord> decide_record(Joining& joining,
                                      const std::optional<core::PodRecord>& existing) {
  Event& event = *joining.event;
  const Arrival& arrival = *joining.arrival;
  auto joined = core::join_pod(existing, joining.identity, joining.claim, event.settings());
  if (!joined) return fail(std::move(joined).error());
  core::PodRecord& record = joined->record;
  for (const std::string& warning : joined->warnings) {
    event.log().warning(
        cat(name_of(record.pod), ", container ", printable(arrival.facts.id), ": ", warning));
  }
  const auto& placed = joining.identity.placed;
  const bool fresh = record.cgroup.empty();
  if (fresh) record.adopted = placed.has_value();
  if (!record.adopted && !joining.root) return fail(joining.root.error());
  if (fresh) {
    record.cgroup =
        placed ? placed->pod_path : core::pod_path(*joining.root, record.qos_class, record.pod.uid);
  }
  return std::move(record);
}

/// The container's record, and where it should be if it runs elsewhere and stays there.
struct Described {
  core::ContainerRecord container;
  std::optional<std::string> belongs_to = std::nullopt;
  std::optional<core::Origin> origin = std::nullopt;
  std::string stays = {};
  bool left_with_engine = false;
};

/// Whether, and from where, a container that runs elsewhere can be moved to its pod.
void look_at_origin(Event& event, const Arrival& arrival, Described& described) {
  if (event.settings().on_misplaced != core::OnMisplaced::kMove) return;
  auto origin = origin_of(event.cgroups(), arrival);
  if (origin) {
    described.origin = std::move(*origin);
  } else {
    described.stays = std::move(origin).error().message;
  }
}

/// A container of a pod without a cgroup parent.
void leave_with_engine(Event& event, const core::PodRecord& record, Described& described) {
  described.left_with_engine = true;
  core::ContainerRecord& container = described.container;
  // Until it runs: what its runtime makes of a relative path, or of none, is the runtime's choice.
  if (!container.cgroup.starts_with('/')) container.cgroup = cat("/crio-", container.id);
  const bool told = std::ranges::any_of(record.containers, [&](const core::ContainerRecord& known) {
    return !known.sandbox && core::lies_outside(known.cgroup, record.cgroup);
  });
  if (container.sandbox || told) return;
  event.log().warning(cat(name_of(record.pod), ": ",
                          core::words_on_parent(container.id, container.cgroup, record.cgroup)));
}

/// What was told of the container when it was made: since then podqos may have filled in its limit.
std::optional<Bytes> backing_told(const std::optional<core::PodRecord>& before,
                                  const core::ContainerFacts& facts) {
  if (!before) return std::nullopt;
  for (const core::ContainerRecord& container : before->containers) {
    if (is_same(container, facts)) return container.backed_memory;
  }
  return std::nullopt;
}

Result<Described> describe_container(const Joining& joining,
                                     const std::optional<core::PodRecord>& before,
                                     const core::PodRecord& record) {
  const Arrival& arrival = *joining.arrival;
  core::ContainerRecord container{
      .id = arrival.facts.id,
      .bundle = arrival.facts.bundle,
      .name = core::container_name_for(joining.identity, joining.claim, arrival.facts),
      .state = arrival.state,
      .pid = arrival.pid,
      .start_time = arrival.start_time,
      .cgroup = arrival.placed_at.value_or(""),
      .sandbox = joining.identity.is_sandbox,
      .moved = false,
      .backed_memory = core::backing_of(arrival.facts, arrival.annotations.engine)};
  if (const auto told = backing_told(before, arrival.facts)) container.backed_memory = told;
  const bool in_place = arrival.running && arrival.placed_at &&
                        arrival.placed_at->starts_with(cat(record.cgroup, "/"));
  Described described{.container = std::move(container)};
  if (record.adopted || in_place) return described;
  if (core::stays_without_parent(arrival.facts, arrival.driver, joining.event->settings())) {
    leave_with_engine(*joining.event, record, described);
    return described;
  }
  if (arrival.running) look_at_origin(*joining.event, arrival, described);
  core::ContainerFacts facts = arrival.facts;
  // The scope that the engine named exists, elsewhere, and keeps its name.
  if (described.origin && core::driver_of(record.cgroup) == core::Driver::kSystemd)
    facts.cgroups_path.reset();
  std::span<const core::ContainerRecord> known;
  if (before) known = before->containers;
  auto leaf = core::container_leaf(facts, record.cgroup, known);
  if (!leaf) return fail(std::move(leaf).error());
  const std::string target = cat(record.cgroup, "/", *leaf);
  if (!arrival.running) {
    described.container.cgroup = target;
    return described;
  }
  if (joining.event->settings().on_misplaced == core::OnMisplaced::kFail) {
    return fail(ErrorCode::kRefused,
                cat("container ", printable(arrival.facts.id), " runs in cgroup ",
                    *arrival.placed_at, ", not in ", target,
                    ": refused by placement.onMisplaced \"fail\"; register podqos-runtime, or "
                    "Podman's precreate hook, so that it is placed before it starts"));
  }
  if (described.origin) {
    described.container.cgroup = target;
    described.container.moved = true;
  }
  described.belongs_to = target;
  return described;
}

int oom_score_for(Event& event, const Arrival& arrival, const core::PodRecord& record,
                  const core::ContainerRecord& container) {
  const int wanted = core::container_oom_score_adj(record, container, event.capacity().memory);
  if (arrival.engine_writes) return wanted;
  const int reachable = reachable_oom_score(wanted);
  if (reachable != wanted) {
    event.log().warning(cat(name_of(record.pod), ", container ", printable(container.id),
                            ": oom_score_adj ", wanted,
                            " needs CAP_SYS_RESOURCE, which the engine has "
                            "not passed on: ",
                            reachable, " is used"));
  }
  return reachable;
}

/// Sums, root, index entry and record.
Status write_state(Joining& joining, const std::optional<core::PodRecord>& before,
                   core::PodRecord& record, const core::ContainerRecord& container) {
  Event& event = *joining.event;
  if (auto done = event.store().begin(); !done) return done;
  if (record.adopted) {
    event.note_adopted(record.cgroup);
  } else if (auto done = event.use_root(*joining.root); !done) {
    return done;
  }
  count_pod(event, record, before);
  note_pending(event.tiers(), record, container);
  // The way to the record first: a process that dies in between leaves an entry that leads nowhere,
  // never a record that nothing leads to.
  if (auto done = event.store().put_container(
          {.id = container.id, .bundle = container.bundle, .uid = record.pod.uid});
      !done)
    return done;
  return event.save(record);
}

/// Without a word nobody would notice.
void warn_of_stranger(const Joining& joining, const core::PodRecord& record,
                      const core::ContainerRecord& container) {
  // Neither gets any in the first place.
  if (container.sandbox || record.adopted) return;
  if (!core::lacks_container(record, joining.claim, container.name)) return;
  joining.event->log().warning(
      cat(name_of(record.pod), ", container ", printable(container.id),
          ": the pod's spec has no container \"", printable(container.name),
          "\", so it gets no values of its own: set podqos.io/container to one of ",
          names_of(record.pod)));
}

/// Removes what dead containers left. One whose process was killed a moment ago is busy until that
/// has ended.
Status clear_children(Event& event, const std::string& cgroup) {
  constexpr std::chrono::milliseconds kPause{10};
  while (true) {
    if (auto done = remove_empty_children(event, cgroup); !done) return done;
    const auto left = event.cgroups().children(cgroup);
    if (!left || left->empty() || !event.cgroups().waits().wait(kPause)) return {};
  }
}

/// The pod's cgroup with its values; what an earlier pod of this uid left is cleared away.
Status make_cgroups(Event& event, const std::optional<core::PodRecord>& before,
                    core::PodRecord& record, bool first) {
  if (before && before->cgroup != record.cgroup && !before->adopted) {
    if (auto done = event.run(core::plan_removal(before->cgroup)); !done) return done;
  }
  if (record.adopted) return {};
  if (first && before) {
    // What dead containers left keeps its old limits, and the kernel holds the pod's against them.
    if (auto done = clear_children(event, record.cgroup); !done) return done;
  }
  auto done = first || !before ? event.make_pod(record) : event.update_pod(record, *before);
  if (done || done.error().code != ErrorCode::kBusy) return done;
  event.log().info(cat(name_of(record.pod), ": tried again in a moment: ", done.error().message));
  leave_unwritten(event, record, done.error());
  return {};
}

Result<Membership> make_member(Joining& joining, const std::optional<core::PodRecord>& before,
                               core::PodRecord record, Described described) {
  Event& event = *joining.event;
  core::ContainerRecord& container = described.container;
  const Arrival& arrival = *joining.arrival;
  const bool first = record.containers.empty();
  record.containers.push_back(container);
  // Before the values: they are bound by what the node has.
  grant_pod(event, record, before);
  Membership member;
  auto values = core::container_values(record, container.name, event.settings());
  if (!values) return fail(std::move(values).error());
  if (!core::engine_sets_oom(arrival.facts) && !record.adopted)
    member.oom_score_adj = oom_score_for(event, arrival, record, container);
  // Before anything is written: the values must be sound.
  if (auto sound = core::pod_values(record, event.settings()); !sound && !record.adopted)
    return fail(std::move(sound).error());
  warn_of_stranger(joining, record, container);
  if (auto done = write_state(joining, before, record, container); !done)
    return fail(std::move(done).error());
  if (auto done = make_cgroups(event, before, record, first); !done) {
    take_out(event, record, container, done.error());
    return fail(std::move(done).error());
  }
  event.log().info(cat(name_of(record.pod), ": ", core::format_qos_class(record.qos_class),
                       ", container ", printable(container.name), " (", printable(container.id),
                       ") at ", container.cgroup, ", cpu ", record.granted.cpu.value(),
                       "m, memory ", record.granted.memory.value(), " requested"));
  // Only now it is certain that there is a cgroup to look at.
  values->unified = core::container_unified(
      record, joining.claim, container.name,
      core::container_memory_params(event.settings(), event.capacity(),
                                    event.cgroups().memory_files(record.cgroup)));
  member.missing =
      core::missing_values(*values, arrival.facts.resources, event.layout_for(*values));
  member.belongs_to = std::move(described.belongs_to);
  member.origin = std::move(described.origin);
  member.stays = std::move(described.stays);
  member.left_with_engine = described.left_with_engine;
  member.record = std::move(record);
  member.container = std::move(container);
  return member;
}

Result<Joining> begin_join(Event& event, Arrival& arrival) {
  auto root = event.choose_root(arrival.driver, arrival.running ? arrival.placed_at : std::nullopt);
  const auto own_root = own_root_for(event, arrival, root);
  if (!own_root) return fail(own_root.error());
  auto identity = core::identify(arrival.facts, arrival.annotations, event.settings(),
                                 arrival.placed_at, *own_root);
  if (!identity) return fail(std::move(identity).error());
  if (identity->source == core::IdentitySource::kSandbox) {
    auto uid = uid_by_sandbox(event, *identity, arrival.facts.id);
    if (!uid) return fail(std::move(uid).error());
    identity->uid = std::move(*uid);
  }
  Joining joining{.event = &event,
                  .arrival = &arrival,
                  .identity = std::move(*identity),
                  .claim = {},
                  .root = std::move(root)};
  joining.claim = core::claim_for(joining.identity, arrival.facts, arrival.annotations,
                                  event.settings(), event.capacity().memory);
  return joining;
}

/// Recomputes everything from what is left, and joins then.
Result<std::optional<Membership>> join_after_loss(Event& event, Arrival arrival) {
  event.log().error("the state directory has lost what the cgroups still know: restoring it");
  event.begin_recovery();
  if (auto done = recompute(event); !done) return fail(std::move(done).error());
  return join(event, std::move(arrival));
}

Result<std::optional<Membership>> join_pod_of(Joining& joining) {
  Event& event = *joining.event;
  auto before = event.store().pod(joining.identity.uid);
  if (!before) return fail(std::move(before).error());
  std::optional<core::IndexEntry> outdated;
  if (*before) outdated = recognise(event, **before, joining.arrival->facts);
  const Arrival& arrival = *joining.arrival;
  if (joining.identity.is_sandbox && !joining.claim.known && !*before && !joining.identity.placed)
    return std::nullopt;
  const auto existing =
      *before ? std::optional{without_dead(**before, arrival.facts)} : std::nullopt;
  auto record = decide_record(joining, existing);
  if (!record) return fail(std::move(record).error());
  if (!*before && event.has_lost_record(*record)) return join_after_loss(event, arrival);
  if (auto own = check_own_cgroup(event, arrival, *before, *record); !own)
    return fail(std::move(own).error());
  auto described = describe_container(joining, *before, *record);
  if (!described) return fail(std::move(described).error());
  auto member = make_member(joining, *before, std::move(*record), std::move(*described));
  if (!member) return fail(std::move(member).error());
  if (outdated) {
    if (auto done = event.store().erase_container(*outdated); !done)
      return fail(std::move(done).error());
  }
  return std::optional{std::move(*member)};
}

}  // namespace

Result<std::optional<Membership>> join(Event& event, Arrival arrival) {
  if (auto done = recover(event); !done) return fail(std::move(done).error());
  expire_pending(event, arrival.facts.id);
  tend_lingering(event);
  auto joining = begin_join(event, arrival);
  if (!joining) return fail(std::move(joining).error());
  if (joining->root && event.has_lost_state(*joining->root)) return join_after_loss(event, arrival);
  auto member = join_pod_of(*joining);
  if (!member)
    return fail(std::move(member).error().with_context(cat("pod ", joining->identity.uid)));
  return member;
}

}  // namespace podqos::app
