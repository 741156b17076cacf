// The cgroup below which the node's pods lie: which one it is, made and removed.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/event.h"
#include "common/base/text.h"

namespace podqos::app {

namespace {

/// Files by which a node shows that a kubelet runs pods on it.
constexpr std::array<const char*, 2> kKubeletFiles = {"/var/lib/kubelet/config.yaml",
                                                      "/etc/kubernetes/kubelet.conf"};

bool kubelet_is_configured() {
  for (const char* file : kKubeletFiles) {
    if (::faccessat(AT_FDCWD, file, F_OK, 0) == 0) return true;
  }
  return false;
}

/// "/a/b/c" → {"/a/b/c", "/a/b", "/a"}: a cgroup and its parents up to the hierarchy's root.
std::vector<std::string> with_parents(std::string_view path) {
  std::vector<std::string> out;
  while (path.size() > 1) {
    out.emplace_back(path);
    path = path.substr(0, path.rfind('/'));
  }
  return out;
}

}  // namespace

bool Event::holds_only(const std::string& kubepods, const std::string& container) {
  if (!container.starts_with(cat(kubepods, "/"))) return false;
  std::string path = kubepods;
  while (path != container) {
    const std::size_t end = container.find('/', path.size() + 1);
    const std::string next = container.substr(0, end);
    const auto children = cgroups_.children(path);
    if (!children || children->size() != 1 || cat(path, "/", children->front()) != next)
      return false;
    path = next;
  }
  return true;
}

Result<bool> Event::is_available(const std::string& kubepods,
                                 const std::optional<std::string>& just_made) {
  if (!cgroups_.exists(kubepods)) return true;
  auto mark = cgroups_.attribute(kubepods, kMadeAttribute);
  if (!mark) return fail(std::move(mark).error());
  return mark->has_value() || (just_made && holds_only(kubepods, *just_made));
}

Status Event::leave_root(core::Driver driver) {
  const std::string in_use = tiers().kubepods;
  const std::string reason =
      cat("its runtime uses the ", core::format_driver(driver), " driver, but ");
  if (has_pods()) {
    return fail(ErrorCode::kConflict,
                cat(reason, "the node's pods lie in ", in_use,
                    ": let all engines use one driver, and set cgroupDriver to it"));
  }
  // It may have been held when the last pod ended, by systemd for a moment or by somebody else.
  if (auto done = store_.begin(); !done) return done;
  if (auto done = teardown(); !done) return done;
  // Nothing else depends on it: what comes next may end without a change of its own.
  if (auto done = store_.commit(); !done) return done;
  if (tiers().kubepods.empty()) return {};
  const auto holder = holder_of(in_use);
  const std::string remedy =
      holder ? cat("end what runs in ", printable(*holder), " and remove it")
             : cat("end the processes in it, or try again if systemd has not let go of it yet");
  return fail(ErrorCode::kConflict,
              cat(reason, in_use, ", where the node's pods were, is still there: ", remedy));
}

std::optional<std::string> Event::holder_of(const std::string& kubepods) {
  std::vector<std::string> tiers{kubepods};
  for (const auto qos_class : {core::QosClass::kBurstable, core::QosClass::kBestEffort})
    tiers.push_back(core::tier_path(kubepods, qos_class));
  for (const std::string& tier : tiers) {
    const auto children = cgroups_.children(tier);
    if (!children) continue;
    for (const std::string& child : *children) {
      std::string path = cat(tier, "/", child);
      if (std::ranges::find(tiers, path) == tiers.end()) return path;
    }
  }
  return std::nullopt;
}

Result<std::string> Event::choose_root(core::Driver driver,
                                       const std::optional<std::string>& just_made) {
  const std::string& in_use = tiers().kubepods;
  if (!in_use.empty()) {
    if (core::driver_of(in_use) == driver) return in_use;
    if (auto left = leave_root(driver); !left) return fail(std::move(left).error());
  }
  std::string root = core::root_path(settings_->cgroup_root, driver);
  auto available = is_available(root, just_made);
  if (!available) return fail(std::move(available).error());
  const bool kubelet = settings_->cgroup_root == "/" && kubelet_is_configured();
  if (*available && !kubelet) return root;

  std::string fallback = core::fallback_root_path(settings_->cgroup_root, driver);
  available = is_available(fallback, just_made);
  if (!available) return fail(std::move(available).error());
  if (*available) return fallback;
  return fail(ErrorCode::kConflict,
              cat("cgroups ", root, " and ", fallback,
                  " exist and podqos made neither: set cgroupRoot to a cgroup of podqos's own, or "
                  "remove ",
                  fallback, " if nothing uses it"));
}

Status Event::use_root(const std::string& kubepods) {
  // Without a pod the tiers may be gone, although something that is not podqos's holds the root.
  if (!tiers().kubepods.empty() && has_pods()) return {};
  std::vector<std::string> made;
  for (std::string& path : with_parents(kubepods)) {
    if (path == kubepods || !cgroups_.exists(path)) made.push_back(std::move(path));
  }
  // The intent is on disk before the directory is: whoever dies in between leaves no unmarked root
  // that would look like a kubelet's.
  tiers().kubepods = kubepods;
  if (auto done = store_.checkpoint(); !done) return done;
  if (auto done = run(core::plan_tree(kubepods)); !done) return done;
  tree_ = Tree::kJustMade;
  return mark_made(made);
}

Status Event::mark_made(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    auto marked = cgroups_.set_attribute(path, kMadeAttribute, "1");
    // A kernel without these attributes leaves the state directory as the only witness.
    if (!marked && marked.error().code != ErrorCode::kUnsupported) return marked;
  }
  return {};
}

Status Event::teardown() {
  const std::string kubepods = tiers().kubepods;
  auto removed = remove_beside_systemd(kubepods, [&]() -> Result<bool> {
    if (auto done = run(core::plan_teardown(kubepods)); !done) return fail(std::move(done).error());
    // Somebody else's cgroup is not waited for.
    return is_held_by_systemd(kubepods) && !holder_of(kubepods);
  });
  if (!removed || cgroups_.exists(kubepods)) return removed;
  for (const std::string& path : with_parents(kubepods)) {
    if (path == kubepods) continue;
    auto mark = cgroups_.attribute(path, kMadeAttribute);
    if (!mark || !mark->has_value()) break;
    if (auto done = run(core::plan_removal(path)); !done) return done;
  }
  tiers().kubepods.clear();
  return {};
}

}  // namespace podqos::app
