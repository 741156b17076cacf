#include "ctl/configure/containerd.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "common/base/text.h"
#include "ctl/configure/block.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"

namespace podqos::ctl {
namespace {

constexpr const char* kContainerdDirectory = "/etc/containerd";
constexpr const char* kContainerdConfig = "/etc/containerd/config.toml";
constexpr const char* kContainerdDropIns = "/etc/containerd/conf.d";
constexpr std::string_view kHandlerDropIn = "50-podqos.toml";
constexpr std::string_view kContainerdNriDropIn = "60-podqos-nri.toml";
constexpr std::string_view kNriPlugin = "io.containerd.nri.v1.nri";
/// The plugin that starts pods, in a configuration of version 2 and 3.
constexpr std::string_view kCriPlugin2 = "io.containerd.grpc.v1.cri";
constexpr std::string_view kCriPlugin3 = "io.containerd.cri.v1.runtime";
/// From this version on files that "imports" names are merged table by table; before it a plugin's
/// table in one of them replaces that of config.toml (containerd #5837).
constexpr Version kMerging{.major = 2, .minor = 0};
/// From this version on a configuration may be of version 4, with the tables of version 3.
constexpr Version kFormat4{.major = 2, .minor = 3};
/// containerd reads imports of imports; this many files are nobody's intention.
constexpr std::size_t kMaxImports = 256;

constexpr std::array<std::string_view, 2> kContainerdBlocks = {"wrapper", "nri"};

/// containerd's configuration as its owner wrote it, without the block that is to be planned.
struct ContainerdFiles {
  Version version;
  std::int64_t format = 0;                       ///< "version"
  bool exists = false;                           ///< config.toml
  std::vector<TomlDocument> documents;           ///< config.toml, then what it imports, in order
  std::optional<std::string> drop_in_directory;  ///< the first that "imports" reads *.toml from

