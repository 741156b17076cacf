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
#include "ctl/command.h"
#include "ctl/json_text.h"
#include "ctl/manifest.h"
#include "ctl/table.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

/// Keys of the annotations that podqos reads.
constexpr std::string_view kPodKey = "podqos.io/pod";
constexpr std::string_view kUidKey = "podqos.io/pod-uid";
constexpr std::string_view kContainerKey = "podqos.io/container";
/// --for: Podman before 5.0.
constexpr std::string_view kPodman4 = "podman4";
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

/// podqos.io/pod with the full spec, and podqos.io/pod-uid if the pod has a uid.
StringMembers pod_annotations(const core::Pod& pod) {
  StringMembers list = {{std::string{kPodKey}, codec::format_pod_spec(with_whole_bytes(pod))}};
  if (!pod.uid.empty()) list.emplace_back(kUidKey, pod.uid);
  return list;
}

/// Checks that --container names one of the pod's containers, and is given if the annotations are
/// for a bundle and the pod has several.
Status check_container(const core::Pod& pod, const AnnotateOptions& options) {
  std::vector<std::string> names;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    std::ranges::transform(*list, std::back_inserter(names), &core::Container::name);
  const bool given = !options.container.empty();
  if (given ? std::ranges::find(names, options.container) != names.end()
            : options.bundle.empty() || names.size() <= 1)
    return {};
  return fail(ErrorCode::kInvalidArgument,
              given ? cat("the pod has no container ", printable(options.container),
                          "; expected one of ", join(names, ", "))
                    : cat("the pod has ", names.size(),
                          " containers: use --container to select the one that the bundle belongs "
                          "to, one of ",
                          join(names, ", ")));
}

/// "<namespace>.<name>" for a pod without a uid from an API server: unique among the pods of a
/// node. A namespace has no dot (RFC 1123 label), so the parts are unambiguous.
Result<std::string> derived_uid(const core::Pod& pod) {
  constexpr std::string_view kRemedy = "set metadata.uid";
  if (pod.name.empty())
    return fail(ErrorCode::kInvalidArgument,
                "the pod has neither metadata.uid nor metadata.name, so its containers cannot be "
                "matched to one another: set one of them");
  if (pod.pod_namespace.contains('.'))
    return fail(ErrorCode::kInvalidArgument,
                cat("metadata.namespace \"", printable(pod.pod_namespace),
                    "\" contains a dot, which is not allowed in a namespace; ", kRemedy));
  const std::string space = pod.pod_namespace.empty() ? "default" : pod.pod_namespace;
  std::string uid = cat(space, ".", pod.name);
  if (auto status = core::check_pod_uid(uid); !status)
    return fail(status.error().code, cat("cannot derive a pod UID from namespace and name: ",
                                         status.error().message, "; ", kRemedy));
  return uid;
}

/// The annotations for one container of the manifest's only pod.
Result<StringMembers> container_annotations(const Manifest& manifest,
                                            const AnnotateOptions& options) {
  const auto found = manifest.pods();
  if (found.size() != 1)
    return fail(ErrorCode::kInvalidArgument,
                cat("expected a manifest with exactly one pod, found ", found.size()));
  PODQOS_ASSIGN(auto pod, admitted_pod(found.front()));
  PODQOS_TRY(check_container(pod, options));
  if (pod.uid.empty()) {
    PODQOS_ASSIGN(auto uid, derived_uid(pod));
    pod.uid = std::move(uid);
  }
  StringMembers list = pod_annotations(pod);
  if (!options.container.empty()) list.emplace_back(kContainerKey, options.container);
  return list;
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
                                            : format_amount(Bytes{amount->value()}),
                         "\""));
    }
  }
  if (list.empty())
    list.push_back(
        cat("podqos.io/qos-class: ", core::format_qos_class(core::QosClass::kBestEffort)));
  return join(list, ", ");
}

