#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
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

Status check_container(const core::Pod& pod, const std::string& name) {
  std::string known;
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    for (const core::Container& container : *list) {
      if (container.name == name) return {};
      known += cat(known.empty() ? "" : ", ", container.name);
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              cat("the pod has no container ", printable(name), "; it has ", known));
}

/// The annotations for one container of the manifest's only pod.
Result<AnnotationList> container_annotations(const Manifest& manifest, const Options& options) {
  const auto has_pod = [](const Document& document) { return document.pod_path.has_value(); };
  const auto found = std::ranges::find_if(manifest.documents, has_pod);
  if (std::ranges::count_if(manifest.documents, has_pod) != 1)
    return fail(ErrorCode::kInvalidArgument, "expected a manifest with exactly one pod");
  const auto pod = pod_of(*found);
  if (!pod) return fail(pod.error());
  AnnotationList list = pod_annotations(*pod);
  if (options.container.empty()) return list;
  if (auto status = check_container(*pod, options.container); !status)
    return fail(std::move(status).error());
  list.emplace_back(kContainerKey, options.container);
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
