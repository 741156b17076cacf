#include <linux/capability.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/codec/annotations.h"
#include "common/core/kubernetes/quantity.h"
#include "common/core/kubernetes/validation.h"
#include "common/core/pods/pod_values.h"
#include "common/store/store.h"
#include "ctl/cli/command.h"
#include "ctl/explain/explain_node.h"
#include "ctl/explain/explanation.h"
#include "ctl/explain/manifest.h"
#include "ctl/node/selector.h"

namespace podqos::ctl {
namespace {

/// Values of the command line options; "" and 0 mean not set.
struct ExplainOptions {
  std::string selector;
  BundleOptions bundle;
  std::string file;
  OutputOptions output;
  bool batch = false;
  std::string driver = "cgroupfs";
  int cgroup_version = 0;  ///< 0: as the machine has it
  std::string node_memory;
  std::string weight_formula;
};

/// The value of --node-memory.
Result<Bytes> parse_memory(const std::string& text) {
  const auto quantity = core::Quantity::parse(text);
  if (quantity && quantity->value() > 0 && quantity->is_whole()) return Bytes{quantity->value()};
  const std::string problem = !quantity ? quantity.error().message
                              : quantity->value() > 0
                                  ? cat(printable(text), " is ", core::describe_fraction(*quantity))
                                  : cat("expected more than 0, found ", printable(text));
  return fail(ErrorCode::kInvalidArgument, cat("--node-memory: ", problem));
}

/// The cgroup layout: as requested, else as on this machine.
Result<core::CgroupLayout> layout_for(const ExplainOptions& options) {
  using core::CgroupVersion;
  const bool systemd = options.driver == "systemd";
  if (systemd && options.cgroup_version == 1)
    return fail(ErrorCode::kInvalidArgument, "--driver systemd requires --cgroup-version 2");
  if (options.cgroup_version != 0)
    return layout_of(options.cgroup_version == 1 ? CgroupVersion::kV1 : CgroupVersion::kV2);
  auto cgroups = cgroup::Cgroupfs::open({.access = cgroup::Access::kRead});
  if (!cgroups) {
    warn(cat(cgroups.error().message, "; showing the writes of a cgroup v2 node"));
    return layout_of(CgroupVersion::kV2);
  }
  const core::CgroupLayout& here = cgroups->layout();
  if (!systemd || here.cpu == CgroupVersion::kV2) return here;
  return layout_of(CgroupVersion::kV2, here.hugepage_labels);
}

/// The formula of the node's runtime, if containers of it have been seen.
/// @return nullopt for a caller who may not read the state
std::optional<core::WeightFormula> observed_formula(const core::Settings& settings) {
  auto store = store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked);
  return store ? store->node().weight_formula : std::nullopt;
}

/// Combines options, settings and machine.
Result<ExplainParams> params_of(const ExplainOptions& options, core::Settings settings) {
  ExplainParams params;
  params.cgroup_root = settings.cgroup_root;
  params.config = core::pod_config_params(settings);
  params.settings = settings;
  if (options.weight_formula.empty())
    params.formula = core::weight_formula(settings, observed_formula(settings));
  else if (options.weight_formula == "log")
    params.formula = core::WeightFormula::kLog;
  if (options.driver == "systemd") params.driver = core::Driver::kSystemd;
  if (!options.node_memory.empty()) {
    PODQOS_ASSIGN(settings.node_memory, parse_memory(options.node_memory));
  }
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  params.node_memory = capacity.memory;
  params.container =
      core::container_memory_params(settings, capacity, {.swap_max = true, .oom_group = true});
  params.memory_qos = core::memory_qos_params(settings, capacity);
  PODQOS_ASSIGN(params.layout, layout_for(options));
  if (params.is_v1()) params.config.reserve_memory = false;
  return params;
}

/// Explains all pods of a manifest: one JSON object or a list of them, or texts below each other.
Result<std::string> explain_manifest(const ExplainOptions& options, const ExplainParams& params,
                                     const Screen& screen) {
  PODQOS_ASSIGN(const auto text, read_input(options.file, kMaxInput));
  PODQOS_ASSIGN(const auto documents, parse_manifest(text));
  const std::vector<ManifestPod> pods = pods_in(documents);
  std::vector<std::string> texts;
  Json list = Json::array();
  for (const ManifestPod& pod : pods) {
    PODQOS_ASSIGN(auto admitted, admitted_pod(pod));
    // Those that podqos would refuse are warned of.
    const auto annotations = codec::parse_podqos_annotations(annotations_of(pod));
    auto explanation =
        explain(std::move(admitted), annotations.value_or(core::PodqosAnnotations{}), params);
    if (!explanation) return fail(std::move(explanation).error().with_context(pod.title));
    for (const std::string& warning : explanation->warnings)
      warn(cat("warning: ", shown_name(options.file), ": ", pod.title, ": ", warning));
    texts.push_back(cat(paint(cell(pod.title, Colour::kCyan), screen.colour), "\n",
                        explain_text(*explanation, params, screen)));
    Json& json = list.emplace_back(explanation_json(*explanation, params));
    json["reason"] = explanation->verdict.reason;
    json["rules"] = rules_json(*explanation, params);
    json["document"] = pod.title;
  }
  print_warnings(pods, shown_name(options.file));
  if (pods.empty()) return fail(ErrorCode::kInvalidArgument, std::string{kNoPod});
  if (!options.output.is_json()) return join(texts, "\n");
  return dump(list.size() == 1 ? list.front() : list) + "\n";
}

/// Answers each line as soon as it is complete; a last line without newline counts.
Result<int> run_batch(const std::string& path) {
  PODQOS_ASSIGN(const File file, open_input(path));
  int status = kDone;
  std::string line;
  for (int c = 0; c != EOF && status == kDone;) {
    c = std::getc(file.get());
    // A line that is too long is kept as such, not whole.
    if (c != '\n' && c != EOF && line.size() <= kMaxInput) line += static_cast<char>(c);
    if (c == '\n' || (c == EOF && !line.empty()))
      status = print(answer_line(std::exchange(line, {})) + "\n");
  }
  if (std::ferror(file.get()) != 0) return fail_errno(errno, cat("read ", shown_name(path)));
  return status;
}

/// What is explained, as text or JSON.
Result<std::string> answer(const ExplainOptions& options, const ExplainParams& params,
                           const Screen& screen) {
  if (!options.selector.empty())
    return explain_running(options.selector, params, options.output, screen);
  if (!options.bundle.directory.empty())
    return explain_bundle(options.bundle, params, options.output, screen);
  auto text = explain_manifest(options, params, screen);
  if (!text) return fail(in_file(std::move(text).error(), options.file));
  return text;
}

/// CAP_DAC_OVERRIDE is for bundles of other users, CAP_SYS_ADMIN reads trusted.* attributes,
/// CAP_SYS_PTRACE shows processes where /proc is mounted with hidepid.
constexpr std::array kForNode = {CAP_DAC_OVERRIDE, CAP_SYS_ADMIN, CAP_SYS_PTRACE};

/// Drops capabilities before anything is parsed; a manifest needs none.
Result<int> run_explain(ExplainOptions options, const Cli& cli) {
  const Screen screen = options.output.screen();
  if (std::string& directory = options.bundle.directory; !directory.empty()) {
    std::error_code error;
    const auto canonical = std::filesystem::canonical(directory, error);
    if (error) return fail_errno(error.value(), cat("--bundle: open ", printable(directory)));
    directory = canonical.string();
  }
  const bool on_node = !options.selector.empty() || !options.bundle.directory.empty();
  PODQOS_TRY(narrow(on_node ? std::span<const int>{kForNode} : std::span<const int>{}));
  if (options.batch) return run_batch(options.file.empty() ? "-" : options.file);
  PODQOS_ASSIGN(const auto settings, settings_in_force(cli));
  const auto params = params_of(options, settings);
  if (!params) {
    warn(params.error().message);
    return params.error().code == ErrorCode::kInvalidArgument ? kUsage : kRefused;
  }
  auto text = answer(options, *params, screen);
  if (!text) return fail(on_node ? for_root(std::move(text).error()) : std::move(text).error());
  return print(*text);
}

}  // namespace