/// Checks that `podman kube play` before 5.0 accepts the annotations of each pod.
/// @note Podman 4.3 pkg/domain/infra/abi/play.go playKubePod(), define.MaxKubeAnnotation.
Status check_fits_podman4(const Manifest& manifest) {
  constexpr std::size_t kMaxLength = 63;
  for (const ManifestPod& each : manifest.pods()) {
    PODQOS_ASSIGN(const auto pod, admitted_pod(each));
    for (const auto& [key, value] : pod_annotations(pod)) {
      if (value.size() <= kMaxLength) continue;
      const std::string_view remedy = key == kPodKey ? "annotate the pod with " : "";
      return fail(
          ErrorCode::kTooLarge,
          cat(each.title, ": annotation ", key, " has ", value.size(),
              " characters, but Podman before 5.0 accepts ", kMaxLength, ": ",
              remedy.empty() ? "shorten metadata.uid" : cat(remedy, whole_pod_annotations(pod))));
    }
  }
  return {};
}

/// The annotations as one JSON object, one member a line.
std::string format_annotations(const StringMembers& list) {
  std::string out = "{";
  for (const auto& [key, value] : list)
    out += cat(out.size() > 1 ? "," : "", "\n  ", json_quote(key), ": ", json_quote(value));
  return out + "\n}\n";
}

/// Annotates the pods of one document, and keeps the layout of all else.
/// @return kUnsupported, with what is to be added by hand, for a YAML document whose layout does
///         not allow it.
Result<std::string> annotate_document(const Document& document, bool is_yaml) {
  const std::vector<ManifestPod> pods = Manifest::pods_of(document);
  if (pods.empty()) return std::string{document.text};
  std::vector<Insertion> insertions;
  for (const ManifestPod& pod : pods) {
    PODQOS_ASSIGN(const auto admitted, admitted_pod(pod));
    insertions.emplace_back(path_in(pod.path, "metadata.annotations"), pod_annotations(admitted));
  }
  if (!is_yaml) return insert_members(document.text, document.tree, insertions, Syntax::kJson);
  if (auto text = insert_yaml(document, insertions)) return text;
  std::string lines;
  for (const Insertion& insertion : insertions)
    lines += cat("\n", insertion.path, ":\n", format_members(insertion.members, "  "));
  lines.pop_back();
  return fail(ErrorCode::kUnsupported,
              cat(pods.front().title,
                  ": cannot be edited in place (an alias, a merge key, an empty or a multi-line "
                  "value is in the way); add these lines by hand:",
                  lines));
}

/// Annotates all documents of a manifest and joins them.
/// @return kInvalidArgument if it has no pod.
Result<std::string> annotate_manifest(const Manifest& manifest) {
  if (manifest.pods().empty()) return fail(ErrorCode::kInvalidArgument, std::string{kNoPod});
  std::string out;
  for (const Document& document : manifest.documents) {
    PODQOS_ASSIGN(const auto annotated, annotate_document(document, manifest.is_yaml));
    out += annotated;
  }
  return out;
}

/// The text of a config.json with the annotations added; all other bytes stay.
/// @return kConflict if an annotation is present with a different value; kInvalidArgument for text
///         that is not an OCI configuration.
Result<std::string> annotate_config(std::string_view config, const StringMembers& annotations) {
  constexpr std::string_view kAnnotations = "annotations";
  // Rejects repeated members, which a runtime could read differently.
  PODQOS_TRY(codec::OciConfig::parse(config));
  PODQOS_ASSIGN(const auto tree, codec::parse_json_tree(config, {.bytes = codec::kMaxConfigSize,
                                                                 .values = codec::kUnbounded}));
  for (const auto& [key, value] : annotations) {
    const codec::JsonNode* const all = json_member(tree, kAnnotations);
    const codec::JsonNode* const present = all == nullptr ? nullptr : json_member(*all, key);
    if (present == nullptr) continue;
    if (present->kind == codec::JsonNode::Kind::kString && present->text == value) continue;
    return fail(ErrorCode::kConflict,
                cat("annotation ", key, " already exists with a different value, ",
                    json_shown(*present), ": remove it first"));
  }
  const Insertion insertion{.path = std::string{kAnnotations}, .members = annotations};
  PODQOS_ASSIGN(auto text, insert_members(config, tree, {&insertion, 1}, Syntax::kJson));
  // "Annotations", as runc takes it, would now be repeated.
  PODQOS_TRY(codec::OciConfig::parse(text));
  return text;
}

