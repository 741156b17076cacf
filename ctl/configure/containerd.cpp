#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "common/base/text.h"
#include "ctl/configure/lines.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

/// Of containerd's own default of "imports", beside config.toml.
constexpr std::string_view kContainerdDropIns = "/conf.d";
constexpr std::string_view kHandlerDropIn = "/50-podqos.toml";
constexpr std::string_view kContainerdNriDropIn = "/60-podqos-nri.toml";
constexpr std::string_view kNriPlugin = "io.containerd.nri.v1.nri";
/// The plugin that starts pods, in a configuration of version 2 and 3.
constexpr std::string_view kCriPlugin2 = "io.containerd.grpc.v1.cri";
constexpr std::string_view kCriPlugin3 = "io.containerd.cri.v1.runtime";
/// From this version on files that "imports" names are merged table by table; before it a plugin's
/// table in one of them replaces that of config.toml (containerd #5837).
constexpr Version kMerging{.major = 2, .minor = 0};
/// From this version on a configuration may be of version 4, with the tables of version 3.
constexpr Version kFormat4{.major = 2, .minor = 3};

bool merges(const Setup& setup) {
  return setup.version >= kMerging;
}

std::string directory_of(const std::string& file) {
  return std::filesystem::path{file}.parent_path();
}

/// What an import means, as containerd cleans it: entries have no "//".
std::filesystem::path pattern_of(const TomlValue& imports, const std::string& import) {
  return (std::filesystem::path{directory_of(imports.file)} / import).lexically_normal();
}

/// Whether containerd imports a file of this name.
bool is_imported(const Setup& setup, const std::string& path) {
  return std::ranges::any_of(setup.documents, [&](const TomlDocument& document) {
    const TomlValue imports = document.at("imports");
    const auto all = imports.strings().value_or(std::vector<std::string>{});
    return std::ranges::any_of(all, [&](const std::string& each) {
      return ::fnmatch(pattern_of(imports, each).c_str(), path.c_str(), FNM_PATHNAME) == 0;
    });
  });
}

/// Adds the files that an import names to `paths`.
/// @return the directory if the import is every *.toml in it, else ""
Result<std::string> add_import(const EngineFiles& files, const TomlValue& imports,
                               const std::string& import, std::vector<std::string>& paths) {
  const auto pattern = pattern_of(imports, import);
  std::string parent = pattern.parent_path();
  if (!pattern.has_filename() || parent.find_first_of("*?[\\") != std::string::npos)
    return refuse(imports.place, ": cannot follow the import \"", printable(import), "\"");
  PODQOS_ASSIGN(const auto entries, files.list(parent));
  for (const std::string& entry : entries)
    if (::fnmatch(pattern.c_str(), entry.c_str(), FNM_PATHNAME) == 0 &&
        std::ranges::find(paths, entry) == paths.end())
      paths.push_back(entry);
  if (pattern.filename() != "*.toml" && pattern.filename() != "*") parent.clear();
  return parent;
}

