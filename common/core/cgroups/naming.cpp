#include "common/core/cgroups/naming.h"

#include <algorithm>
#include <span>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::string_view kRootSlice = "-.slice";
constexpr std::string_view kKubepods = "kubepods";
constexpr std::string_view kBurstable = "burstable";
constexpr std::string_view kBestEffort = "besteffort";
constexpr std::string_view kPodPrefix = "pod";
constexpr std::size_t kMaxUidLength = 128;
constexpr std::size_t kMaxComponentLength = 255;  // NAME_MAX

std::string replaced(std::string_view text, char from, char to) {
  std::string out{text};
  std::ranges::replace(out, from, to);
  return out;
}

bool is_dots(std::string_view name) {
  return name == "." || name == "..";
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

/// Whether a directory of this name is a root of pods, under any cgroup root.
bool is_kubepods(std::string_view component) {
  return component == kKubepods || component == "kubepods.slice" ||
         component.ends_with("-kubepods.slice");
}

/// What `component` is called in `parent`: "kubepods-burstable.slice" → "burstable"; nullopt if it
/// is not a child of it.
std::optional<std::string_view> name_in(std::string_view parent, std::string_view component) {
  if (!parent.ends_with(kSlice)) return component;
  const std::string_view stem = without_suffix(parent, kSlice);
  if (!component.ends_with(kSlice) || !component.starts_with(cat(stem, "-"))) return std::nullopt;
  return without_suffix(component, kSlice).substr(stem.size() + 1);
}

std::optional<std::string> uid_of(std::string_view pod_component, bool systemd) {
  if (!pod_component.starts_with(kPodPrefix)) return std::nullopt;
  const std::string_view written = pod_component.substr(kPodPrefix.size());
  // '-' separates the parents in a slice's name, so this is a slice further down.
  if (systemd && written.find('-') != std::string_view::npos) return std::nullopt;
  std::string uid = systemd ? replaced(written, '_', '-') : std::string{written};
  if (!check_pod_uid(uid)) return std::nullopt;
  return uid;
}

/// The pod cgroup whose kubepods directory is `names[at]`.
std::optional<PodCgroup> pod_below(std::span<const std::string> names, std::size_t at) {
  const bool systemd = names[at].ends_with(kSlice);
  std::size_t pod_at = at + 1;
  if (!is_kubepods(names[at]) || pod_at >= names.size()) return std::nullopt;
  PodCgroup pod;
  auto name = name_in(names[at], names[pod_at]);
  if (name == kBurstable || name == kBestEffort) {
    pod.qos_class = name == kBurstable ? QosClass::kBurstable : QosClass::kBestEffort;
    if (++pod_at >= names.size()) return std::nullopt;
    name = name_in(names[pod_at - 1], names[pod_at]);
  }
  auto uid = name ? uid_of(*name, systemd) : std::nullopt;
  if (!uid) return std::nullopt;
  pod.uid = *std::move(uid);
  for (const std::string& component : names.first(pod_at + 1))
    pod.pod_path += cat("/", component);
  return pod;
}

constexpr std::string_view kScope = ".scope";
/// crun with systemd puts the processes into a cgroup of its own below the scope.
constexpr std::string_view kCrunInner = "/container";

/// Whether systemd has this slice. A directory with the suffix at another path than its name stands
/// for is not a slice: the unit of that name is elsewhere.
bool is_slice(std::string_view cgroup) {
  if (!cgroup.ends_with(kSlice)) return false;
  const auto expanded = expand_slice(leaf_of(cgroup));
  return expanded && *expanded == cgroup;
}

/// "/a.slice" and "b" → "/a.slice/a-b.slice"; "/a" and "b" → "/a/b".
std::string child_of(std::string_view parent, std::string_view name) {
  if (driver_of(parent) == Driver::kCgroupfs) return cat(parent, "/", name);
  const std::string_view stem = without_suffix(leaf_of(parent), kSlice);
  return cat(parent, "/", stem, "-", replaced(name, '-', '_'), kSlice);
}

}  // namespace