void add_explain(Cli& cli) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "explain",
      "Show the QoS class and values of a manifest's pod, of one that runs or of a bundle's "
      "container, the rule behind each, and the resulting writes");
  CLI::Option* selector =
      sub->add_option("POD", options->selector, std::string{kContainerSelectorHelp});
  CLI::Option* file =
      sub->add_option("-f,--filename", options->file,
                      "Pod manifest, YAML or JSON; - is standard input (the default with --batch)")
          ->type_name("FILE");
  CLI::Option* bundle =
      sub->add_option("--bundle", options->bundle.directory,
                      "OCI bundle: what podqos would do if its container were created now")
          ->type_name("DIR");
  sub->add_option("--id", options->bundle.id,
                  "Id of the bundle's container; default: from cgroupsPath, "
                  "else the name of DIR")
      ->needs(bundle);
  file->excludes(selector, bundle);
  bundle->excludes(selector);
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  CLI::Option* batch = sub->add_flag(
      "--batch", options->batch,
      "Read one JSON object per line and print one per line, independently of this machine");
  sub->add_option("--driver", options->driver, "cgroupfs (default) or systemd")
      ->check(CLI::IsMember({"cgroupfs", "systemd"}));
  sub->add_option("--cgroup-version", options->cgroup_version,
                  "1 or 2; default: that of this machine")
      ->check(CLI::IsMember({1, 2}));
  sub->add_option("--node-memory", options->node_memory,
                  "Memory of the node, such as 32Gi; default: nodeMemory, else this machine's");
  sub->add_option(
         "--weight-formula", options->weight_formula,
         "linear or log: conversion of shares to cpu.weight; default: this node's, log where no "
         "container has told it yet")
      ->check(CLI::IsMember({"linear", "log"}));
  // Each line has its own parameters.
  for (const char* name :
       {"--output", "--driver", "--cgroup-version", "--node-memory", "--weight-formula", "--color"})
    batch->excludes(sub->get_option(name));
  batch->excludes(selector, bundle);
  // A node has what it has.
  for (const char* name : {"--driver", "--cgroup-version", "--node-memory", "--weight-formula"}) {
    selector->excludes(sub->get_option(name));
    bundle->excludes(sub->get_option(name));
  }
  sub->callback([options, &cli] {
    if (!options->batch && options->file.empty() && options->selector.empty() &&
        options->bundle.directory.empty())
      throw CLI::RequiredError("-f, --bundle or a pod");
    cli.status = run_explain(*options, cli);
  });
}

}  // namespace podqos::ctl
