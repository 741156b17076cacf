#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/store/store.h"
#include "ctl/command.h"
#include "ctl/inventory.h"

namespace podqos::ctl {
namespace {

/// The ownership marks on cgroups are trusted.* attributes, readable with this capability only
/// (xattr(7)).
constexpr std::array kKept = {CAP_SYS_ADMIN};

/// Reads the records under the lock, which is held no longer, so that a slow terminal delays no
/// container.
Result<NodeRecords> read_records(const core::Settings& settings) {
  PODQOS_ASSIGN(
      auto store,
      store::Store::open({.path = settings.state_dir,
                          .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}},
                         store::Opening::kRead));
  NodeRecords records;
  PODQOS_ASSIGN(auto uids, store.pod_uids());
  for (const std::string& uid : uids) {
    auto pod = store.pod(uid);
    if (!pod) {
      records.warnings.push_back(pod.error().message);
    } else if (*pod) {
      records.pods.push_back(std::move(**pod));
    }
  }
  records.tiers = store.tiers();
  if (store.dirty())
    records.warnings.emplace_back(
        "the last transaction was interrupted and the sums may be wrong: run podqosctl reconcile");
  std::ranges::copy(store.incidents(), std::back_inserter(records.warnings));
  return records;
}

/// The text of an inventory for people, without its errors and warnings.
using TextOfView = std::string (*)(const Json& view, ColourMode mode);

/// Prints the inventory as text or JSON, and what is wrong with it.
/// @return kRefused if the configuration has errors, which do not hide the pods.
Result<int> run_view(const OutputOptions& options, const Cli& cli, TextOfView text) {
  // Nothing untrusted is parsed before the restriction.
  PODQOS_TRY(narrow(kKept));
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  const auto view = read_inventory(configuration);
  if (!view) {
    std::ranges::for_each(configuration.errors, warn);
    return fail(for_root(view.error()));
  }
  std::string out = dump(*view) + "\n";
  if (const ColourMode mode = options.mode(); !options.is_json()) {
    out = cat(format_notices(configuration, mode), text(*view, mode));
    for (const Json& warning : view->at("warnings"))
      out += cat(paint(cell("warning: ", Colour::kRed), mode),
                 warning.get_ref<const std::string&>(), "\n");
  }
  const int status = print(out);
  return configuration.errors.empty() ? status : kRefused;
}

void add_view(Cli& cli, TextOfView text, const char* name, const char* description) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = cli.app.add_subcommand(name, description);
  add_coloured_output(*sub, *options);
  sub->callback([options, &cli, text] { cli.status = run_view(*options, cli, text); });
}

const std::string& text_in(const Json& object, const char* key) {
  return object.at(key).get_ref<const std::string&>();
}

/// A number; "-" for null.
std::string number_in(const Json& object, const char* key) {
  return object.at(key).is_null() ? "-" : object.at(key).dump();
}

/// format_bytes() of a number; "-" for null.
std::string bytes_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : format_bytes(Bytes{value.get<std::int64_t>()});
}

/// "0" or "1"; "-" for null.
std::string flag_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : cat(value.get<bool>() ? 1 : 0);
}

// status

}  // namespace

std::string amounts_in(const Json& object, const char* key) {
  const Json& amounts = object.at(key);
  const Json& cpu = amounts.at("cpuMilli");
  std::vector<std::string> shown;
  if (!cpu.is_null())
    shown.push_back(cat("cpu ", format_amount(MilliCpu{cpu.get<std::int64_t>()})));
  if (!amounts.at("memoryBytes").is_null())
    shown.push_back(cat("memory ", bytes_in(amounts, "memoryBytes")));
  return shown.empty() ? "-" : join(shown, ", ");
}

