#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/pod_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/validation.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"
#include "ctl/cli/command.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/explain/document.h"
#include "ctl/explain/manifest.h"

namespace podqos::ctl {
namespace {

/// Keys of the annotations that podqos reads.
constexpr const char* kPodKey = "podqos.io/pod";
constexpr const char* kUidKey = "podqos.io/pod-uid";
constexpr const char* kContainerKey = "podqos.io/container";
/// Those by which a pod's author asks for less of the CPU.
constexpr std::array kCpuKeys = {"podqos.io/cpu-burst", "podqos.io/cpu-idle"};
/// Kubernetes' own, where a manifest has none.
constexpr const char* kDefaultNamespace = "default";
/// --for: Podman before 5.0.
constexpr const char* kPodman4 = "podman4";
/// The bundle of a container with a user namespace may belong to another user.
constexpr std::array kBundleCapabilities = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER};

/// Values of the command line options.
struct AnnotateOptions {
  std::string file;
  std::string container;
  std::string output = "manifest";
  std::string bundle;
  std::string engine;
};

/// The pod with amounts in bytes rounded up to whole ones, as the kubelet does; podqos refuses
/// others in annotations.
core::Pod with_whole_bytes(core::Pod pod) {
  std::vector<core::ResourceList*> lists = {&pod.overhead};
  const auto add = [&](core::Resources& resources) {
    lists.insert(lists.end(), {&resources.requests, &resources.limits});
  };
  for (auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    for (core::Container& container : *list)
      add(container.resources);
  if (pod.resources) add(*pod.resources);
  for (core::ResourceList* list : lists)
    for (auto& [name, quantity] : *list)
      if (core::is_in_bytes(name)) quantity = core::Quantity::from_units(quantity.value());
  return pod;
}

/// Checks that --container names one of the pod's containers, and is given if the annotations are
/// for a bundle and the pod has several.
Status check_container(const core::Pod& pod, const AnnotateOptions& options) {
  std::vector<std::string> names;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    std::ranges::transform(*list, std::back_inserter(names), &core::Container::name);
  std::string problem;
  if (options.container.empty()) {
    if (!options.bundle.empty() && names.size() > 1)
      problem = cat("the pod has ", names.size(), " containers: use --container to select the one ",
                    "that the bundle belongs to,");
  } else if (std::ranges::find(names, options.container) == names.end()) {
    problem = cat("the pod has no container ", printable(options.container), "; expected");
  }
  if (problem.empty()) return {};
  return fail(ErrorCode::kInvalidArgument, cat(problem, " one of ", join(names, ", ")));
}

/// "<namespace>.<name>" for a pod without a uid from an API server: unique among the pods of a
/// node. A namespace has no dot (RFC 1123 label), so the parts are unambiguous.
Result<std::string> derived_uid(const core::Pod& pod) {
  const std::string space = pod.pod_namespace.empty() ? kDefaultNamespace : pod.pod_namespace;
  std::string uid = cat(space, ".", pod.name);
  Status usable = core::check_pod_uid(uid);
  if (space.contains('.'))
    usable = fail(ErrorCode::kInvalidArgument,
                  cat("metadata.namespace \"", printable(space), "\" contains a dot"));
  if (pod.name.empty()) usable = fail(ErrorCode::kInvalidArgument, "metadata.name is missing");
  if (usable) return uid;
  return fail(ErrorCode::kInvalidArgument,
              cat("the pod has no metadata.uid, and none can be derived from namespace and name: ",
                  usable.error().message, "; set metadata.uid"));
}

/// Requests and limits of the whole pod in annotations of one amount each: "podqos.io/cpu-request:
/// 100m, podqos.io/memory-limit: 1Gi".
std::string whole_pod_annotations(const core::Pod& pod) {
  std::vector<std::string> list;
  for (const bool limit : {false, true}) {
    const core::ResourceList amounts = limit ? core::pod_limits(pod) : core::pod_requests(pod);
    for (const std::string_view name : {core::kCpu, core::kMemory}) {
      const auto amount = core::find(amounts, name);
      if (!amount || (limit && !core::limit_declared(pod, name))) continue;
      list.push_back(cat("podqos.io/", name, limit ? "-limit: \"" : "-request: \"",
                         name == core::kCpu ? format_amount(MilliCpu{amount->milli_value()})
                                            : exact_amount(Bytes{amount->value()}),
                         "\""));
    }
  }
  if (list.empty())
    list.push_back(
        cat("podqos.io/qos-class: ", core::format_qos_class(core::QosClass::kBestEffort)));
  return join(list, ", ");
}

/// podqos.io/pod with the full spec and the pod's names, and podqos.io/pod-uid if the pod has a
/// uid.
/// @return kTooLarge if `podman kube play` before 5.0 has to accept them and does not.
/// @note Podman 4.3 pkg/domain/infra/abi/play.go playKubePod(), define.MaxKubeAnnotation.
Result<Json> pod_annotations(const std::string& title, const core::Pod& pod,
                             const AnnotateOptions& options) {
  constexpr std::size_t kMaxLength = 63;
  core::Pod written = with_whole_bytes(pod);
  // Too long for Podman 4 with any name.
  if (options.engine == kPodman4) written.name = written.pod_namespace = "";
  Json list = {{kPodKey, codec::format_pod_spec(written)}};
  if (!pod.uid.empty()) list[kUidKey] = pod.uid;
  for (const auto& [key, value] : list.items()) {
    const std::size_t length = value.get_ref<const std::string&>().size();
    if (options.engine != kPodman4 || length <= kMaxLength) continue;
    return fail(ErrorCode::kTooLarge,
                cat(title, ": annotation ", key, " has ", length,
                    " characters, but Podman before 5.0 accepts ", kMaxLength, ": ",
                    key == kUidKey ? "shorten metadata.uid"
                                   : cat("annotate the pod with ", whole_pod_annotations(pod))));
  }
  return list;
}

/// The annotations for one container of the manifest's only pod.
Result<Json> container_annotations(const std::vector<ManifestPod>& pods,
                                   const AnnotateOptions& options) {
  if (pods.size() != 1)
    return fail(ErrorCode::kInvalidArgument,
                cat("expected a manifest with exactly one pod, found ", pods.size()));
  PODQOS_ASSIGN(auto pod, admitted_pod(pods.front()));
  PODQOS_TRY(check_container(pod, options));
  if (pod.uid.empty()) {
    PODQOS_ASSIGN(pod.uid, derived_uid(pod));
  }
  // No engine tells the namespace of a bundle.
  if (!pod.name.empty() && pod.pod_namespace.empty()) pod.pod_namespace = kDefaultNamespace;
  PODQOS_ASSIGN(Json list, pod_annotations(pods.front().title, pod, options));
  if (!options.container.empty()) list[kContainerKey] = options.container;
  // A manifest keeps its own; a bundle has only these.
  const core::Annotations written = annotations_of(pods.front());
  for (const char* key : kCpuKeys)
    if (const auto found = written.find(key); found != written.end()) list[key] = found->second;
  return list;
}

/// Annotates the pods of one document, and keeps the layout of all else.
/// @return kUnsupported, with what is to be added by hand, for a YAML document whose layout does
///         not allow it.
Result<std::string> annotate_document(const Document& document, const AnnotateOptions& options) {
  const std::vector<ManifestPod> pods = pods_in({&document, 1});
  if (pods.empty()) return std::string{document.text};
  std::vector<Insertion> insertions;
  std::string lines;
  for (const ManifestPod& pod : pods) {
    PODQOS_ASSIGN(const auto admitted, admitted_pod(pod));
    PODQOS_ASSIGN(auto members, pod_annotations(pod.title, admitted, options));
    const std::string path = path_in(pod.path, "metadata.annotations");
    lines += cat("\n", path, ":\n", without_newline(format_members(members, "  ")));
    insertions.emplace_back(path, std::move(members));
  }
  auto text = insert_members(document, insertions);
  if (text) return text;
  return fail(ErrorCode::kUnsupported,
              cat(pods.front().title,
                  ": cannot be edited in place (an alias, a merge key, an empty or a multi-line "
                  "value is in the way); add these lines by hand:",
                  lines));
}

/// The text of a config.json with the annotations added; all other bytes stay.
/// @return kConflict if an annotation is present with a different value; kInvalidArgument for text
///         that is not an OCI configuration.
Result<std::string> annotate_config(std::string_view text, Json annotations) {
  // Rejects repeated members, which a runtime could read differently.
  PODQOS_ASSIGN(auto config, codec::OciConfig::parse(text));
  for (const auto& [key, value] : annotations.items()) {
    const auto& present = config.facts.annotations;
    const auto found = present.find(key);
    if (found != present.end() && value != found->second)
      return fail(ErrorCode::kConflict,
                  cat("annotation ", key, " already exists with a different value, \"",
                      printable(found->second), "\": remove it first"));
  }
  const Insertion insertion{.path = "annotations", .members = std::move(annotations)};
  PODQOS_ASSIGN(auto edited,
                insert_members({.text = text, .tree = std::move(config.tree)}, {&insertion, 1}));
  // "Annotations", as runc takes it, would now be repeated.
  PODQOS_TRY(codec::OciConfig::parse(edited));
  return edited;
}

/// Adds annotations to `directory`/config.json, and keeps its owner and mode. Writes nothing if all
/// annotations are present.
Status annotate_bundle(const std::string& directory, Json annotations) {
  constexpr const char* kConfig = "config.json";
  constexpr mode_t kPermissions = 07777;  // set-uid and sticky included
  PODQOS_ASSIGN(const auto bundle, sys::Directory::open(directory));
  PODQOS_ASSIGN(const auto file, bundle.open_file(kConfig, O_RDONLY));
  const std::string name = cat(directory, "/", kConfig);
  PODQOS_ASSIGN(const auto text, sys::read_all(file.fd.get(), codec::kMaxConfigSize, name));
  auto changed = annotate_config(text, std::move(annotations));
  if (!changed) return fail(std::move(changed).error().with_context(name));
  if (*changed == text) return {};
  return sys::replace_file(bundle, kConfig, *changed,
                           sys::FileOwner{.uid = file.status.st_uid,
                                          .gid = file.status.st_gid,
                                          .mode = file.status.st_mode & kPermissions});
}

/// Does the work of the subcommand.
/// @return the text for standard output; "" with --bundle.
Result<std::string> annotate(const AnnotateOptions& options) {
  PODQOS_ASSIGN(const auto text, read_input(options.file, kMaxInput));
  PODQOS_ASSIGN(const auto documents, parse_manifest(text));
  const std::vector<ManifestPod> pods = pods_in(documents);
  print_warnings(pods, shown_name(options.file));
  if (!options.bundle.empty() || options.output == "annotations") {
    PODQOS_ASSIGN(auto list, container_annotations(pods, options));
    if (options.bundle.empty())
      return cat(list.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
    PODQOS_TRY(annotate_bundle(options.bundle, std::move(list)));
    return std::string{};
  }
  std::string out;
  if (pods.empty()) return fail(ErrorCode::kInvalidArgument, std::string{kNoPod});
  for (const Document& document : documents) {
    PODQOS_ASSIGN(const auto annotated, annotate_document(document, options));
    out += annotated;
  }
  return out;
}

/// Restricts the process first: a bundle needs kBundleCapabilities, a manifest none.
Result<int> run_annotate(const AnnotateOptions& options) {
  PODQOS_TRY(narrow(options.bundle.empty() ? std::span<const int>{} : kBundleCapabilities));
  auto text = annotate(options);
  if (!text) return fail(in_file(std::move(text).error(), options.file));
  return print(*text);
}

}  // namespace

void add_annotate(Cli& cli) {
  auto options = std::make_shared<AnnotateOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "annotate",
      "Write the annotation podqos.io/pod into a manifest, so that podqos has the full pod spec");
  sub->footer(
      "Pods and the pod templates of PodTemplates, Deployments, DaemonSets, StatefulSets, "
      "ReplicaSets, ReplicationControllers, Jobs and CronJobs are annotated, including items of a "
      "List; other documents, comments and layout are left unchanged. A YAML document whose layout "
      "has no place for the annotations is refused, with the lines to add by hand.");
  sub->add_option("-f,--filename", options->file, "Manifest, YAML or JSON; - is standard input")
      ->type_name("FILE")
      ->required();
  sub->add_option("-o,--output", options->output,
                  "manifest (default), or annotations: a JSON object for a bundle's config.json")
      ->check(CLI::IsMember({"manifest", "annotations"}));
  sub->add_option(
         "--for", options->engine,
         "podman4: fail if an annotation is longer than the 63 characters that podman kube "
         "play before 5.0 accepts")
      ->check(CLI::IsMember({kPodman4}));
  sub->add_option("--container", options->container,
                  "Container that the bundle belongs to (with -o annotations or --bundle)");
  sub->add_option("--bundle", options->bundle,
                  "Write the annotations into DIR/config.json instead of printing them")
      ->type_name("DIR");
  sub->callback([options, &cli] {
    if (!options->container.empty() && options->bundle.empty() && options->output == "manifest")
      throw CLI::RequiresError("--container", "-o annotations or --bundle");
    cli.status = run_annotate(*options);
  });
}

}  // namespace podqos::ctl
