#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "common/base/text.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "podqos_examples.h"

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

/// containerd's configuration as its owner wrote it, without podqos's lines.
struct ContainerdFiles {
  Version version;
  std::int64_t format = 0;                       ///< "version"
  bool exists = false;                           ///< config.toml
  std::vector<TomlDocument> documents;           ///< config.toml, then what it imports, in order
  std::optional<std::string> drop_in_directory;  ///< the first that "imports" reads *.toml from

  [[nodiscard]] const TomlDocument& main() const { return documents.front(); }
  [[nodiscard]] bool merges() const { return version >= kMerging; }
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
/// @param directory  is set to the first of which every *.toml is read, unless it is set already
Result<std::vector<std::string>> expand_imports(const TomlDocument& document,
                                                const ConfigSource& source,
                                                std::optional<std::string>& directory) {
  std::vector<std::string> files;
  const toml::node* imports = document.at({"imports"});
  if (imports == nullptr) return files;
  const std::string place = document.place_of({"imports"});
  if (!imports->is_array())
    return fail(ErrorCode::kInvalidArgument, cat(place, ": imports is not a list"));
  for (const toml::node& each : *imports->as_array()) {
    const std::string pattern = each.value_exact<std::string>().value_or("");
    const auto [parent, name] = split_import(pattern);
    if (name.empty() || is_pattern(parent))
      return fail(ErrorCode::kUnsupported,
                  cat(place, ": cannot follow the import \"", printable(pattern), "\""));
    if (!directory && (name == "*.toml" || name == "*")) directory = parent;
    PODQOS_ASSIGN(const auto entries, source.list(parent));
    for (const std::string& entry : entries)
      if (::fnmatch(name.c_str(), entry.c_str(), 0) == 0) files.push_back(cat(parent, "/", entry));
  }
  return files;
}

/// Reads config.toml and all that it imports into `found`.
Status read_all_documents(const ConfigSource& source, ContainerdFiles& found) {
  std::vector<std::string> paths = {kContainerdConfig};
  std::optional<std::string> of_imported;  // podqos's drop-in is one that config.toml imports
  for (std::size_t next = 0; next < paths.size(); ++next) {
    PODQOS_ASSIGN(auto document, read_others(paths[next], source));
    PODQOS_ASSIGN(
        const auto imports,
        expand_imports(document, source, next == 0 ? found.drop_in_directory : of_imported));
    for (const std::string& each : imports)
      if (std::ranges::find(paths, each) == paths.end()) paths.push_back(each);
    if (paths.size() > kMaxImports)
      return fail(ErrorCode::kTooLarge,
                  cat(kContainerdConfig, ": imports more than ", kMaxImports, " files"));
    found.documents.push_back(std::move(document));
  }
  return {};
}

/// The handler's tables, as examples/containerd has them.
/// @param with_runc  containerd 1.x knows only handlers that are named as soon as one is
std::string handler_lines(std::int64_t format, bool with_runc, bool systemd_driver) {
  constexpr std::string_view kSystemd = "SystemdCgroup = true";
  std::string text{format == 2 ? kContainerdHandler2 : kContainerdHandler3};
  if (!with_runc) text.erase(0, text.rfind('[', text.find(cat(".", kHandler, "]"))));
  if (!systemd_driver) text.replace(text.find(kSystemd), kSystemd.size(), "SystemdCgroup = false");
  return text;
}

/// "version" of config.toml, within what this containerd and podqos know.
Result<std::int64_t> format_of(const ContainerdFiles& found, Method method) {
  if (!found.exists) return found.merges() ? 3 : 2;
  // NRI is on, and needs no table of any version.
  if (found.merges() && method == Method::kNri) return 3;
  const toml::node* version = found.main().at({"version"});
  const std::int64_t format =
      version == nullptr ? 1 : version->value_exact<std::int64_t>().value_or(1);
  const std::string place = found.main().place_of({"version"});
  if (format == 1)
    return fail(ErrorCode::kUnsupported,
                cat(place,
                    ": config version 1 is not supported: run `containerd config migrate`, "
                    "or write \"version = 2\" into the first line of a file without tables"));
  const std::int64_t newest = !found.merges() ? 2 : found.version >= kFormat4 ? 4 : 3;
  if (format >= 2 && format <= newest) return format;
  return fail(ErrorCode::kUnsupported,
              cat(place, ": unsupported config version ", format, " (containerd ",
                  format_version(found.version), ": ", newest == 2 ? "2" : cat("2 to ", newest),
                  "); if its tables have the same names",
                  by_hand(handler_lines(found.merges() ? 3 : 2, false, true)).substr(1)));
}

/// The first of these plugins that disabled_plugins switches off, with its place; nullopt if none.
std::optional<std::string> find_disabled(const ContainerdFiles& found,
                                         const std::vector<std::string_view>& names) {
  const TomlPath key = {"disabled_plugins"};
  for (const TomlDocument& document : found.documents) {
    for (const std::string_view name : names)
      if (document.lists(key, name))
        return cat(document.place_of(key), ": \"", name, "\" is disabled");
  }
  return std::nullopt;
}

/// Fails if containerd starts no pods. Docker's package of containerd comes so.
Status check_cri(const ContainerdFiles& found) {
  const auto disabled = find_disabled(found, {"cri", kCriPlugin2, kCriPlugin3});
  if (!disabled) return {};
  return fail(ErrorCode::kUnsupported,
              cat(*disabled,
                  ", and this containerd starts no pods: remove it from disabled_plugins, "
                  "or for Docker run `podqosctl configure docker`"));
}

Result<ContainerdFiles> read_containerd(const ConfigureRequest& request,
                                        const ConfigSource& source) {
  if (!request.version)
    return fail(ErrorCode::kInvalidArgument,
                "containerd's version is unknown; set it with --engine-version");
  ContainerdFiles found;
  found.version = *request.version;
  PODQOS_ASSIGN(const auto state, source.read(kContainerdConfig));
  found.exists = state.kind != FileState::Kind::kAbsent;
  PODQOS_TRY(read_all_documents(source, found));
  PODQOS_TRY(check_cri(found));
  PODQOS_ASSIGN(found.format, format_of(found, request.method));
  return found;
}

/// Whether containerd's default handler uses systemd's driver; without a word about it, it does
/// not.
bool uses_systemd(const ContainerdFiles& found) {
  const TomlPath containerd = below(found.cri(), {"containerd"});
  const TomlPath key = below(containerd, {"default_runtime_name"});
  const TomlDocument* naming = last_with(found.documents, key);
  const std::string name = naming == nullptr ? "runc" : naming->text_at(key);
  const TomlPath driver = below(containerd, {"runtimes", name, "options", "SystemdCgroup"});
  const TomlDocument* document = last_with(found.documents, driver);
  return document != nullptr && document->flag_at(driver).value_or(false);
}

/// containerd 1.x: an imported table of CRI is the whole one.
Status check_imports(const ContainerdFiles& found, std::string_view lines) {
  const TomlPath table = {"plugins", std::string{kCriPlugin2}};
  const TomlDocument* last = last_with(found.documents, table);
  if (found.merges() || last == nullptr || last == &found.main()) return {};
  return fail(ErrorCode::kConflict,
              cat(last->place_of(table), ": replaces table \"", kCriPlugin2, "\" of ",
                  kContainerdConfig, " (containerd 1.x does not merge imports)", by_hand(lines)));
}

/// Plans a file of podqos's own if containerd merges one, else a block in config.toml; there, too,
/// if it stands there already.
Result<ConfigurePlan> plan_containerd_lines(const ContainerdFiles& found, Method method,
                                            const std::string& text, const ConfigSource& source) {
  const bool is_nri = method == Method::kNri;
  const std::string version = cat("version = ", found.format, "\n");
  Lines lines{.path = kContainerdConfig,
              .text = text,
              .what = is_nri ? "table for NRI" : "handler \"podqos\""};
  PODQOS_ASSIGN(const auto config, source.read(kContainerdConfig));
  PODQOS_ASSIGN(const auto blocks, find_blocks(config.text, kContainerdConfig));
  const bool is_there =
      std::ranges::find(blocks, format_method(method), &Block::name) != blocks.end();
  if (!found.drop_in_directory || is_there || !(is_nri || found.merges()))
    return plan_block(lines, format_method(method), version, source);
  lines.path = cat(*found.drop_in_directory, "/", is_nri ? kContainerdNriDropIn : kHandlerDropIn);
  lines.text = cat(version, "\n", text);
  return plan_own_file(lines, source);
}

Result<ConfigurePlan> plan_handler(const ContainerdFiles& found, const ConfigSource& source) {
  const TomlPath runtimes = below(found.cri(), {"containerd", "runtimes"});
  PODQOS_ASSIGN(auto there, registered_by_hand(found.documents, below(runtimes, {kHandler}),
                                               {"options", "BinaryName"}));
  if (there) return *std::move(there);
  const bool with_runc = found.format == 2 && last_with(found.documents, runtimes) == nullptr;
  const std::string lines = handler_lines(found.format, with_runc, uses_systemd(found));
  PODQOS_TRY(check_imports(found, lines));
  return plan_containerd_lines(found, Method::kWrapper, lines, source);
}

/// The owner's file that switches NRI on; "" if none has its table. Fails where NRI is off.
Result<std::string> find_containerd_nri(const ContainerdFiles& found) {
  const TomlPath table = {"plugins", std::string{kNriPlugin}};
  const TomlDocument* document = last_with(found.documents, table);
  if (document == nullptr) return std::string{};
  for (const auto& [key, unset] :
       {std::pair{"disable", !found.merges()}, {"disable_connections", false}}) {
    const TomlPath path = below(table, {key});
    const bool off = document->at(path) == nullptr ? unset : document->flag_at(path) != false;
    if (off)
      return fail(ErrorCode::kConflict, cat(document->place_of(path), ": NRI is off; write \"", key,
                                            " = false\" into this table by hand"));
  }
  return document->file;
}

Result<ConfigurePlan> plan_containerd_nri(const ContainerdFiles& found,
                                          const ConfigSource& source) {
  if (const auto disabled = find_disabled(found, {"nri", kNriPlugin}))
    return fail(ErrorCode::kUnsupported, cat(*disabled, ": remove it from disabled_plugins"));
  PODQOS_ASSIGN(const auto file, find_containerd_nri(found));
  if (!file.empty() || found.merges())
    return nothing_to_do(
        cat("NRI is on in this containerd; ", kContainerdConfig, " needs no change"), file);
  return plan_containerd_lines(found, Method::kNri, std::string{kContainerdNri}, source);
}

}  // namespace

