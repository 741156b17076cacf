#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/core/naming.h"
#include "ctl/bundle.h"
#include "ctl/command.h"
#include "ctl/input.h"
#include "ctl/json_text.h"
#include "ctl/manifest.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kPodKey = "podqos.io/pod";
constexpr std::string_view kUidKey = "podqos.io/pod-uid";
constexpr std::string_view kContainerKey = "podqos.io/container";
/// A bundle of a container with a user namespace may belong to another user.
constexpr std::array kBundleCapabilities = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER};

struct Options {
  std::string file;
  std::string container;
  std::string output = "manifest";
  std::string bundle;
};

AnnotationList pod_annotations(const core::Pod& pod) {
  AnnotationList list = {{std::string{kPodKey}, codec::format_pod_spec(pod)}};
  if (!pod.uid.empty()) list.emplace_back(kUidKey, pod.uid);
  return list;
}

std::vector<std::string> container_names(const core::Pod& pod) {
  std::vector<std::string> names;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers})
    std::ranges::transform(*list, std::back_inserter(names), &core::Container::name);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += cat(out.empty() ? "" : ", ", name);
  return out;
}

/// Is `options.container` one of the pod's, and named at all where it must be?
Status check_container(const core::Pod& pod, const Options& options) {
  const std::vector<std::string> names = container_names(pod);
  if (!options.container.empty()) {
    if (std::ranges::find(names, options.container) != names.end()) return {};
    return fail(
        ErrorCode::kInvalidArgument,
        cat("the pod has no container ", printable(options.container), "; it has ", joined(names)));
  }
  if (options.bundle.empty() || names.size() <= 1) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("the pod has ", names.size(), " containers: say with --container which of ",
                  joined(names), " the bundle is for"));
}

/// "<namespace>.<name>" for a pod that no API server gave a uid: two pods of one node never share
/// it. A namespace has no dot, so that the parts cannot be mistaken.
Result<std::string> derived_uid(const core::Pod& pod) {
  constexpr std::string_view kRemedy = "give the pod a metadata.uid";
  if (pod.name.empty())
    return fail(ErrorCode::kInvalidArgument,
                "the pod has neither metadata.uid nor metadata.name, and its containers could not "
                "find each other: give it one of them");
  if (pod.pod_namespace.contains('.'))
    return fail(ErrorCode::kInvalidArgument,
                cat("metadata.namespace \"", printable(pod.pod_namespace),
                    "\" has a dot, which no namespace has; ", kRemedy));
  const std::string_view space = pod.pod_namespace.empty() ? "default" : pod.pod_namespace;
  std::string uid = cat(space, ".", pod.name);
  if (auto status = core::check_pod_uid(uid); !status)
    return fail(status.error().code, cat("no pod UID can be made of namespace and name: ",
                                         status.error().message, "; ", kRemedy));
  return uid;
}

/// The annotations for one container of the manifest's only pod.
Result<AnnotationList> container_annotations(const Manifest& manifest, const Options& options) {
  const auto has_pod = [](const Document& document) { return document.pod_path.has_value(); };
  const auto found = std::ranges::find_if(manifest.documents, has_pod);
  if (std::ranges::count_if(manifest.documents, has_pod) != 1)
    return fail(ErrorCode::kInvalidArgument, "expected a manifest with exactly one pod");
  auto pod = pod_of(*found);
  if (!pod) return fail(pod.error());
  if (auto status = check_container(*pod, options); !status) return fail(std::move(status).error());
  if (pod->uid.empty()) {
    auto uid = derived_uid(*pod);
    if (!uid) return fail(std::move(uid).error());
    pod->uid = std::move(*uid);
  }
  AnnotationList list = pod_annotations(*pod);
  if (!options.container.empty()) list.emplace_back(kContainerKey, options.container);
  return list;
}