/// Reads config.toml and all that it and its imports import.
/// @return the first directory of which config.toml imports every *.toml; "" if there is none
Result<std::string> read_containerd(Setup& setup) {
  std::string drop_ins;
  std::vector<std::string> paths = {setup.config_file()};
  for (std::size_t next = 0; next < paths.size(); ++next) {
    PODQOS_TRY(read_others(setup, paths[next]));
    const TomlValue imports = setup.documents.back().at("imports");
    const auto patterns = imports.strings();
    if (imports && !patterns) return refuse(imports.place, ": imports is not a list");
    for (const std::string& each : patterns.value_or(std::vector<std::string>{})) {
      PODQOS_ASSIGN(const auto directory, add_import(setup.files, imports, each, paths));
      if (next == 0 && drop_ins.empty()) drop_ins = directory;
    }
  }
  return drop_ins;
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
Result<std::int64_t> format_of(const Setup& setup) {
  const bool exists = setup.files.exists(setup.config_file());
  // NRI is on, and needs no table of any version.
  if (merges(setup) && (!exists || setup.method == Method::kNri)) return 3;
  if (!exists) return 2;
  const TomlValue version = setup.documents.front().at("version");
  const std::int64_t format = version.node.value_exact<std::int64_t>().value_or(1);
  if (format == 1)
    return refuse(version.place,
                  ": config version 1 is not supported: run `containerd config migrate`, "
                  "or write \"version = 2\" into the first line of a file without tables");
  const std::int64_t newest = !merges(setup) ? 2 : setup.version >= kFormat4 ? 4 : 3;
  if (format >= 2 && format <= newest) return format;
  return refuse(version.place, ": unsupported config version ", format, " (containerd ",
                format_version(*setup.version), ": ", newest == 2 ? "2" : cat("2 to ", newest),
                "); if its tables have the same names, ",
                by_hand(handler_lines(newest, false, true)));
}

/// Fails if disabled_plugins switches one of these off.
Status check_enabled(const Setup& setup, std::initializer_list<std::string_view> names,
                     std::string_view remedy) {
  for (const TomlDocument& document : setup.documents) {
    const TomlValue disabled = document.at("disabled_plugins");
    for (const std::string_view name : names)
      if (disabled.lists(name))
        return refuse(disabled.place, ": \"", name, "\" is disabled", remedy);
  }
  return {};
}

/// Plans these lines in a file of podqos's own in `drop_ins` if containerd merges one, else as a
/// block in config.toml; there, too, if it stands there already.
Status add_containerd_lines(Setup& setup, std::int64_t format, const std::string& drop_ins,
                            Lines lines) {
  const bool is_nri = setup.method == Method::kNri;
  lines.block = kMethods.at(static_cast<std::size_t>(setup.method));
  lines.base = cat("version = ", format, "\n");
  PODQOS_ASSIGN(const auto config, setup.files.read(setup.config_file()));
  const bool is_there = config.text.contains(cat("# podqos: begin ", lines.block));
  lines.is_own = !drop_ins.empty() && (is_nri || merges(setup)) && !is_there;
  lines.path = lines.is_own ? cat(drop_ins, is_nri ? kContainerdNriDropIn : kHandlerDropIn)
                            : setup.config_file();
  lines.has_backup = !lines.is_own && !is_imported(setup, cat(lines.path, kBackupSuffix));
  return add_lines(setup, lines);
}

Status plan_handler(Setup& setup, std::int64_t format, const std::string& drop_ins) {
  const std::string cri = cat("plugins/", format == 2 ? kCriPlugin2 : kCriPlugin3, "/containerd");
  const std::string handler = cat(cri, "/runtimes/", kHandler);
  // Without a word about it, the default handler does not use systemd's driver.
  const TomlValue name = setup.at(cat(cri, "/default_runtime_name"));
  const TomlValue driver =
      setup.at(cat(cri, "/runtimes/", name ? name.text() : "runc", "/options/SystemdCgroup"));
  const bool with_runc = format == 2 && !setup.at(cat(cri, "/runtimes"));
  const std::string lines = handler_lines(format, with_runc, driver.flag().value_or(false));
  // containerd 1.x: an imported table of CRI is the whole one.
  const TomlValue last = setup.at(cat("plugins/", kCriPlugin2));
  if (!merges(setup) && last && last.file != setup.config_file() && !setup.at(handler))
    return refuse(last.place, ": replaces table \"", kCriPlugin2, "\" of ", setup.config_file(),
                  " (containerd 1.x does not merge imports); ", by_hand(lines));
  return add_containerd_lines(
      setup, format, drop_ins,
      {.text = lines,
       .what = cat(setup.set_default ? "default " : "", "handler \"podqos\""),
       .table = handler,
       .default_runtime = DefaultRuntime{
           .path = cat(cri, "/default_runtime_name"),
           .header = cat("plugins.\"", format == 2 ? kCriPlugin2 : kCriPlugin3, "\".containerd"),
           .runtimes = cat(cri, "/runtimes"),
           .program = "/options/BinaryName",
           .built_in = "runc"}});
}

Status plan_containerd_nri(Setup& setup, std::int64_t format, const std::string& drop_ins) {
  PODQOS_TRY(check_enabled(setup, {"nri", kNriPlugin}, ": remove it from disabled_plugins"));
  const std::string path = cat("plugins/", kNriPlugin);
  const TomlValue table = setup.at(path);
  // containerd 1.x: an imported table is the whole one.
  if (table && !merges(setup))
    std::erase_if(setup.documents, [&](const auto& each) { return each.file != table.file; });
  PODQOS_TRY(check_nri_switch(setup, path, "disable", false, !table || merges(setup)));
  PODQOS_TRY(check_nri_switch(setup, path, "disable_connections", false));
  if (table || merges(setup)) return note_nri(setup, table);
  return add_containerd_lines(
      setup, format, drop_ins,
      {.text = std::string{kContainerdNri}, .what = "table for NRI", .table = path});
}

Status plan_containerd_removal(Setup& setup, const std::string& drop_ins) {
  for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3})
    PODQOS_TRY(
        check_not_default(setup, cat("plugins/", plugin, "/containerd/default_runtime_name")));
  // The first is where containerd's own default looks, whatever "imports" says today.
  const std::string config = setup.config_file();
  const std::string usual = cat(directory_of(config), kContainerdDropIns);
  const std::set<std::string> directories = {usual, drop_ins.empty() ? usual : drop_ins};
  PODQOS_TRY(remove_lines(setup, config));
  for (const std::string& directory : directories)
    for (const std::string_view name : {kHandlerDropIn, kContainerdNriDropIn})
      PODQOS_TRY(remove_lines(setup, cat(directory, name)));
  return {};
}