namespace {

/// "2 live, 1 pending, 1 throttled", or "none".
std::string containers_of(const Json& pod) {
  std::vector<std::string> counts;
  for (const char* state : {"live", "pending", "dead"}) {
    const auto number = std::ranges::count_if(pod.at("containers"), [&](const Json& container) {
      return container.at("state") == state;
    });
    if (number > 0) counts.push_back(cat(number, " ", state));
  }
  const auto throttled = std::ranges::count_if(pod.at("containers"), [](const Json& container) {
    return container.at("throttled") == true;
  });
  if (throttled > 0) counts.push_back(cat(throttled, " throttled"));
  return counts.empty() ? "none" : join(counts, ", ");
}

/// "want / actual"; without a rule only what the kernel has.
std::string compared(const Json& tier, const char* key,
                     std::string (*shown)(const Json& object, const char* key)) {
  const std::string rule = shown(tier.at("rule"), key);
  return cat(rule == "-" ? "" : rule + " / ", shown(tier, key));
}

/// "memory.low of /podqos/kubepods: 64Mi / 64Mi (want / actual)", or nothing if it is set in
/// neither.
std::string text_of_value(const Json& tier, std::string_view file, const char* key,
                          std::string (*shown)(const Json& object, const char* key)) {
  const auto is_set = [](const Json& value) {
    return value != nullptr && value != false && value != 0;
  };
  if (!is_set(tier.at("rule").at(key)) && !is_set(tier.at(key))) return "";
  return cat(file, " of ", text_in(tier, "cgroup"), ": ", compared(tier, key, shown),
             " (want / actual)\n");
}

/// What a tier has beside shares and limit, one line each.
std::string text_of_others(const Json& tier) {
  std::string out = cat(text_of_value(tier, "cpu.idle", "cpuIdle", flag_in),
                        text_of_value(tier, "memory.min", "memoryMinBytes", bytes_in),
                        text_of_value(tier, "memory.low", "memoryLowBytes", bytes_in));
  const Json& eviction = tier.at("eviction");
  if (eviction.is_null()) return out;
  return cat(out, "eviction from ", text_in(tier, "cgroup"), ": at ",
             text_in(eviction, "memoryPressure"), " by ", text_in(eviction, "by"), "\n");
}

/// The whole text output: pods, then the tiers of all trees, each below the directory above the
/// root if podqos has created it.
std::string status_text(const Json& view, ColourMode mode) {
  std::vector<Row> pods = {
      heading({"POD", "CLASS", "SOURCE", "CONTAINERS", "REQUESTS", "LIMITS", "USAGE"})};
  for (const Json& pod : view.at("pods"))
    pods.push_back({cell(pod_title(pod), Colour::kBold),
                    cell(cat(text_in(pod, "qosClass"), pod.at("complete") ? "" : " (partial)",
                             pod.at("kubeletsOwn") ? " (kubelet's)" : "")),
                    cell(text_in(pod, "source")), cell(containers_of(pod)),
                    cell(amounts_in(pod, "requests")), cell(amounts_in(pod, "limits")),
                    cell(bytes_in(pod, "memoryUsageBytes"))});
  std::vector<Row> tiers = {heading(
      {"TIER", "PODS", "REQUESTS", "SHARES want/actual", "MEMORY LIMIT want/actual", "USAGE"})};
  const auto add_tier = [&](const char* name, const Json& tier) {
    tiers.push_back({cell(text_in(tier, name), Colour::kBold), cell(number_in(tier, "pods")),
                     cell(amounts_in(tier, "requests")),
                     cell(compared(tier, "cpuShares", number_in)),
                     cell(cat(compared(tier, "memoryLimitBytes", bytes_in),
                              tier.at("converging") ? " (converging)" : "")),
                     cell(bytes_in(tier, "memoryUsageBytes"))});
  };
  std::string others;
  for (const Json& tree : view.at("trees")) {
    if (!tree.at("top").is_null()) add_tier("cgroup", tree.at("top"));
    for (const Json& tier : tree.at("tiers")) {
      add_tier("qosClass", tier);
      others += text_of_others(tier);
    }
  }
  std::string out = pods.size() > 1 ? format_table(pods, mode) : "no pods\n";
  if (tiers.size() > 1) out += cat("\n", format_table(tiers, mode), others);
  const Json& kubelets = view.at("kubelets");
  if (const auto count = kubelets.at("pods").get<std::int64_t>(); count > 0)
    out += cat("kubelet: ", format_count(count, "pod"), ", ", amounts_in(kubelets, "requests"),
               " requested: not counted in podqos's own tiers\n");
  return out;
}

// tree

/// The colour of a class, also for its tier.
Colour colour_of(const Json& object) {
  const Json& qos_class = object.at("qosClass");
  if (qos_class == "Guaranteed") return Colour::kGreen;
  return qos_class == "Burstable" ? Colour::kYellow : Colour::kCyan;
}

/// "weight (shares)" on cgroup v2, where an idle cgroup has neither, the shares alone on v1.
std::string shown_weight(const Json& cgroup) {
  if (cgroup.at("cpuIdle") == true) return "idle";
  const std::string shares = number_in(cgroup, "cpuShares");
  return cgroup.at("cpuWeight").is_null() ? shares
                                          : cat(number_in(cgroup, "cpuWeight"), " (", shares, ")");
}

/// The quota in microseconds, with "+burst", and with "/period" if that is not 100000.
std::string shown_quota(const Json& cgroup) {
  const Json& period = cgroup.at("cpuPeriodUs");
  const Json& burst = cgroup.at("cpuBurstUs");
  const bool bursts = burst.is_number() && burst != 0;
  const std::string quota =
      cat(number_in(cgroup, "cpuQuotaUs"), bursts ? cat("+", burst.dump()) : "");
  const bool usual = period.is_null() || period == core::kDefaultPeriod.value();
  return quota == "-" || usual ? quota : cat(quota, "/", period.dump());
}

/// Collects the rows of the tree, depth first.
class TreeTable {
 public:
  /// The root of a tree, which is the tier of Guaranteed pods, with its pods and the other tiers.
  /// @param pods  those of no tree so far; the tiers take theirs
  void add_tree(const Json& tree, std::vector<const Json*>& pods) {
    for (const Json& tier : tree.at("tiers")) {
      const std::string& path = text_in(tier, "cgroup");
      const bool root = path == text_in(tree, "kubepods");
      add(root ? 0 : 1,
          root ? cell(path, Colour::kBold) : cell(std::string{leaf_of(path)}, colour_of(tier)),
          tier);
      std::erase_if(pods, [&](const Json* pod) {
        const std::string& cgroup = text_in(*pod, "cgroup");
        if (parent_of(cgroup) != path) return false;
        add_pod(root ? 1 : 2, *pod, leaf_of(cgroup));
        return true;
      });
    }
  }