std::string format_annotations(const AnnotationList& list) {
  std::string out = "{";
  for (const auto& [key, value] : list)
    out += cat(out.size() > 1 ? "," : "", "\n  ", json_quote(key), ": ", json_quote(value));
  return out + "\n}\n";
}

Result<std::string> annotate_document(const Document& document, bool is_yaml) {
  const auto pod = pod_of(document);
  if (!pod) return fail(pod.error().code, cat(title_of(document), ": ", pod.error().message));
  std::vector<std::string> path = document.pod_path.value_or(std::vector<std::string>{});
  path.insert(path.end(), {"metadata", "annotations"});
  const AnnotationList list = pod_annotations(*pod);
  std::string json = document.json;
  for (const auto& [key, value] : std::views::reverse(list)) {
    auto changed = json_set(json, path, key, json_quote(value));
    if (!changed) return changed;
    json = std::move(*changed);
  }
  if (!is_yaml) return json;
  if (json == document.json) return document.text;
  if (auto kept = insert_yaml(document.text, path, list, json)) return *std::move(kept);
  return cat(document.text.starts_with("---") ? "---\n" : "", format_yaml(json));
}

Result<std::string> annotate_manifest(const Manifest& manifest) {
  std::string out;
  bool found = false;
  for (const Document& document : manifest.documents) {
    if (!document.pod_path) {
      out += document.text;
      continue;
    }
    found = true;
    auto annotated = annotate_document(document, manifest.is_yaml);
    if (!annotated) return annotated;
    out += *annotated;
  }
  if (!found) return fail(ErrorCode::kInvalidArgument, "there is no pod in it");
  return out;
}

Result<std::string> annotate(const Options& options) {
  const auto text = read_input(options.file, kMaxInput);
  if (!text) return fail(text.error());
  const auto manifest = parse_manifest(*text);
  if (!manifest) return fail(manifest.error());
  if (options.bundle.empty() && options.output == "manifest") return annotate_manifest(*manifest);
  const auto list = container_annotations(*manifest, options);
  if (!list) return fail(list.error());
  if (options.bundle.empty()) return format_annotations(*list);
  if (auto status = annotate_bundle(options.bundle, *list); !status)
    return fail(std::move(status).error());
  return std::string{};
}

int run(const Options& options) {
  const std::span<const int> kept =
      options.bundle.empty() ? std::span<const int>{} : kBundleCapabilities;
  if (auto status = narrow(kept); !status) return complain(status.error());
  auto text = annotate(options);
  if (!text)
    return complain(std::move(text).error().with_context(options.file == "-" ? "standard input"
                                                                             : options.file));
  return finish(print(*text));
}

}  // namespace

Command add_annotate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "annotate",
      "Write the annotation podqos.io/pod into a manifest, so that podqos knows the whole pod.\n"
      "Pods and the pod templates of Deployments, DaemonSets, StatefulSets, ReplicaSets, Jobs and\n"
      "CronJobs are annotated, other documents stay as they are. The layout of JSON is kept, and\n"
      "that of YAML where the annotations fit in; a YAML document that must be written anew loses\n"
      "its comments.");
  sub->add_option("-f,--filename", options->file, "Manifest, YAML or JSON; - is standard input")
      ->required();
  sub->add_option("-o,--output", options->output,
                  "manifest (default), or annotations: a JSON object for a bundle's config.json")
      ->check(CLI::IsMember({"manifest", "annotations"}));
  auto* container =
      sub->add_option("--container", options->container,
                      "The container that the bundle is for (with -o annotations or --bundle)");
  auto* bundle = sub->add_option("--bundle", options->bundle,
                                 "Put the annotations into DIR/config.json instead of printing");
  sub->callback([options, container, bundle] {
    if (container->count() > 0 && bundle->count() == 0 && options->output == "manifest")
      throw CLI::RequiresError("--container", "-o annotations or --bundle");
  });
  return {.app = sub, .run = [options] { return run(*options); }};
}

}  // namespace podqos::ctl