Result<std::string> format_systemd(const std::vector<std::string>& names) {
  std::string slice;
  for (const std::string& name : names) {
    if (name.empty() || name.find_first_of("/_") != std::string::npos || is_dots(name))
      return fail(ErrorCode::kInvalidArgument,
                  cat("invalid cgroup name component \"", printable(name),
                      "\": '/', '_', \".\" and \"..\" are not allowed"));
    slice += cat(slice.empty() ? "" : "-", replaced(name, '-', '_'));
  }
  return expand_slice(slice.append(kSlice));
}

Result<std::string> expand_slice(std::string_view slice) {
  if (slice == kRootSlice) return "/";
  const std::string_view stem = without_suffix(slice, kSlice);
  const bool has_empty_part = cat("-", stem, "-").contains("--");
  if (stem.size() == slice.size() || stem.contains('/') || has_empty_part)
    return fail(ErrorCode::kInvalidArgument, cat("invalid slice name: ", printable(slice)));
  std::string path;
  for (std::size_t end = 0; end != stem.size();) {
    end = std::min(stem.find('-', end + 1), stem.size());
    path += cat("/", stem.substr(0, end), kSlice);
  }
  return path;
}

std::optional<PodCgroup> find_pod_cgroup(std::string_view path) {
  const std::vector<std::string> names = parts_of(path, '/');
  // A path with ".." may lead out of the pod that it names.
  if (!path.starts_with('/') || std::ranges::any_of(names, is_dots)) return std::nullopt;
  // The outermost pod is the host's; a kubelet that runs in a pod has its own pods below.
  for (std::size_t at = 0; at < names.size(); ++at)
    if (auto found = pod_below(names, at)) return found;
  return std::nullopt;
}

Status check_pod_uid(std::string_view uid) {
  const auto is_allowed = [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; };
  // Neither empty nor of dots alone.
  const bool names_something = uid.find_first_not_of('.') != std::string_view::npos;
  if (names_something && uid.size() <= kMaxUidLength && std::ranges::all_of(uid, is_allowed))
    return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("pod UID \"", printable(uid), "\": expected 1 to ", kMaxUidLength,
                  " letters, digits, '-' and '.', not only dots"));
}

Status check_cgroup_component(std::string_view name) {
  const bool plain =
      std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '/'; });
  if (plain && !name.empty() && name.size() <= kMaxComponentLength && !is_dots(name)) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("\"", printable(name), "\" cannot be the name of a cgroup: expected 1 to ",
                  kMaxComponentLength, R"( bytes of ASCII without "/", not "." or "..")"));
}

std::optional<SystemdCgroupsPath> parse_systemd_cgroups_path(std::string_view text) {
  if (text.contains('/') || std::ranges::count(text, ':') != 2) return std::nullopt;
  SystemdCgroupsPath path;
  path.slice = read_until(text, ':');
  path.prefix = read_until(text, ':');
  path.name = text;
  return path;
}

std::string_view format_driver(Driver driver) {
  return driver == Driver::kSystemd ? "systemd" : "cgroupfs";
}

Driver driver_of(std::string_view cgroup) {
  const bool unit = is_slice(cgroup) || !scope_of(cgroup).empty();
  return unit ? Driver::kSystemd : Driver::kCgroupfs;
}

std::string root_path(std::string_view cgroup_root, Driver driver) {
  std::vector<std::string> names = parts_of(cgroup_root, '/');
  names.emplace_back(kKubepods);
  std::string path;
  for (const std::string& name : names)
    path += cat("/", name);
  // The configuration allows only names that a slice can have.
  return driver == Driver::kSystemd ? format_systemd(names).value_or(path) : path;
}

std::string tier_path(std::string_view kubepods, QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: break;
    case QosClass::kBurstable: return child_of(kubepods, kBurstable);
    case QosClass::kBestEffort: return child_of(kubepods, kBestEffort);
  }
  return std::string{kubepods};
}

