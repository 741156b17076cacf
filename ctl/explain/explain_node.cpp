#include "ctl/explain/explain_node.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/preview.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/cgroup/value.h"
#include "common/codec/annotations.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/core/pods/pod_name.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"
#include "ctl/node/records.h"
#include "ctl/node/selector.h"

namespace podqos::ctl {
namespace {

/// The values that are looked at of each cgroup, whether a rule sets them or not.
core::CgroupValues looked_at(core::CgroupValues values) {
  if (!values.cpu_shares) values.cpu_shares = core::kMinShares;
  if (!values.cpu_quota) values.cpu_quota = Micros{-1};
  if (!values.memory_limit) values.memory_limit = Bytes{-1};
  if (!values.pids_limit) values.pids_limit = 1;
  return values;
}

/// Cgroups of what is explained, for programs and for people.
struct HeldCgroups {
  /// [{"cgroup", "container", "files": [{"file", "rule", "kernel", "note"}], "oomScoreAdj"}]
  Json json = Json::array();
  std::string text = {};
};

/// Compares what the kernel has with the rules.
class HeldFiles {
 public:
  HeldFiles(cgroup::Machine& cgroups, const ExplainParams& params, const Screen& screen)
      : cgroups_(cgroups), params_(params), screen_(screen) {}

  HeldCgroups read(const core::PodRecord& record, const Explanation& e) {
    add_files(record.cgroup, record.kubelets_own ? core::CgroupValues{} : e.values,
              record.kubelets_own);
    add_cgroup(record.cgroup, nullptr);
    for (const core::ContainerRecord& container : record.containers) {
      const auto found = std::ranges::find(e.containers, container.name,
                                           [](const auto& each) { return each.container.name; });
      if (found == e.containers.end()) continue;
      add_files(container.cgroup, found->values, true);
      // Until it is live, the process is its creator.
      const bool live = container.state == core::ContainerState::kLive &&
                        sys::is_alive(container.pid, container.start_time);
      const auto score = sys::oom_score_adj_of(container.pid);
      const Json rule = record.kubelets_own ? Json(nullptr) : Json(found->oom_score_adj);
      const Json held = live && score ? Json(*score) : Json(nullptr);
      const auto shown = [](const Json& number) { return number.is_null() ? "-" : number.dump(); };
      rows_.push_back({cell("oom_score_adj"), cell(shown(rule)), cell(shown(held))});
      add_cgroup(container.cgroup, core::display_name(container));
      found_.json.back()["oomScoreAdj"] = {{"rule", rule}, {"kernel", held}};
    }
    return std::move(found_);
  }

 private:
  /// The files of a cgroup, by the rule and in the kernel; not those that a kernel may lack and
  /// does.
  /// @param engine_sets  whether its engine sets values that podqos leaves
  void add_files(const std::string& path, core::CgroupValues values, bool engine_sets) {
    if (params_.driver == core::Driver::kSystemd) values = core::rounded_by_systemd(values);
    // Those of huge pages only in containers that name them.
    const bool plain = engine_sets && values.hugepages.empty();
    const core::CgroupLayout& layout = plain ? cgroups_.layout_without_hugepages() : params_.layout;
    const Contents rules = files_on(values, layout, params_.formula);
    std::map<std::string, core::WriteFile> writes;
    for (const core::Step& step :
         core::lower_values(path, looked_at(std::move(values)), layout, params_.formula, ""))
      if (const auto* write = std::get_if<core::WriteFile>(&step))
        writes.insert_or_assign(write->file, *write);
    for (const auto& [name, write] : writes) {
      const auto held = cgroups_.read(path, write.controller, name);
      const auto rule = rules.find(name);
      if (held || write.on_refusal == core::OnRefusal::kFail)
        add_file(write, rule == rules.end() ? std::nullopt : std::optional{rule->second}, held,
                 engine_sets);
    }
  }

  /// What the kernel has otherwise than the rule, or than a new cgroup where no rule is, and who
  /// has set it.
  void add_file(const core::WriteFile& write, const std::optional<std::string>& rule,
                const Result<std::string>& held, bool engine_sets) {
    const auto version = params_.layout.version_of(write.controller);
    const core::ValueRow* const row = version ? core::row_with(write.file, *version) : nullptr;
    const std::string usual =
        rule || row == nullptr ? rule.value_or("") : std::string{row->on(*version).unset};
    std::string note;
    if (held && !usual.empty() && !cgroup::holds_value(write.file, *held, usual))
      note = engine_sets ? "set by its engine, its runtime or another program: podqos keeps it"
                         : "set by another program, or held by usage: podqosctl reconcile";
    std::optional<std::string> kernel;
    if (held) kernel = printable(held->substr(0, held->find('\n')));
    const auto shown = [&](const std::optional<std::string>& value) {
      return cell(value ? cgroup::shown_value(write.controller, *value) : "-");
    };
    rows_.push_back({cell(write.file), shown(rule), shown(kernel), cell(note)});
    files_.push_back({{"file", write.file},
                      {"rule", json_of(rule)},
                      {"kernel", json_of(kernel)},
                      {"note", note}});
  }

