#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/resize_pod.h"
#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"
#include "ctl/act/engine_update.h"
#include "ctl/cli/command.h"
#include "ctl/cli/json.h"
#include "ctl/configure/program.h"
#include "ctl/node/records.h"
#include "ctl/node/runtime_state.h"
#include "ctl/node/selector.h"
#include "ctl/view/node_text.h"

namespace podqos::ctl {
namespace {

/// For another resize, which waits for its containers' runtimes.
constexpr std::chrono::seconds kPatience{30};

/// Values of the command line options.
struct ResizeOptions {
  OutputOptions output;
  std::string pod;  ///< as select() takes it
  app::PodResize resize;
  std::string runtime;       ///< "": those of the settings
  std::string runtime_root;  ///< "": runtime_roots()
};

/// Whether the runtime says that this container is its own: another may have one of that id.
bool has_container(const std::string& runtime, const std::string& root,
                   const core::ContainerRecord& container) {
  // Such an id would be an option, or lead elsewhere.
  if (container.id.starts_with('-') || container.id.contains('/')) return false;
  if (::access(cat(root, "/", container.id).c_str(), F_OK) != 0) return false;
  const auto text = run_program({runtime, "--root", root, "state", container.id});
  const Json state = text ? Json::parse(*text, nullptr, false) : Json{};
  return state.is_object() && state.contains("pid") && state["pid"] == container.pid.value();
}

/// The `update` of a runtime, whose options runc, crun and youki share.
Status update(const std::vector<std::string>& runtime, const std::string& id,
              const core::EngineResources& values) {
  std::vector<std::string> argv = runtime;
  argv.emplace_back("update");
  const auto add = [&argv](const char* option, const std::optional<std::int64_t>& value) {
    if (value) argv.push_back(cat(option, "=", *value));
  };
  add("--memory", values.memory_limit);
  add("--memory-swap", values.memory_swap);
  add("--cpu-share", values.cpu_shares);
  add("--cpu-period", values.cpu_period);
  add("--cpu-quota", values.cpu_quota);
  add("--pids-limit", values.pids_limit);
  argv.push_back(id);
  auto done = run_program(argv);
  if (done) return {};
  return fail(std::move(done).error().with_context(join(argv, " ")));
}

app::UpdateContainer runtime_at(const std::string& runtime, const std::string& root,
                                const std::string& id) {
  return [argv = std::vector{runtime, std::string{"--root"}, root}, id](const auto& values) {
    return update(argv, id, values);
  };
}

/// @return kNotFound with what to name or to use instead
Result<app::UpdateContainer> find_runtime(const ResizeOptions& options,
                                          const core::Settings& settings,
                                          const core::ContainerRecord& container) {
  const auto runtimes = options.runtime.empty() ? settings.runtimes : std::vector{options.runtime};
  const auto roots =
      options.runtime_root.empty() ? runtime_roots() : std::vector{options.runtime_root};
  for (const std::string& root : roots) {
    for (const std::string& runtime : runtimes) {
      if (has_container(runtime, root, container)) return runtime_at(runtime, root, container.id);
    }
  }
  const std::string_view engine = engine_command(container);
  return fail(ErrorCode::kNotFound,
              cat("none of the runtimes ", join(runtimes, ", "), " has it in ", join(roots, ", "),
                  ": name its runtime with --runtime and the --root of it with --runtime-root",
                  engine.empty() ? "" : cat(", or use ", engine)));
}

/// Waits for any other resize: the lock of the state is free while runtimes are told, and two of a
/// pod would leave its record and its containers apart.
Result<sys::FileLock> lock_resizes(const core::Settings& settings) {
  auto directory = store::open_state_directory(settings.state_dir);
  if (!directory && directory.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound,
                cat("podqos has no pods: ", settings.state_dir, " does not exist"));
  if (!directory) return fail(std::move(directory).error());
  auto lock = sys::FileLock::acquire(*directory, app::kResizeLock, kPatience);
  if (!lock)
    return fail(std::move(lock).error().with_context(
        "wait for another podqosctl resize, or the runtime that it has called"));
  lock->share_with_children();
  return lock;
}

/// The pod that is named, and its container if one is.
Result<core::PodRecord> choose(ResizeOptions& options, const core::Settings& settings) {
  auto records = read_records(settings);
  if (!records) return fail(for_root(std::move(records).error()));
  auto& pods = records->pods;
  std::erase_if(pods, [](const core::PodRecord& record) { return record.released_at.has_value(); });
  NodeRecords named = *records;
  find_engine_names(named);
  PODQOS_ASSIGN(const auto chosen, select(named.pods, options.pod));
  const core::PodRecord& pod = pods[static_cast<std::size_t>(chosen.pod - named.pods.data())];
  options.resize.uid = pod.pod.uid;
  if (chosen.container == nullptr) return pod;
  // By the name that the record has.
  const core::ContainerRecord& own =
      pod.containers[static_cast<std::size_t>(chosen.container - chosen.pod->containers.data())];
  std::string& container = options.resize.request.container;
  if (!container.empty() && container != own.name)
    return fail(ErrorCode::kInvalidArgument,
                cat(printable(options.pod), " is container ", core::display_name(own),
                    ", but --container is ", printable(container), ": name one of them"));
  container = own.name;
  return pod;
}

Json report_of(const core::RequestedResize& done, bool changed) {
  const core::Pod& pod = done.after.pod;
  const core::Resources resources = core::amounts_of(done.after, done.container).resources;
  return {{"engine", core::format_engine(done.after.engine)},
          {"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"uid", pod.uid},
          {"container", done.container.empty() ? Json(nullptr) : Json(done.container)},
          {"changed", changed},
          {"requests", json_of(resources.requests)},
          {"limits", json_of(resources.limits)}};
}

/// "pod default/web, container app: requests cpu 250m; limits -".
std::string text_of(const core::PodRecord& pod, const core::RequestedResize& done, bool changed) {
  const core::Resources resources = core::amounts_of(done.after, done.container).resources;
  return cat(
      "pod ", core::display_name(pod),
      done.container.empty() ? "" : cat(", container ", printable(core::short_id(done.container))),
      changed ? "" : ": nothing to change", ": requests ", shown(amounts_of(resources.requests)),
      "; limits ", shown(amounts_of(resources.limits)));
}

/// A container's values after a resize. Those of a pod as a whole are the limits of its only
/// container as well, of which its engine may have lower ones.
Result<core::CgroupValues> new_values(const core::RequestedResize& done,
                                      const core::ContainerRecord& container, bool told,
                                      const core::Settings& settings) {
  const core::PodRecord& pod = done.after;
  const core::PodConfigParams params = core::pod_config_params(settings);
  const core::Container* const known = core::find_container(pod.pod, container.name);
  if (told && known != nullptr) return core::container_cgroup_values(pod.pod, *known, params);
  if (!done.container.empty() || pod.containers.size() > 1) return core::CgroupValues{};
  PODQOS_ASSIGN(auto values, core::container_cgroup_values(pod.pod, {}, params));
  values.cpu_shares.reset();
  return values;
}

/// Says with what the engines of a resized pod's containers start them again.
/// @param told  the containers whose runtimes were
Status warn_of_restart(const core::RequestedResize& done,
                       std::span<const core::ContainerRecord> told,
                       const core::Settings& settings) {
  const core::PodRecord& pod = done.after;
  bool stated = false;
  for (const core::ContainerRecord& each : pod.containers) {
    if (engine_command(each).empty()) continue;
    const bool inferred = core::has_inferred_resources(pod, each);
    stated = stated || !inferred;
    const bool is_told = std::ranges::find(told, each.id, &core::ContainerRecord::id) != told.end();
    PODQOS_ASSIGN(const auto values, new_values(done, each, is_told, settings));
    const std::string update =
        engine_update(each, engine_resources(each, !inferred, values), values);
    if (!update.empty())
      warn(cat("container ", core::display_name(each),
               ": its engine has limits of its own, and starts it again with them: tell it the "
               "new ones: ",
               update));
  }
  if (stated)
    warn(cat("pod ", core::display_name(pod),
             ": its annotations state its resources, and count again when its engine starts a "
             "container of it again: make it anew with other annotations, to keep these"));
  return {};
}

/// Executes runtimes, which need all capabilities and system calls, so drops none.
Result<int> run_resize(ResizeOptions& options, const Cli& cli) {
  PODQOS_ASSIGN(const auto settings, settings_in_force(cli));
  app::Log log{"podqosctl", settings};
  PODQOS_ASSIGN(const auto pod, choose(options, settings));
  const std::string name = cat("pod ", core::display_name(pod));
  std::vector<core::ContainerRecord> told;
  const auto lock = lock_resizes(settings);
  if (!lock) return fail(for_root(lock.error()));
  // Otherwise the pod would stay half resized.
  block_signals();
  const auto done = app::resize_pod(
      [&]() -> Result<app::Transaction> {
        PODQOS_ASSIGN(auto transaction, app::Transaction::open_existing(settings, log));
        if (transaction) return *std::move(transaction);
        return fail(ErrorCode::kNotFound,
                    cat("podqos has no pods: ", settings.state_dir, " does not exist"));
      },
      options.resize,
      [&](const core::ContainerRecord& container) {
        told.push_back(container);
        return find_runtime(options, settings, container);
      });
  if (!done) return fail(for_root(Error{done.error()}.with_context(name)));
  if (const auto words = core::describe_uncounted(done->after, settings))
    warn(cat(name, ": ", *words));
  const bool changed = !told.empty() || done->after.pod != done->before.pod;
  if (changed) PODQOS_TRY(warn_of_restart(*done, told, settings));
  return print(
      cat(options.output.is_json() ? dump(report_of(*done, changed)) : text_of(pod, *done, changed),
          "\n"));
}

/// An option for a list of amounts.
void add_amounts(CLI::App& sub, const char* name, const char* description,
                 core::ResourceList& amounts) {
  sub.add_option_function<std::string>(
      name,
      [name, &amounts](const std::string& text) {
        auto parsed = codec::parse_short_form(text);
        if (!parsed) throw CLI::ValidationError{name, parsed.error().message};
        amounts = *std::move(parsed);
      },
      description);
}

}  // namespace

void add_resize(Cli& cli) {
  auto options = std::make_shared<ResizeOptions>();
  CLI::App* sub = cli.app.add_subcommand("resize", "Change CPU and memory of a running pod");
  add_output(*sub, options->output);
  sub->add_option("POD", options->pod, std::string{kContainerSelectorHelp})->required();
  sub->add_option("--container", options->resize.request.container,
                  "Container to resize; may be left out if the pod has one");
  core::Resources& wanted = options->resize.request.wanted;
  add_amounts(*sub, "--requests", "Such as cpu=250m,memory=64Mi", wanted.requests);
  add_amounts(*sub, "--limits", "Such as cpu=500m,memory=128Mi", wanted.limits);
  sub->add_option("--runtime", options->runtime, "OCI runtime of its containers")
      ->type_name("FILE");
  sub->add_option("--runtime-root", options->runtime_root, "The --root that its runtime has")
      ->type_name("DIR");
  sub->callback([options, sub, &cli] {
    if (sub->get_option("--requests")->empty() && sub->get_option("--limits")->empty())
      throw CLI::RequiredError{"--requests or --limits"};
    cli.status = run_resize(*options, cli);
  });
}

}  // namespace podqos::ctl