  /// A pod with its containers.
  /// @param name  of its cgroup: the whole path for one outside podqos's root
  void add_pod(std::size_t depth, const Json& pod, std::string_view name) {
    add(depth,
        cell(cat(printable(name), text_in(pod, "name").empty() ? "" : cat("  ", pod_title(pod)),
                 pod.at("kubeletsOwn") ? "  (kubelet's)" : "", pod.at("exists") ? "" : "  (gone)"),
             colour_of(pod)),
        pod);
    for (const Json& container : pod.at("containers"))
      add_container(depth + 1, container, text_in(pod, "cgroup"));
  }

  /// The rows, with the lines of the tree in front of the labels.
  std::vector<Row> rows() && {
    std::vector<bool> goes_on;  // whether more follows at this depth
    for (std::size_t i = rows_.size(); i-- > 1;) {
      const std::size_t depth = depths_[i];
      goes_on.resize(depth + 1);
      std::string lines;
      for (std::size_t above = 1; above < depth; ++above)
        lines += goes_on[above] ? "│  " : "   ";
      if (depth > 0) lines += goes_on[depth] ? "├─ " : "└─ ";
      goes_on[depth] = true;
      rows_[i].front().text.insert(0, lines);
    }
    return std::move(rows_);
  }

 private:
  /// A container, marked if it is not live, a sandbox, or outside its pod's cgroup.
  void add_container(std::size_t depth, const Json& container, const std::string& pod) {
    // Of an id as much as engines show of it.
    constexpr std::size_t kShownId = 12;
    const std::string& name = text_in(container, "name");
    const std::string& state = text_in(container, "state");
    const std::string& cgroup = text_in(container, "cgroup");
    add(depth,
        cell(cat(printable(name.empty() ? text_in(container, "id").substr(0, kShownId) : name),
                 state == "live" ? "" : cat(" (", state, ")"),
                 container.at("sandbox") ? " (sandbox)" : "",
                 is_below(cgroup, pod) ? "" : cat(" at ", printable(cgroup))),
             state == "dead" ? Colour::kRed : Colour::kNone),
        container);
  }