  /// Puts the files into a table of their own.
  /// @param container  its name; null: the cgroup is the pod's
  void add_cgroup(const std::string& path, const Json& container) {
    std::string title = shown_path(
        cat("Cgroup of ", container.is_null() ? "the pod" : container.get<std::string>(), " "),
        path, screen_);
    title.pop_back();  // the newline
    rows_.insert(rows_.begin(), heading({"FILE", "RULE", "KERNEL", "NOTE"}));
    found_.text += cat("\n", paint(cell(std::move(title), Colour::kBold), screen_.colour), "\n",
                       format_table(std::exchange(rows_, {}), screen_));
    found_.json.push_back({{"cgroup", path},
                           {"container", container},
                           {"files", std::exchange(files_, Json::array())}});
  }

  cgroup::Machine& cgroups_;
  const ExplainParams& params_;
  const Screen& screen_;
  std::vector<Row> rows_;
  Json files_ = Json::array();
  HeldCgroups found_;
};

/// The id under which a bundle's container is likely to be created.
std::string id_of(const codec::OciConfig& config, const std::string& directory) {
  const std::string path = config.facts.cgroups_path.value_or("");
  const auto unit = core::parse_systemd_cgroups_path(path);
  if (unit && !unit->name.empty()) return unit->name;
  const std::string_view podman = codec::podman_container_id(path);
  return std::string{podman.empty() ? leaf_of(directory) : podman};
}

/// The value at a place in config.json, in ASCII; of memory, amounts are bytes.
std::string shown_value(const std::string& at, const Json& value) {
  const bool bytes = at.contains("memory") && value.is_number_integer();
  return bytes ? format_amount(Bytes{value.get<std::int64_t>()})
               : value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// What its engine has set of the values that podqos fills in, and what podqos changes, by its own
/// record: "/linux/cgroupsPath: "a" → "b"".
std::vector<std::string> values_in(const std::string& config) {
  const Json root = Json::parse(config, nullptr, false);
  if (!root.is_object()) return {};  // not in UTF-8
  const Json edits = root.value(codec::kEditRecord, Json::array());
  std::vector<std::string> lines;
  std::string edited;
  for (const Json& edit : edits) {
    const auto at = edit.value("at", "");
    edited += cat(" ", at);
    lines.push_back(cat(at, ": ", edit.contains("was") ? shown_value(at, edit.at("was")) : "unset",
                        " → ", shown_value(at, edit.at("is"))));
  }
  for (const char* at : {"/linux/resources/cpu/shares", "/linux/resources/cpu/quota",
                         "/linux/resources/memory/limit", "/linux/resources/memory/reservation",
                         "/linux/resources/pids/limit", "/process/oomScoreAdj"}) {
    const Json::json_pointer place{at};
    if (!has_word(edited, at) && root.contains(place) && root.at(place) != 0)
      lines.push_back(cat(at, ": ", shown_value(at, root.at(place)), ", set by its engine"));
  }
  return lines;
}

/// The container of a bundle as podqos would place it, or why it would not.
Json placement_json(const std::optional<app::PlacementPreview>& placed, const std::string& id) {
  if (!placed) return {{"managed", false}, {"id", id}};
  const core::Admission& admission = placed->admission;
  return {{"managed", true},
          {"id", id},
          {"container", admission.container.name},
          {"pod", core::display_name(admission.record)},
          {"uid", admission.record.pod.uid},
          {"cgroup", admission.container.cgroup},
          {"config", values_in(placed->config)},
          {"changes", placed->changes},
          {"plan", placed->plan},
          {"warnings", admission.warnings}};
}

std::string warnings_text(const std::vector<std::string>& warnings, const Screen& screen) {
  std::string out;
  for (const std::string& warning : warnings)
    out += format_notice("warning: ", warning, screen);
  return out;
}

std::string placement_text(const app::PlacementPreview& placed, const Screen& screen) {
  std::string out;
  const auto add = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += cat("\n", paint(cell(std::string{title}, Colour::kBold), screen.colour), "\n");
    for (const std::string& line : lines)
      out += format_change(line, screen);
  };
  add("Values in config.json", values_in(placed.config));
  add("Values of cgroups", placed.changes);
  std::vector<std::string> rest;
  for (const std::string& line : placed.plan)
    if (!line.starts_with("write ")) rest.push_back(app::one_line(line));
  add("Further changes", rest);
  return out + warnings_text(placed.admission.warnings, screen);
}

/// The explanation of a record, as JSON with the members of `json`.
Json with_explanation(const Explanation& e, const ExplainParams& params, Json json) {
  json.update(explanation_json(e, params));
  Json& warnings = json["warnings"];
  if (warnings.is_null()) warnings = Json::array();
  for (const std::string& warning : e.warnings)
    warnings.push_back(warning);
  json["reason"] = e.verdict.reason;
  json["rules"] = rules_json(e, params);
  return json;
}

}  // namespace

Result<std::string> explain_running(std::string_view selector, ExplainParams params,
                                    const OutputOptions& output, const Screen& screen) {
  PODQOS_ASSIGN(auto records, read_records(params.settings));
  find_engine_names(records);
  PODQOS_ASSIGN(const Selection selection, select(records.pods, selector));
  core::PodRecord record = *selection.pod;
  if (selection.container != nullptr) record.containers = {*selection.container};
  params.driver = core::driver_of(record.cgroup);
  PODQOS_ASSIGN(const auto e, explain(record, params));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  const auto held = HeldFiles{cgroups, params, screen}.read(record, e);
  const std::string path = cat(params.settings.state_dir, "/pods/", record.pod.uid, ".json");
  const std::string name = core::display_name(record);
  if (output.is_json())
    return dump(with_explanation(e, params,
                                 {{"pod", name}, {"record", path}, {"cgroups", held.json}})) +
           "\n";
  return cat(paint(cell(cat("Pod ", name), Colour::kCyan), screen.colour), "\n",
             values_text(e, params, screen), shorten(cat("record  ", path), screen.width), "\n",
             held.text, warnings_text(e.warnings, screen));
}

Result<std::string> explain_bundle(const BundleOptions& bundle, ExplainParams params,
                                   const OutputOptions& output, const Screen& screen) {
  if (!cgroup::owns_host())
    return fail(ErrorCode::kPermission,
                "--bundle: only root on the host sees what podqos would do with a container");
  const std::string path = cat(bundle.directory, "/config.json");
  PODQOS_ASSIGN(const auto directory, sys::Directory::open(bundle.directory));
  PODQOS_ASSIGN(auto text, directory.read_file("config.json", codec::kMaxConfigSize));
  // As the wrapper reads it: without what podqos has filled in for an earlier container.
  if (auto former = codec::former_config(text)) text = *std::move(former);
  const auto config = codec::OciConfig::parse(text);
  if (!config) return fail(in_file(config.error(), path));
  const std::string id = bundle.id.empty() ? id_of(*config, bundle.directory) : bundle.id;
  PODQOS_ASSIGN(auto node, app::view_node(params.settings));
  const auto previewed = app::preview_place(params.settings,
                                            {.id = id,
                                             .bundle = bundle.directory,
                                             .config = text,
                                             .creator = Pid{::getpid()},
                                             .hooks = {}},
                                            std::move(node));
  if (!previewed) return fail(in_file(previewed.error(), path));
  const std::optional<app::PlacementPreview>& placed = *previewed;
  Json json = placement_json(placed, id);
  if (!placed) {
    const std::string_view why =
        params.settings.enabled
            ? "neither its annotations nor its engine make it a pod's that podqos is asked to "
              "manage (scope, podqos.io/ignore)"
            : kSwitchedOff;
    json["reason"] = why;
    return output.is_json() ? dump(json) + "\n"
                            : cat("not managed: container ", printable(id), ": ", why, "\n");
  }
  const core::Admission& admission = placed->admission;
  core::PodRecord record = admission.record;
  record.containers = {admission.container};
  params.driver = core::driver_of(record.cgroup);
  PODQOS_ASSIGN(const auto e, explain(record, params));
  if (output.is_json()) return dump(with_explanation(e, params, std::move(json))) + "\n";
  return cat(
      paint(cell(cat("Pod ", core::display_name(admission.record)), Colour::kCyan), screen.colour),
      "\n", values_text(e, params, screen),
      shown_path(cat("container ", core::display_name(admission.container), "  "),
                 admission.container.cgroup, screen),
      placement_text(*placed, screen));
}

}  // namespace podqos::ctl