Result<ConfigurePlan> plan_containerd(const ConfigureRequest& request, const ConfigSource& source) {
  PODQOS_ASSIGN(const auto found, read_containerd(request, source));
  return request.method == Method::kNri ? plan_containerd_nri(found, source)
                                        : plan_handler(found, source);
}

Result<ConfigurePlan> plan_containerd_removal(const ConfigSource& source) {
  ContainerdFiles found;
  PODQOS_TRY(read_all_documents(source, found));
  for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3})
    PODQOS_TRY(check_not_default(
        found.documents, {"plugins", std::string{plugin}, "containerd", "default_runtime_name"}));
  ConfigurePlan plan;
  PODQOS_TRY(
      plan_block_removal(kContainerdConfig, {"version = 2\n", "version = 3\n"}, source, plan));
  // The second is where containerd's own default looks, whatever "imports" says today.
  std::set<std::string> directories = {kContainerdDropIns};
  if (found.drop_in_directory) directories.insert(*found.drop_in_directory);
  for (const std::string& directory : directories) {
    for (const std::string_view name : {kHandlerDropIn, kContainerdNriDropIn})
      PODQOS_TRY(plan_own_removal(cat(directory, "/", name), source, plan));
    plan.registered_in.push_back(directory);
  }
  plan.registered_in.emplace_back(kContainerdConfig);
  return plan;
}

}  // namespace podqos::ctl
