#include "ctl/explain_node.h"

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
#include "ctl/inventory_view.h"
#include "ctl/records.h"
#include "ctl/selector.h"

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

/// {"file", "rule", "kernel", "note"} of a control file: what the kernel has otherwise than the
/// rule, or than a new cgroup where no rule is, and who has set it.
/// @param engine_sets  whether its engine sets values that podqos leaves
Json file_json(const core::WriteFile& write, const std::optional<std::string>& rule,
               const Result<std::string>& held, const core::CgroupLayout& layout,
               bool engine_sets) {
  const auto version = layout.version_of(write.controller);
  const core::ValueRow* const row = version ? core::row_with(write.file, *version) : nullptr;
  const std::string usual =
      rule || row == nullptr ? rule.value_or("") : std::string{row->on(*version).unset};
  std::string_view note;
  if (held && !usual.empty() && !cgroup::holds_value(write.file, *held, usual))
    note = engine_sets ? "set by its engine, its runtime or another program: podqos keeps it"
                       : "set by another program, or held by usage: podqosctl reconcile";
  return {{"file", write.file},
          {"rule", rule ? Json(*rule) : Json(nullptr)},
          {"kernel", held ? Json(printable(held->substr(0, held->find('\n')))) : Json(nullptr)},
          {"note", note}};
}

/// The files of a cgroup, by the rule and in the kernel; not those that a kernel may lack and does.
Json files_json(cgroup::Machine& cgroups, const std::string& path, core::CgroupValues values,
                const ExplainParams& params, bool engine_sets) {
  if (params.driver == core::Driver::kSystemd) values = core::rounded_by_systemd(values);
  // Those of huge pages only in containers that name them.
  const bool plain = engine_sets && values.hugepages.empty();
  const core::CgroupLayout& layout = plain ? cgroups.layout_without_hugepages() : params.layout;
  const Contents rules = files_on(values, layout, params.formula);
  std::map<std::string, Json> files;
  for (const core::Step& step :
       core::lower_values(path, looked_at(std::move(values)), layout, params.formula, "")) {
    const auto* write = std::get_if<core::WriteFile>(&step);
    if (write == nullptr) continue;
    const auto held = cgroups.read(path, write->controller, write->file);
    if (!held && write->on_refusal != core::OnRefusal::kFail) continue;
    const auto found = rules.find(write->file);
    std::optional<std::string> rule;
    if (found != rules.end()) rule = found->second;
    files[write->file] = file_json(*write, rule, held, layout, engine_sets);
  }
  Json list = Json::array();
  for (auto& [name, file] : files)
    list.push_back(std::move(file));
  return list;
}

/// The cgroups of what is explained, as JSON: [{"cgroup", "container", "files"}].
Json cgroups_json(cgroup::Machine& cgroups, const core::PodRecord& record, const Explanation& e,
                  const ExplainParams& params) {
  Json list = Json::array();
  const auto add = [&](const std::string& path, const Json& container,
                       const core::CgroupValues& values, bool engine_sets) {
    list.push_back({{"cgroup", path},
                    {"container", container},
                    {"files", files_json(cgroups, path, values, params, engine_sets)}});
  };
  add(record.cgroup, nullptr, record.kubelets_own ? core::CgroupValues{} : e.values,
      record.kubelets_own);
  for (const core::ContainerRecord& container : record.containers) {
    const auto found = std::ranges::find(e.containers, container.name,
                                         [](const auto& each) { return each.container.name; });
    if (found == e.containers.end()) continue;
    add(container.cgroup, core::display_name(container), found->values, true);
    // Until it is live, the process is its creator.
    const bool live = container.state == core::ContainerState::kLive &&
                      sys::is_alive(container.pid, container.start_time);
    const auto score = sys::oom_score_adj_of(container.pid);
    list.back()["oomScoreAdj"] = {
        {"rule", record.kubelets_own ? Json(nullptr) : Json(found->oom_score_adj)},
        {"kernel", live && score ? Json(*score) : Json(nullptr)}};
  }
  return list;
}

/// Of file_json().
Row file_row(const Json& file) {
  const auto name = file.at("file").get<std::string>();
  const auto of = name.starts_with("memory.") ? core::Controller::kMemory : core::Controller::kCpu;
  const auto shown = [&](const char* key) {
    const Json& value = file.at(key);
    return cell(value.is_null() ? "-" : cgroup::shown_value(of, value.get<std::string>()));
  };
  return {cell(name), shown("rule"), shown("kernel"), cell(file.at("note").get<std::string>())};
}

std::string cgroups_text(const Json& cgroups, const Screen& screen) {
  std::string out;
  for (const Json& cgroup : cgroups) {
    const Json& container = cgroup.at("container");
    std::string title = shown_path(
        cat("Cgroup of ", container.is_null() ? "the pod" : container.get<std::string>(), " "),
        cgroup.at("cgroup").get<std::string>(), screen);
    title.pop_back();  // the newline
    std::vector<Row> rows = {heading({"FILE", "RULE", "KERNEL", "NOTE"})};
    for (const Json& file : cgroup.at("files"))
      rows.push_back(file_row(file));
    if (const auto score = cgroup.find("oomScoreAdj"); score != cgroup.end())
      rows.push_back({cell("oom_score_adj"), cell(ctl::number_in(*score, "rule")),
                      cell(ctl::number_in(*score, "kernel"))});
    out += cat("\n", paint(cell(std::move(title), Colour::kBold), screen.colour), "\n",
               format_table(rows, screen));
  }
  return out;
}

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
  Json files = cgroups_json(cgroups, record, e, params);
  const std::string path = cat(params.settings.state_dir, "/pods/", record.pod.uid, ".json");
  const std::string name = core::display_name(record);
  if (output.is_json())
    return dump(with_explanation(
               e, params, {{"pod", name}, {"record", path}, {"cgroups", std::move(files)}})) +
           "\n";
  return cat(paint(cell(cat("Pod ", name), Colour::kCyan), screen.colour), "\n",
             values_text(e, params, screen), shorten(cat("record  ", path), screen.width), "\n",
             cgroups_text(files, screen), warnings_text(e.warnings, screen));
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