/// Checks which annotations of pods a handler that calls the wrapper passes on; containerd compares
/// them by path.Match.
/// @note internal/cri/util/util.go PassthroughAnnotations
void check_annotations(const TomlValue& handler, const TomlValue& patterns, EngineSettings& found) {
  const auto passes = [&](const char* annotation) {
    const auto all = patterns.strings().value_or(std::vector<std::string>{});
    return std::ranges::any_of(all, [&](const std::string& each) {
      return ::fnmatch(each.c_str(), annotation, FNM_PATHNAME) == 0;
    });
  };
  const char* const wanted = "write pod_annotations = [\"podqos.io/*\"] there";
  if (!passes("podqos.io/pod"))
    found.checks.push_back({"containerd", "annotations", Outcome::kProblem,
                            cat((patterns ? patterns : handler).place,
                                ": pod_annotations keeps podqos.io annotations from containers"),
                            wanted});
  else if (passes("io.kubernetes.cri.sandbox-uid"))
    found.checks.push_back(
        {"containerd", "annotations", Outcome::kProblem,
         cat(patterns.place, ": pod_annotations lets pods write annotations of the engine"),
         wanted});
}

/// Looks at the handlers that a document's owner wrote.
/// @param cri  path of the table of the plugin for pods
void inspect_handlers(const TomlDocument& document, const std::string& cri, EngineSettings& found) {
  const toml::table* const runtimes = document.at(cat(cri, "/runtimes")).node.as_table();
  if (runtimes == nullptr) return;
  for (const auto& [key, value] : *runtimes) {
    const std::string path = cat(cri, "/runtimes/", key.str());
    if (document.at(cat(path, "/options/BinaryName")).text() == kWrapperPath)
      check_annotations(document.at(path), document.at(cat(path, "/pod_annotations")), found);
  }
}

}  // namespace

Result<EngineSettings> inspect_containerd(Setup& setup) {
  setup.documents.clear();
  PODQOS_TRY(read_containerd(setup));
  EngineSettings found{.driver = core::Driver::kCgroupfs};
  for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3}) {
    const std::string cri = cat("plugins/", plugin, "/containerd");
    const std::string key = cat(cri, "/default_runtime_name");
    const TomlValue name = setup.at(key);
    const std::string handler = cat(cri, "/runtimes/", name ? name.text() : "runc", "/options/");
    if (setup.at(cat(handler, "SystemdCgroup")).flag() == true)
      found.driver = core::Driver::kSystemd;
    if (is_default(setup, key) || setup.at(cat(handler, "BinaryName")).text() == kWrapperPath)
      found.is_default = true;
    for (const TomlDocument& document : setup.documents)
      inspect_handlers(document, cri, found);
  }
  return found;
}

Status plan_containerd(Setup& setup) {
  PODQOS_ASSIGN(const auto drop_ins, read_containerd(setup));
  if (setup.undo) return plan_containerd_removal(setup, drop_ins);
  if (!setup.version)
    return refuse("containerd's version is unknown; set it with --engine-version");
  // Docker's package of containerd comes so.
  if (auto enabled = check_enabled(
          setup, {"cri", kCriPlugin2, kCriPlugin3},
          ", and this containerd starts no pods: remove it from disabled_plugins, or for Docker "
          "run `podqosctl configure docker`");
      !enabled)
    return fail(ErrorCode::kUnsupported, std::move(enabled).error().message);
  PODQOS_ASSIGN(const auto format, format_of(setup));
  return setup.method == Method::kNri ? plan_containerd_nri(setup, format, drop_ins)
                                      : plan_handler(setup, format, drop_ins);
}

}  // namespace podqos::ctl