/// Adds annotations to `directory`/config.json, and keeps its owner and mode. Writes nothing if all
/// annotations are present.
Status annotate_bundle(const std::string& directory, const StringMembers& annotations) {
  constexpr const char* kConfig = "config.json";
  constexpr mode_t kPermissions = 07777;  // set-uid and sticky included
  PODQOS_ASSIGN(const auto bundle, sys::Directory::open(directory));
  PODQOS_ASSIGN(const auto file, bundle.open_file(kConfig, O_RDONLY));
  const std::string name = cat(directory, "/", kConfig);
  PODQOS_ASSIGN(const auto text, sys::read_all(file.fd.get(), codec::kMaxConfigSize, name));
  auto changed = annotate_config(text, annotations);
  if (!changed) return fail(std::move(changed).error().with_context(name));
  if (*changed == text) return {};
  return sys::replace_file(bundle, kConfig, *changed,
                           {.uid = file.status.st_uid,
                            .gid = file.status.st_gid,
                            .mode = file.status.st_mode & kPermissions});
}

/// Does the work of the subcommand.
/// @return the text for standard output; "" with --bundle.
Result<std::string> annotate(const AnnotateOptions& options) {
  PODQOS_ASSIGN(const auto text, read_input(options.file, kMaxInput));
  PODQOS_ASSIGN(const auto manifest, parse_manifest(text));
  print_warnings(manifest, shown_name(options.file));
  if (options.engine == kPodman4) {
    PODQOS_TRY(check_fits_podman4(manifest));
  }
  if (options.bundle.empty() && options.output == "manifest") return annotate_manifest(manifest);
  PODQOS_ASSIGN(const auto list, container_annotations(manifest, options));
  if (options.bundle.empty()) return format_annotations(list);
  PODQOS_TRY(annotate_bundle(options.bundle, list));
  return std::string{};
}

/// Restricts the process first: a bundle needs kBundleCapabilities, a manifest none.
Result<int> run_annotate(const AnnotateOptions& options) {
  const std::span<const int> kept =
      options.bundle.empty() ? std::span<const int>{} : kBundleCapabilities;
  PODQOS_TRY(narrow(kept));
  auto text = annotate(options);
  if (!text) return fail(std::move(text).error().with_context(shown_name(options.file)));
  return finish(print(*text));
}

}  // namespace

Command add_annotate(CLI::App& app) {
  auto options = std::make_shared<AnnotateOptions>();
  CLI::App* sub = app.add_subcommand(
      "annotate",
      "Write the annotation podqos.io/pod into a manifest, so that podqos has the full pod spec");
  sub->footer(
      "Pods and the pod templates of PodTemplates, Deployments, DaemonSets, StatefulSets, "
      "ReplicaSets, ReplicationControllers, Jobs and CronJobs are annotated, including items of a "
      "List; other documents, comments and layout are left unchanged. A YAML document whose layout "
      "has no place for the annotations is refused, with the lines to add by hand.");
  sub->add_option("-f,--filename", options->file, "Manifest, YAML or JSON; - is standard input")
      ->required();
  sub->add_option("-o,--output", options->output,
                  "manifest (default), or annotations: a JSON object for a bundle's config.json")
      ->check(CLI::IsMember({"manifest", "annotations"}));
  sub->add_option(
         "--for", options->engine,
         "podman4: fail if an annotation is longer than the 63 characters that podman kube "
         "play before 5.0 accepts")
      ->check(CLI::IsMember({std::string{kPodman4}}));
  auto* container =
      sub->add_option("--container", options->container,
                      "Container that the bundle belongs to (with -o annotations or --bundle)");
  auto* bundle =
      sub->add_option("--bundle", options->bundle,
                      "Write the annotations into DIR/config.json instead of printing them");
  sub->callback([options, container, bundle] {
    if (container->count() > 0 && bundle->count() == 0 && options->output == "manifest")
      throw CLI::RequiresError("--container", "-o annotations or --bundle");
  });
  return {.app = sub, .run = [options] { return run_annotate(*options); }};
}

}  // namespace podqos::ctl
