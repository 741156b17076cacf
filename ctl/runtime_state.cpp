#include "ctl/runtime_state.h"

#include <span>
#include <utility>

#include <glob.h>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/codec/json_place.h"
#include "common/sys/directory.h"

namespace podqos::ctl {
namespace {

constexpr const char* kFiles =
    "/run/{runc,crun,youki,containerd/runc/*,docker/runtime-*/*}/*/{state.json,status}";
constexpr std::size_t kMaxState = std::size_t{1} << 20U;

/// A positive integer under the first of the names that is there.
std::optional<std::int64_t> positive_in(const codec::JsonPlace& state,
                                        std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto number = state.integer(name, 1); number && *number) return *number;
  return std::nullopt;
}

/// runc has it among the labels of the configuration.
std::string bundle_in(const codec::JsonPlace& state) {
  std::string bundle;
  if (state.read_text("bundle", bundle) && !bundle.empty()) return bundle;
  constexpr std::string_view kLabel = "bundle=";
  const codec::JsonNode* labels = state.node()->at("/config/labels");
  for (const codec::JsonNode& label :
       labels == nullptr ? std::span<const codec::JsonNode>{} : std::span{labels->children})
    if (label.text.starts_with(kLabel)) return std::string{label.text.substr(kLabel.size())};
  return bundle;
}

}  // namespace

std::optional<RuntimeContainer> parse_runtime_state(std::string id, std::string_view text) {
  const auto tree = codec::parse_json_tree(text, {.bytes = kMaxState});
  if (!tree) return std::nullopt;
  const codec::JsonPlace state{*tree};
  const auto pid = positive_in(state, {"pid", "init_process_pid"});
  const auto start_time = positive_in(state, {"process-start-time", "init_process_start"});
  std::string bundle = bundle_in(state);
  if (!pid || !bundle.starts_with('/')) return std::nullopt;
  return RuntimeContainer{
      .id = std::move(id),
      .bundle = std::move(bundle),
      .pid = Pid{*pid},
      .start_time = start_time ? std::optional{StartTime{*start_time}} : std::nullopt};
}

std::vector<RuntimeContainer> read_runtime_states(const std::set<std::string, std::less<>>& known,
                                                  std::size_t most) {
  std::vector<RuntimeContainer> found;
  glob_t files{};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): podqosctl has one thread
  if (::glob(kFiles, GLOB_BRACE | GLOB_NOSORT, nullptr, &files) == 0) {
    std::set<std::string_view> seen;  // a directory may have both files
    for (const char* path : std::span{files.gl_pathv, files.gl_pathc}) {
      if (found.size() == most) break;
      const std::string_view directory = parent_of(path);
      if (known.contains(leaf_of(directory))) continue;
      const auto opened = sys::Directory::open(std::string{directory});
      const auto text = opened ? opened->read_file(leaf_of(path), kMaxState) : fail(opened.error());
      auto state =
          text ? parse_runtime_state(std::string{leaf_of(directory)}, *text) : std::nullopt;
      if (state && seen.insert(directory).second) found.push_back(*std::move(state));
    }
  }
  ::globfree(&files);
  return found;
}

}  // namespace podqos::ctl
