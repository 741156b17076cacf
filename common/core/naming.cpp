#include "common/core/naming.h"

#include <algorithm>

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

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string replaced(std::string_view text, char from, char to) {
  std::string out{text};
  std::ranges::replace(out, from, to);
  return out;
}

bool is_dots(std::string_view name) {
  return name == "." || name == "..";
}

Status check_name(const CgroupName& name) {
  for (const std::string& component : name) {
    if (component.find_first_of("/_") != std::string::npos || is_dots(component)) {
      return fail(ErrorCode::kInvalidArgument,
                  cat("invalid cgroup name component \"", printable(component),
                      "\": '/', '_', \".\" and \"..\" are not allowed"));
    }
  }
  return {};
}

bool is_root(const CgroupName& name) {
  return name.empty() || (name.size() == 1 && name.front().empty());
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

/// Name of a slice: components joined by '-' after '-' in them was replaced by '_'.
std::string slice_of(const CgroupName& name) {
  std::string joined;
  for (const std::string& component : name) {
    if (&component != &name.front()) joined += '-';
    joined += replaced(component, '-', '_');
  }
  return joined.append(kSlice);
}

/// A non-empty component of a path and the offset of its end.
struct Component {
  std::string_view text;
  std::size_t end = 0;
};

std::vector<Component> components_of(std::string_view path) {
  std::vector<Component> components;
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) components.push_back({.text = path.substr(begin, end - begin), .end = end});
    begin = end + 1;
  }
  return components;
}

/// A kubepods directory found in a path.
struct KubepodsRoot {
  bool systemd = false;
  std::string_view stem;  ///< systemd: its name without ".slice", the prefix of its children
};

std::optional<KubepodsRoot> as_kubepods(std::string_view component) {
  if (component == kKubepods) return KubepodsRoot{};
  if (!component.ends_with(kSlice)) return std::nullopt;
  const std::string_view stem = without_suffix(component, kSlice);
  const bool is_last_part = stem == kKubepods || (stem.ends_with(kKubepods) &&
                                                  stem[stem.size() - kKubepods.size() - 1] == '-');
  if (!is_last_part) return std::nullopt;
  return KubepodsRoot{.systemd = true, .stem = stem};
}

/// Name of `component` without the prefix of `root`: "kubepods-burstable.slice" → "burstable";
/// nullopt if it is not a child of `root`.
std::optional<std::string_view> child_of(const KubepodsRoot& root, std::string_view component) {
  if (!root.systemd) return component;
  if (!component.ends_with(kSlice) || !component.starts_with(root.stem)) return std::nullopt;
  component.remove_suffix(kSlice.size());
  component.remove_prefix(root.stem.size());
  if (!component.starts_with('-')) return std::nullopt;
  return component.substr(1);
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

QosClass class_of_tier(std::string_view tier) {
  return tier == kBurstable ? QosClass::kBurstable : QosClass::kBestEffort;
}

/// The pod cgroup whose kubepods directory is `components[at]`.
std::optional<PodCgroup> pod_below(std::string_view path, const std::vector<Component>& components,
                                   std::size_t at) {
  auto root = as_kubepods(components[at].text);
  if (!root || at + 1 >= components.size()) return std::nullopt;
  std::size_t pod_at = at + 1;
  QosClass qos_class = QosClass::kGuaranteed;
  auto child = child_of(*root, components[pod_at].text);
  if (child == kBurstable || child == kBestEffort) {
    qos_class = class_of_tier(*child);
    root->stem = without_suffix(components[pod_at].text, kSlice);
    if (++pod_at >= components.size()) return std::nullopt;
    child = child_of(*root, components[pod_at].text);
  }
  if (!child) return std::nullopt;
  auto uid = uid_of(*child, root->systemd);
  if (!uid) return std::nullopt;
  std::string_view below = path.substr(components[pod_at].end);
  while (below.starts_with('/'))
    below.remove_prefix(1);
  while (below.ends_with('/'))
    below.remove_suffix(1);
  return PodCgroup{.qos_class = qos_class,
                   .uid = *std::move(uid),
                   .pod_path = std::string{path.substr(0, components[pod_at].end)},
                   .below = std::string{below},
                   .systemd = root->systemd};
}

bool is_uid_char(char c) {
  return is_alphanumeric(c) || c == '.' || c == '-';
}

}  // namespace

Result<std::string> format_cgroupfs(const CgroupName& name) {
  PODQOS_TRY(check_name(name));
  std::string path;
  for (const std::string& component : name) {
    if (!component.empty()) path.append("/").append(component);
  }
  return path.empty() ? "/" : path;
}

Result<std::string> format_systemd(const CgroupName& name) {
  PODQOS_TRY(check_name(name));
  if (is_root(name)) return "/";
  return expand_slice(slice_of(name));
}

CgroupName parse_cgroupfs(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.empty()) return {};
  return split(path, '/');
}

Result<std::string> expand_slice(std::string_view slice) {
  const auto invalid = [slice] {
    return fail(ErrorCode::kInvalidArgument, cat("invalid slice name: ", printable(slice)));
  };
  if (slice.size() <= kSlice.size() || !slice.ends_with(kSlice)) return invalid();
  if (slice.find('/') != std::string_view::npos) return invalid();
  if (slice == kRootSlice) return "/";
  std::string path;
  std::string prefix;
  for (const std::string& component : split(without_suffix(slice, kSlice), '-')) {
    if (component.empty()) return invalid();
    prefix += component;
    path.append("/").append(prefix).append(kSlice);
    prefix += '-';
  }
  return path;
}