  [[nodiscard]] const TomlDocument& main() const { return documents.front(); }
  [[nodiscard]] TomlPath cri() const {
    return {"plugins", std::string{format == 2 ? kCriPlugin2 : kCriPlugin3}};
  }
};

/// "DIRECTORY" and "*.toml" of an import; relative ones are relative to config.toml.
std::pair<std::string, std::string> split_import(const std::string& pattern) {
  const std::string path =
      pattern.starts_with('/') ? pattern : cat(kContainerdDirectory, "/", pattern);
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

/// The files that the imports of a document name.
Result<std::vector<std::string>> expand_imports(const TomlDocument& document,
                                                const ConfigSource& source) {
  std::vector<std::string> files;
  const nlohmann::json* imports = document.at({"imports"});
  if (imports == nullptr) return files;
  if (!imports->is_array())
    return fail(ErrorCode::kInvalidArgument,
                cat(document.place_of({"imports"}), ": imports is not a list"));
  for (const nlohmann::json& each : *imports) {
    const auto [directory, name] =
        split_import(each.is_string() ? each.get<std::string>() : std::string{});
    if (name.empty() || is_pattern(directory)) {
      return fail(ErrorCode::kUnsupported,
                  cat(document.place_of({"imports"}), ": cannot follow the import ",
                      printable(each.dump())));
    }
    const auto entries = source.list(directory);
    if (!entries) return fail(entries.error());
    for (const std::string& entry : *entries)
      if (::fnmatch(name.c_str(), entry.c_str(), 0) == 0)
        files.push_back(cat(directory, "/", entry));
  }
  return files;
}

/// Reads config.toml and all that it imports into `found`.
Status read_all_documents(const ConfigSource& source, ContainerdFiles& found) {
  std::set<std::string> seen = {kContainerdConfig};
  std::vector<std::string> waiting = {kContainerdConfig};
  while (!waiting.empty()) {
    const std::string path = std::move(waiting.front());
    waiting.erase(waiting.begin());
    auto document = read_others(path, kContainerdBlocks, source);
    if (!document) return fail(std::move(document).error());
    auto imports = expand_imports(*document, source);
    if (!imports) return fail(std::move(imports).error());
    for (std::string& each : *imports)
      if (seen.insert(each).second) waiting.push_back(std::move(each));
    found.documents.push_back(std::move(*document));
    if (seen.size() > kMaxImports)
      return fail(ErrorCode::kTooLarge,
                  cat(kContainerdConfig, ": imports more than ", kMaxImports, " files"));
  }
  return {};
}

/// The first directory from which config.toml reads every *.toml.
std::optional<std::string> find_drop_in_directory(const TomlDocument& main) {
  const nlohmann::json* imports = main.at({"imports"});
  if (imports == nullptr || !imports->is_array()) return std::nullopt;
  for (const nlohmann::json& each : *imports) {
    if (!each.is_string()) continue;
    auto [directory, name] = split_import(each.get<std::string>());
    if (!is_pattern(directory) && (name == "*.toml" || name == "*")) return directory;
  }
  return std::nullopt;
}

/// "version" of config.toml, within what this containerd and podqos know.
Result<std::int64_t> format_of(const ContainerdFiles& found, Way way) {
  const bool merges = found.version >= kMerging;
  if (!found.exists) return merges ? 3 : 2;
  // NRI is on, and needs no table of any version.
  if (merges && way == Way::kNri) return 3;
  const nlohmann::json* version = found.main().at({"version"});
  const std::int64_t format =
      version != nullptr && version->is_number_integer() ? version->get<std::int64_t>() : 1;
  const std::string place = found.main().place_of({"version"});
  if (version == nullptr || format == 1) {
    return fail(ErrorCode::kUnsupported,
                cat(place,
                    ": a configuration without \"version = 2\" is of version 1, whose tables "
                    "have other names; write \"version = 2\" into its first line, after "
                    "`containerd config migrate` where it has tables"));
  }
  const std::int64_t newest = !merges ? 2 : found.version >= kFormat4 ? 4 : 3;
  if (format == 2 || (format > 2 && format <= newest)) return format;
  const std::string body = format_containerd_handler({.format = merges ? 3 : 2});
  return fail(
      ErrorCode::kUnsupported,
      cat(place, ": version = ", format, " is none that podqos knows for containerd ",
          format_version(found.version), "; if its tables are still named so, add these lines",
          by_hand(body).substr(std::string_view{"; add these lines"}.size())));
}

/// The first of these plugins that disabled_plugins switches off, with its place; nullopt if none.
std::optional<std::string> find_disabled(const ContainerdFiles& found,
                                         const std::vector<std::string_view>& names) {
  const TomlPath key = {"disabled_plugins"};
  for (const TomlDocument& document : found.documents) {
    for (const std::string_view name : names)
      if (lists(document, key, name))
        return cat(document.place_of(key), ": \"", name, "\" is switched off");
  }
  return std::nullopt;
}

/// Fails if containerd starts no pods. Docker's package of containerd comes so.
Status check_cri(const ContainerdFiles& found) {
  const auto disabled = find_disabled(found, {"cri", kCriPlugin2, kCriPlugin3});
  if (!disabled) return {};
  return fail(ErrorCode::kUnsupported,
              cat(*disabled,
                  ", so that this containerd starts no pods: take it out of disabled_plugins by "
                  "hand, or for Docker run `podqosctl configure docker`"));
}

Result<ContainerdFiles> read_containerd(const ConfigureRequest& request,
                                        const ConfigSource& source) {
  if (!request.version)
    return fail(ErrorCode::kInvalidArgument,
                "containerd's version is not known; give it with --engine-version");
  ContainerdFiles found;
  found.version = *request.version;
  const auto state = source.read(kContainerdConfig);
  if (!state) return fail(state.error());
  found.exists = state->kind != FileState::Kind::kAbsent;
  if (auto read = read_all_documents(source, found); !read) return fail(std::move(read).error());
  if (auto enabled = check_cri(found); !enabled) return fail(std::move(enabled).error());
  auto format = format_of(found, request.way);
  if (!format) return fail(std::move(format).error());
  found.format = *format;
  found.drop_in_directory = find_drop_in_directory(found.main());
  return found;
}

/// Whether containerd's default handler uses systemd's driver; without a word about it, it does
/// not.
bool uses_systemd(const ContainerdFiles& found) {
  const TomlPath containerd = below(found.cri(), {"containerd"});
  const TomlDocument* naming =
      last_with(found.documents, below(containerd, {"default_runtime_name"}));
  const std::string name =
      naming == nullptr ? "runc" : text_at(*naming, below(containerd, {"default_runtime_name"}));
  const TomlPath driver = below(containerd, {"runtimes", name, "options", "SystemdCgroup"});
  const TomlDocument* document = last_with(found.documents, driver);
  const nlohmann::json* value = document == nullptr ? nullptr : document->at(driver);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

/// containerd 1.x: an imported table of CRI is the whole one.
Status check_imports(const ContainerdFiles& found, std::string_view plugin, std::string_view body) {
  if (found.version >= kMerging) return {};
  const TomlPath table = {"plugins", std::string{plugin}};
  for (std::size_t i = 1; i < found.documents.size(); ++i) {
    const TomlDocument& document = found.documents[i];
    if (document.at(table) == nullptr) continue;
    return fail(
        ErrorCode::kConflict,
        cat(document.place_of(table), ": containerd 1.x takes this file's \"", plugin,
            "\" for the whole of it, and forgets that of ", kContainerdConfig, by_hand(body)));
  }
  return {};
}

/// Plans a block in a drop-in if there can be one, else in config.toml; there, too, if it stands
/// there already.
Result<ConfigurePlan> plan_containerd_block(const ContainerdFiles& found, Way way,
                                            const std::string& body, const ConfigSource& source) {
  const auto config = source.read(kContainerdConfig);
  if (!config) return fail(config.error());
  const auto there = find_block(config->text, format_way(way), kContainerdConfig);
  if (!there) return fail(there.error());
  const std::string version = cat("version = ", found.format, "\n");
  TomlBlock block{.path = kContainerdConfig,
                  .name = format_way(way),
                  .body = body,
                  .what = way == Way::kNri ? "table for NRI" : "handler \"podqos\"",
                  .base = version,
                  .drop_in = false};
  const bool merges = way == Way::kNri || found.version >= kMerging;
  if (found.drop_in_directory && merges && !*there) {
    block.path = cat(*found.drop_in_directory, "/",
                     way == Way::kNri ? kContainerdNriDropIn : kHandlerDropIn);
    block.body = cat(version, "\n", body);
    block.base.clear();
    block.drop_in = true;
  }
  auto change = plan_block(block, source);
  if (!change) return fail(std::move(change).error());
  ConfigurePlan plan;
  plan.registered_in.push_back(block.path);
  if (*change) plan.changes.push_back(std::move(**change));
  return plan;
}

Result<ConfigurePlan> plan_handler(const ContainerdFiles& found, const ConfigSource& source) {
  const TomlPath runtimes = below(found.cri(), {"containerd", "runtimes"});
  const auto there =
      registered_by_hand(found.documents, below(runtimes, {kHandler}), {"options", "BinaryName"});
  if (!there) return fail(there.error());
  if (*there) {
    const TomlPath handler = below(runtimes, {kHandler});
    const TomlDocument* document = last_with(found.documents, handler);
    return nothing_to_do(already_there(document->place_of(handler)), document->file());
  }
  const std::string body = format_containerd_handler(
      {.format = found.format,
       .with_runc = found.format == 2 && last_with(found.documents, runtimes) == nullptr,
       .systemd_driver = uses_systemd(found)});
  if (auto imports = check_imports(found, kCriPlugin2, body); !imports)
    return fail(std::move(imports).error());
  return plan_containerd_block(found, Way::kWrapper, body, source);
}

/// The owner's file that switches NRI on; "" if none has its table. Fails where NRI is off.
Result<std::string> find_containerd_nri(const ContainerdFiles& found) {
  const TomlPath table = {"plugins", std::string{kNriPlugin}};
  const TomlDocument* document = last_with(found.documents, table);
  if (document == nullptr) return std::string{};
  const bool merges = found.version >= kMerging;
  for (const auto& [key, unset] : {std::pair{"disable", !merges}, {"disable_connections", false}}) {
    const TomlPath path = below(table, {key});
    const nlohmann::json* value = document->at(path);
    const bool off = value == nullptr ? unset : !value->is_boolean() || value->get<bool>();
    if (!off) continue;
    return fail(ErrorCode::kConflict, cat(document->place_of(path), ": NRI is off; write \"", key,
                                          " = false\" into this table by hand"));
  }
  return document->file();
}

Result<ConfigurePlan> plan_containerd_nri(const ContainerdFiles& found,
                                          const ConfigSource& source) {
  if (const auto disabled = find_disabled(found, {"nri", kNriPlugin}))
    return fail(ErrorCode::kUnsupported,
                cat(*disabled, ": take it out of disabled_plugins by hand"));
  const auto file = find_containerd_nri(found);
  if (!file) return fail(file.error());
  if (!file->empty() || found.version >= kMerging)
    return nothing_to_do(
        cat("NRI is on in this containerd; ", kContainerdConfig, " needs no change"), *file);
  return plan_containerd_block(found, Way::kNri, format_containerd_nri(), source);
}

}  // namespace

std::string format_containerd_handler(const ContainerdHandler& handler) {
  const std::string table = handler.format == 2
                                ? cat("plugins.\"", kCriPlugin2, "\".containerd.runtimes")
                                : cat("plugins.'", kCriPlugin3, "'.containerd.runtimes");
  // containerd 1.x knows only handlers that are named as soon as one is.
  const std::string runc =
      cat("[", table, ".runc]\n  runtime_type = \"io.containerd.runc.v2\"\n\n");
  return cat(handler.with_runc ? runc : "", "[", table, ".", kHandler,
             "]\n"
             "  runtime_type = \"io.containerd.runc.v2\"\n"
             "  pod_annotations = [\"podqos.io/*\"]\n"
             "  container_annotations = [\"podqos.io/*\"]\n"
             "\n  [",
             table, ".", kHandler, ".options]\n    BinaryName = \"", kWrapperPath,
             "\"\n    SystemdCgroup = ", handler.systemd_driver ? "true" : "false", "\n");
}

std::string format_containerd_nri() {
  return cat("[plugins.\"", kNriPlugin,
             "\"]\n"
             "  disable = false\n"
             "  disable_connections = false\n"
             "  socket_path = \"/var/run/nri/nri.sock\"\n");
}

Result<ConfigurePlan> plan_containerd(const ConfigureRequest& request, const ConfigSource& source) {
  const auto found = read_containerd(request, source);
  if (!found) return fail(found.error());
  return request.way == Way::kNri ? plan_containerd_nri(*found, source)
                                  : plan_handler(*found, source);
}

Result<ConfigurePlan> plan_containerd_removal(const ConfigSource& source) {
  ContainerdFiles found;
  if (auto read = read_all_documents(source, found); !read) return fail(std::move(read).error());
  for (const TomlDocument& document : found.documents) {
    for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3}) {
      const auto free = check_not_default(
          document, {"plugins", std::string{plugin}, "containerd", "default_runtime_name"});
      if (!free) return fail(free.error());
    }
  }
  std::vector<BlockRemoval> removals = {{.path = kContainerdConfig,
                                         .names = kContainerdBlocks,
                                         .bases = {"version = 2\n", "version = 3\n"}}};
  // The second is where containerd's own default looks, whatever "imports" says today.
  std::set<std::string> directories = {kContainerdDropIns};
  if (const auto named = find_drop_in_directory(found.main())) directories.insert(*named);
  for (const std::string& directory : directories)
    for (const std::string_view name : {kHandlerDropIn, kContainerdNriDropIn})
      removals.push_back(
          {.path = cat(directory, "/", name), .names = kContainerdBlocks, .bases = {}});
  ConfigurePlan plan;
  plan.registered_in.assign(directories.begin(), directories.end());
  plan.registered_in.emplace_back(kContainerdConfig);
  for (const BlockRemoval& removal : removals)
    if (auto done = plan_block_removal(removal, source, plan); !done)
      return fail(std::move(done).error());
  return plan;
}

}  // namespace podqos::ctl