  /// @param cgroup  of a tier, pod or container in the view
  void add(std::size_t depth, Cell label, const Json& cgroup) {
    const bool score = cgroup.contains("oomScoreAdj") && !cgroup.at("oomScoreAdj").is_null();
    const bool process = cgroup.contains("pid") && cgroup.at("state") != "dead";
    if (!cgroup.at("cpuWeight").is_null()) rows_.front().at(1).text = "WEIGHT (SHARES)";
    depths_.push_back(depth);
    rows_.push_back({std::move(label), cell(shown_weight(cgroup)), cell(shown_quota(cgroup)),
                     cell(bytes_in(cgroup, "memoryLimitBytes")),
                     cell(bytes_in(cgroup, "memoryUsageBytes")), cell(number_in(cgroup, "pids")),
                     cell(score ? number_in(cgroup, "oomScoreAdj") : ""),
                     cell(process ? number_in(cgroup, "pid") : "")});
  }

  std::vector<Row> rows_ = {
      heading({"CGROUP", "SHARES", "QUOTA", "MEMORY LIMIT", "USAGE", "PIDS", "OOM", "PID"})};
  std::vector<std::size_t> depths_ = {0};
};

/// The whole text output: the trees, then pods outside them (a kubelet's).
std::string tree_text(const Json& view, ColourMode mode) {
  TreeTable table;
  std::vector<const Json*> pods;
  for (const Json& pod : view.at("pods"))
    pods.push_back(&pod);
  for (const Json& tree : view.at("trees"))
    table.add_tree(tree, pods);
  for (const Json* pod : pods)
    table.add_pod(0, *pod, text_in(*pod, "cgroup"));
  const std::vector<Row> rows = std::move(table).rows();
  return rows.size() > 1 ? format_table(rows, mode) : "no pods\n";
}

}  // namespace

Result<Json> read_inventory(const app::ConfigurationReport& configuration) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  return inventory_json(configuration, std::move(records), cgroups);
}

std::string format_notices(const app::ConfigurationReport& configuration, ColourMode mode) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += cat(paint(cell("error: ", Colour::kRed), mode), error, "\n");
  const std::string warning = paint(cell("warning: ", Colour::kRed), mode);
  if (!configuration.errors.empty())
    out += cat(warning,
               "with errors in the configuration, podqos-hook and podqos-runtime leave new "
               "containers unmanaged\n");
  for (const std::string& ignored : configuration.ignored)
    out += cat(warning, ignored, ": not read: the names of files in conf.d end in .json\n");
  if (!configuration.settings.enabled) out += cat(warning, kSwitchedOff, "\n");
  return out;
}

std::string pod_title(const Json& pod) {
  const std::string& name = text_in(pod, "name");
  const std::string& space = text_in(pod, "namespace");
  if (name.empty()) return printable(text_in(pod, "uid"));
  return cat(printable(space), space.empty() ? "" : "/", printable(name));
}

void add_status(Cli& cli) {
  add_view(cli, status_text, "status",
           "List the pods and tiers of this node: class, requests, limits, current usage, and "
           "inconsistencies");
}

void add_tree(Cli& cli) {
  add_view(cli, tree_text, "tree",
           "Show the tree of tiers, pods and containers with the current kernel values");
}

}  // namespace podqos::ctl