std::string pod_path(std::string_view kubepods, QosClass qos_class, std::string_view uid) {
  return child_of(tier_path(kubepods, qos_class), cat(kPodPrefix, uid));
}

std::optional<std::string> root_of_pod(std::string_view pod_cgroup) {
  const auto pod = find_pod_cgroup(pod_cgroup);
  if (!pod) return std::nullopt;
  const std::string_view tier = parent_of(pod->pod_path);
  return std::string{pod->qos_class == QosClass::kGuaranteed ? tier : parent_of(tier)};
}

std::optional<Driver> detect_driver(std::string_view path) {
  // "slice:prefix:name", a scope, or crun's inner cgroup "container" in a scope.
  if (parse_systemd_cgroups_path(path) || !scope_of(path).empty()) return Driver::kSystemd;
  return path.starts_with('/') ? std::optional{Driver::kCgroupfs} : std::nullopt;
}

Status check_driver(DriverSetting setting, Driver driver) {
  const bool systemd = setting == DriverSetting::kSystemd;
  const Driver wanted = systemd ? Driver::kSystemd : Driver::kCgroupfs;
  if (setting == DriverSetting::kAuto || driver == wanted) return {};
  return fail(
      ErrorCode::kUnsupported,
      cat("its runtime uses ", systemd ? "the cgroupfs driver" : "systemd's cgroup driver",
          ", but cgroupDriver is \"", format_driver(wanted), "\": let the engine use ",
          format_driver(wanted), " (containerd: SystemdCgroup = ", systemd ? "true" : "false",
          "; CRI-O: cgroup_manager; Podman: --cgroup-manager; Docker: native.cgroupdriver",
          systemd ? "; by hand: runc --systemd-cgroup" : "", "), or set cgroupDriver to \"auto\""));
}

std::optional<std::string> scope_path(const SystemdCgroupsPath& path) {
  auto slice = expand_slice(path.slice);
  if (!slice) return std::nullopt;
  if (*slice == "/") slice->clear();
  // Runtimes take a name with the suffix .slice as the unit itself, without prefix.
  if (path.name.ends_with(kSlice)) return cat(*slice, "/", path.name);
  return cat(*slice, "/", path.prefix, "-", path.name, kScope);
}

std::string oci_cgroups_path(std::string_view cgroup, std::string_view id) {
  if (cgroup.ends_with(kCrunInner) && !scope_of(cgroup).empty())
    cgroup.remove_suffix(kCrunInner.size());
  std::string_view leaf = leaf_of(cgroup);
  if (!leaf.ends_with(kScope)) return std::string{cgroup};
  const std::string_view slice = leaf_of(parent_of(cgroup));
  leaf.remove_suffix(kScope.size());
  const bool ends_with_id = !id.empty() && leaf.ends_with(cat("-", id));
  const std::size_t dash = ends_with_id ? leaf.size() - id.size() - 1 : leaf.find('-');
  return cat(slice, ":", leaf.substr(0, dash), ":", leaf.substr(dash + 1));
}

std::string_view scope_of(std::string_view cgroup) {
  if (cgroup.ends_with(kCrunInner)) cgroup.remove_suffix(kCrunInner.size());
  const std::string_view leaf = leaf_of(cgroup);
  if (!leaf.ends_with(kScope) || leaf.size() == kScope.size()) return {};
  const std::string_view slice = cgroup.substr(0, cgroup.size() - leaf.size());
  return slice == "/" || (slice.ends_with('/') && is_slice(slice.substr(0, slice.size() - 1)))
             ? leaf
             : std::string_view{};
}

std::string_view unit_of(std::string_view cgroup) {
  const std::string_view scope = scope_of(cgroup);
  return scope.empty() ? leaf_of(cgroup) : scope;
}

}  // namespace podqos::core