CgroupName kubepods_name(std::string_view cgroup_root) {
  CgroupName name = parse_cgroupfs(cgroup_root);
  // "/a/" means "/a". An empty component would be invalid in a slice's name.
  std::erase_if(name, [](const std::string& component) { return component.empty(); });
  name.emplace_back(kKubepods);
  return name;
}

CgroupName tier_name(const CgroupName& kubepods, QosClass qos_class) {
  CgroupName name = kubepods;
  switch (qos_class) {
    case QosClass::kGuaranteed: break;
    case QosClass::kBurstable: name.emplace_back(kBurstable); break;
    case QosClass::kBestEffort: name.emplace_back(kBestEffort); break;
  }
  return name;
}

CgroupName pod_name(const CgroupName& kubepods, QosClass qos_class, std::string_view uid) {
  CgroupName name = tier_name(kubepods, qos_class);
  name.push_back(cat(kPodPrefix, uid));
  return name;
}

std::optional<PodCgroup> find_pod_cgroup(std::string_view path) {
  const auto components = components_of(path);
  // A path with ".." may lead out of the pod that it names.
  if (std::ranges::any_of(components, [](const Component& c) { return is_dots(c.text); }))
    return std::nullopt;
  // The outermost pod is the host's; a kubelet that runs in a pod has its own pods below.
  for (std::size_t at = 0; at < components.size(); ++at) {
    if (auto found = pod_below(path, components, at)) return found;
  }
  return std::nullopt;
}

Status check_pod_uid(std::string_view uid) {
  if (uid.empty()) return fail(ErrorCode::kInvalidArgument, "pod UID is empty");
  if (uid.size() > kMaxUidLength) {
    return fail(
        ErrorCode::kInvalidArgument,
        cat("pod UID has ", uid.size(), " characters, at most ", kMaxUidLength, " are allowed"));
  }
  if (const auto* bad = std::ranges::find_if_not(uid, is_uid_char); bad != uid.end()) {
    return fail(ErrorCode::kInvalidArgument,
                cat("pod UID \"", printable(uid), "\" contains the invalid character \"",
                    printable(std::string_view{bad, 1}), "\""));
  }
  if (uid.find_first_not_of('.') == std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, cat("pod UID \"", uid, "\" consists only of dots"));
  }
  return {};
}

Status check_cgroup_component(std::string_view name) {
  if (name.empty()) return fail(ErrorCode::kInvalidArgument, "cgroup name is empty");
  if (name.size() > kMaxComponentLength) {
    return fail(ErrorCode::kInvalidArgument,
                cat("cgroup name has ", name.size(), " bytes, at most ", kMaxComponentLength,
                    " are allowed"));
  }
  const bool plain =
      std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '/'; });
  if (!plain || is_dots(name)) {
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(name), "\" is not a plain directory name"));
  }
  return {};
}

std::optional<SystemdCgroupsPath> parse_systemd_cgroups_path(std::string_view text) {
  if (text.find('/') != std::string_view::npos || std::ranges::count(text, ':') != 2)
    return std::nullopt;
  std::vector<std::string> parts = split(text, ':');
  return SystemdCgroupsPath{
      .slice = std::move(parts[0]), .prefix = std::move(parts[1]), .name = std::move(parts[2])};
}

namespace {

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

}  // namespace

std::string_view format_driver(Driver driver) {
  return driver == Driver::kSystemd ? "systemd" : "cgroupfs";
}

Driver driver_of(std::string_view cgroup) {
  const bool unit = is_slice(cgroup) || !scope_of(cgroup).empty();
  return unit ? Driver::kSystemd : Driver::kCgroupfs;
}

std::optional<Driver> detect_driver(const DriverSigns& signs) {
  if (signs.flags) return signs.flags;
  for (const auto& path : {signs.path, signs.real}) {
    if (path && is_systemd_path(*path)) return Driver::kSystemd;
    if (path && path->starts_with('/')) return Driver::kCgroupfs;
  }
  return std::nullopt;
}

Status check_driver(DriverSetting setting, Driver driver) {
  switch (setting) {
    case DriverSetting::kAuto: return {};
    case DriverSetting::kCgroupfs:
      if (driver == Driver::kCgroupfs) return {};
      return fail(
          ErrorCode::kUnsupported,
          "its runtime uses systemd's cgroup driver, but cgroupDriver is \"cgroupfs\": let the "
          "engine use cgroupfs (containerd: SystemdCgroup = false; CRI-O: cgroup_manager; Podman: "
          "--cgroup-manager; Docker: native.cgroupdriver), or set cgroupDriver to \"auto\"");
    case DriverSetting::kSystemd:
      if (driver == Driver::kSystemd) return {};
      return fail(
          ErrorCode::kUnsupported,
          "its runtime uses the cgroupfs driver, but cgroupDriver is \"systemd\": let the engine "
          "use systemd (containerd: SystemdCgroup = true; CRI-O: cgroup_manager; Podman: "
          "--cgroup-manager; Docker: native.cgroupdriver; by hand: runc --systemd-cgroup), or set "
          "cgroupDriver to \"auto\"");
  }
  return {};
}

bool is_systemd_path(std::string_view path) {
  return parse_systemd_cgroups_path(path) || !scope_of(path).empty();
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
  const bool ends_with_id = !id.empty() && leaf.size() > id.size() && leaf.ends_with(id) &&
                            leaf[leaf.size() - id.size() - 1] == '-';
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
