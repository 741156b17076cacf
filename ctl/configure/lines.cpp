#include "ctl/configure/lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kMark = "# podqos: ";
constexpr std::string_view kBegin = "begin ";
constexpr std::string_view kEnd = "end ";
constexpr std::string_view kRemark =
    " (podqosctl configure writes these lines anew; --undo removes them)";

/// "begin NAME" or "end NAME" of a line that is a mark, perhaps with a remark behind it; another
/// text, or "", for any other line.
std::string_view mark_in(std::string_view line) {
  if (!line.starts_with(kMark)) return {};
  line.remove_prefix(kMark.size());
  return line.substr(0, line.find_first_of(" \r\n", line.find(' ') + 1));
}

/// How the first line ends.
std::string_view newline_of(std::string_view text) {
  return text.substr(0, text.find('\n')).ends_with('\r') ? "\r\n" : "\n";
}

/// The lines of a block, which end as those of the file do; "" without a name.
std::string format_block(std::string_view name, std::string_view body, std::string_view file) {
  std::string block;
  if (name.empty()) return block;
  for (const char c : cat(kMark, kBegin, name, kRemark, "\n", body, kMark, kEnd, name, "\n")) {
    if (c == '\n')
      block += newline_of(file);
    else
      block += c;
  }
  return block;
}

/// What the lines make of their file.
/// @param place  FILE:LINE of what they add a table to
Result<std::string> with_lines(const std::optional<std::string>& text, const Lines& lines,
                               const std::string& place) {
  if (lines.is_own && text && !text->contains(kMark))
    return refuse(lines.path, ":1: is not podqosctl's file, and is left as it is");
  PODQOS_ASSIGN(auto made,
                edit_blocks(text.value_or(lines.base), lines.path, lines.block, lines.text));
  const auto parsed = TomlDocument::parse(made, lines.path);
  if (parsed) return made;
  // The error's own line is one of podqos's, which the file does not have.
  const std::string& why = parsed.error().message;
  return refuse(place, ": no table can be added to what stands here: ",
                why.substr(why.find(": ", lines.path.size()) + 2));
}

/// Lets a removal restore the file's backup, or remove a file of which nothing is left.
Status restore(Setup& setup, FileChange& change, IsMadeOf is_made_of) {
  // What a file that podqosctl has made has beside podqos's lines.
  constexpr std::array<std::string_view, 4> kNothing = {"", "version = 2", "version = 3", "{}"};
  const std::string path = cat(change.path, kBackupSuffix);
  PODQOS_ASSIGN(const auto backup, setup.files.read(path));
  const bool is_kept = backup.kind == FileState::Kind::kFile;
  // The last line may have had no newline.
  const bool is_same = is_made_of == nullptr ? trimmed(change.after.text) == trimmed(backup.text)
                                             : is_made_of(change, backup.text);
  change.drop_backup = is_kept && is_same;
  if (change.drop_backup)
    change.after.text = backup.text;
  else if (is_kept)
    setup.notes.push_back(cat("kept backup ", path, ": ", change.path,
                              " was modified since; remove it when you no longer need it"));
  else if (std::ranges::find(kNothing, trimmed(change.after.text)) != kNothing.end())
    change.after = {};
  return {};
}

}  // namespace

Result<std::string> edit_blocks(std::string_view text, const std::string& file,
                                std::string_view name, std::string_view body) {
  const auto misplaced = [&](std::size_t line, std::string_view mark) {
    return refuse(file, ":", line, ": \"", kMark, mark,
                  "\" is not one of a pair; remove podqos's lines there by hand, both marks "
                  "included");
  };
  std::string out;
  std::string block = format_block(name, body, text);
  std::string_view open;  // name of the block that has not ended yet
  std::size_t open_line = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view content = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(content.size());
    const std::string_view mark = mark_in(content);
    const bool begins = mark.starts_with(kBegin);
    const bool ends = mark.starts_with(kEnd);
    if (begins ? !open.empty() : ends && mark.substr(kEnd.size()) != open)
      return misplaced(line, mark);
    if (begins) {
      open = mark.substr(kBegin.size());
      open_line = line;
      if (open == name) out += std::exchange(block, {});
    }
    if (open.empty() || (!name.empty() && open != name)) out += content;
    if (ends) open = {};
  }
  if (!open.empty()) return misplaced(open_line, cat(kBegin, open));
  if (!block.empty() && !out.empty() && !out.ends_with('\n')) out += newline_of(out);
  return out.append(block);
}

namespace {

/// Programs that the engine starts for its runtime of this name; the name itself where no file
/// says.
std::vector<std::string> programs_of(const Setup& setup, const DefaultRuntime& runtime,
                                     const std::string& name) {
  const std::string table = cat(runtime.runtimes, "/", name);
  const std::string type = setup.at(cat(table, "/runtime_type")).text();
  const bool is_shim = type.starts_with("io.containerd.");
  // The shim of another kind of runtime.
  if (is_shim && !type.starts_with("io.containerd.runc.")) return {type};
  const TomlValue program = setup.at(cat(table, runtime.program));
  if (auto listed = program.strings()) return *std::move(listed);
  if (!program.text().empty()) return {program.text()};
  return {is_shim ? "runc" : name};
}

/// Refuses a default runtime whose program is not runc or crun, whatever its name: containers would
/// lose what it does for them, as a GPU.
Status check_default_program(const Setup& setup, const DefaultRuntime& runtime,
                             const std::string& remedy) {
  const TomlValue chosen = setup.at(runtime.path);
  const auto names =
      chosen.text().empty() ? parts_of(runtime.built_in, ' ') : std::vector{chosen.text()};
  for (const std::string& name : names) {
    for (const std::string& program : programs_of(setup, runtime, name)) {
      if (has_word("runc crun", leaf_of(program))) continue;
      const TomlValue table = setup.at(cat(runtime.runtimes, "/", name));
      return refuse((chosen ? chosen : table).place, ": the default runtime is \"", printable(name),
                    "\"", program == name ? "" : cat(" (", printable(program), ")"),
                    ", which podqos-runtime calls only if \"runtimes\" of podqos.json names it",
                    remedy);
    }
  }
  return {};
}

/// What names podqos's runtime at this path.
std::string default_line(const std::string& path) {
  return cat(path.substr(path.rfind('/') + 1), " = \"", kHandler, "\"");
}

}  // namespace

std::string by_hand(std::string_view lines) {
  return cat("add these lines by hand:\n", without_newline(lines));
}

Status add_change(Setup& setup, FileChange change, const std::string& by_hand, const Edit& edit,
                  IsMadeOf is_made_of) {
  setup.registered_in.push_back(change.path);
  auto before = setup.files.read(change.path);
  const auto text = setup.files.follow(change.path);
  auto made = text && before ? edit(*text) : fail(before ? text.error() : before.error());
  if (made && *made == text->value_or("")) return {};
  if (made && before->kind == FileState::Kind::kLink)
    made = refuse(change.path, ":1: is a symlink to ", printable(before->text),
                  ", and podqosctl changes no file through a symlink");
  if (!made) return fail(made.error().code, cat(made.error().message, by_hand));
  change.after = before->with(*std::move(made));
  change.before = *std::move(before);
  change.backup = change.backup && change.before.exists();
  if (setup.undo || change.is_removal) PODQOS_TRY(restore(setup, change, is_made_of));
  setup.changes.push_back(std::move(change));
  return {};
}

bool is_default(const Setup& setup, const std::string& path) {
  const std::string line = cat("\n", default_line(path));
  return setup.at(path).text() == kHandler ||
         std::ranges::any_of(setup.documents, [&](const TomlDocument& each) {
           const auto text = setup.files.follow(each.file);
           return text && *text && (*text)->contains(line);
         });
}

Result<std::string> default_lines(const Setup& setup, const DefaultRuntime& runtime,
                                  const std::string& file) {
  const TomlValue chosen = setup.at(runtime.path);
  if (chosen.text() == kHandler || !(setup.set_default || is_default(setup, runtime.path)))
    return std::string{};
  const std::string line = default_line(runtime.path);
  const std::string remedy =
      cat("; write ", line, chosen ? " there" : cat(" into [", runtime.header, "]"), " by hand");
  PODQOS_TRY(check_default_program(setup, runtime, remedy));
  // Of several files the last one that has the key counts.
  const std::string directory = file.substr(0, file.rfind('/') + 1);
  const bool is_before =
      file != setup.config_file() && (chosen.file == setup.config_file() ||
                                      (chosen.file.starts_with(directory) && chosen.file < file));
  if (chosen && !is_before)
    return refuse(chosen.place, ": this line counts more than one of podqosctl's", remedy);
  std::string lines = cat("[", runtime.header, "]\n", line, "\n");
  PODQOS_ASSIGN(const auto text, setup.files.follow(file));
  PODQOS_ASSIGN(const auto others, edit_blocks(text.value_or(""), file));
  // TOML has no table twice in a file.
  if (!TomlDocument::parse(cat(others, "\n", lines), file))
    return refuse(std::ranges::find(setup.documents, file, &TomlDocument::file)
                      ->at(runtime.path.substr(0, runtime.path.rfind('/')))
                      .place,
                  ": the table [", runtime.header, "] is there already", remedy);
  return lines;
}

Status add_lines(Setup& setup, Lines lines) {
  const TomlValue found = setup.at(lines.table);
  const TomlValue called =
      setup.at(cat(lines.table, lines.default_runtime ? lines.default_runtime->program : ""));
  if (lines.default_runtime) {
    PODQOS_ASSIGN(const auto first, default_lines(setup, *lines.default_runtime, lines.path));
    lines.text = first + lines.text;
    if (found && !lines.table.empty() && setup.set_default && !first.empty())
      return refuse(found.place, ": runtime \"", kHandler, "\" is there already; write ",
                    default_line(lines.default_runtime->path), " into [",
                    lines.default_runtime->header, "] by hand");
  }
  lines.text = cat(lines.is_own ? lines.base : "", lines.text);
  if (lines.is_own) lines.base.clear();
  if (found && !lines.table.empty()) {
    note_by_hand(setup, found);
    if (called.text() == kWrapperPath || called.lists(kWrapperPath)) return {};
    return fail(ErrorCode::kAlreadyExists, cat((called ? called : found).place, ": a runtime \"",
                                               kHandler, "\" is there already, and does not call ",
                                               kWrapperPath, ": correct or remove it by hand"));
  }
  const auto file = std::ranges::find(setup.documents, lines.path, &TomlDocument::file);
  const std::string place =
      file == setup.documents.end() ? cat(lines.path, ":1") : file->at(lines.table).place;
  const std::size_t planned = setup.changes.size();
  PODQOS_TRY(add_change(setup, {.path = lines.path, .what = lines.what, .backup = lines.has_backup},
                        cat("; ", by_hand(lines.text)),
                        [&](const auto& text) { return with_lines(text, lines, place); }));
  if (setup.changes.size() > planned) {
    FileChange& change = setup.changes.back();
    change.is_update = change.before.text.contains(cat(kMark, kBegin, lines.block));
  }
  return {};
}

Status remove_lines(Setup& setup, const std::string& path) {
  return add_change(setup, {.path = path, .what = "podqos's lines", .is_removal = true}, "",
                    [&](const auto& text) { return edit_blocks(text.value_or(""), path); });
}

Status read_others(Setup& setup, const std::string& path) {
  PODQOS_ASSIGN(const auto text, setup.files.follow(path));
  PODQOS_ASSIGN(const auto rest, edit_blocks(text.value_or(""), path));
  PODQOS_ASSIGN(setup.documents.emplace_back(), TomlDocument::parse(rest, path));
  return {};
}

Status read_all_others(Setup& setup, std::vector<std::string> paths, const std::string& drop_ins,
                       std::string_view suffix, Depth depth) {
  PODQOS_ASSIGN(const auto found, setup.files.list(drop_ins, depth));
  std::ranges::copy_if(found, std::back_inserter(paths), [&](const std::string& each) {
    return each.ends_with(suffix) && !each.ends_with('/');
  });
  for (const std::string& path : paths)
    PODQOS_TRY(read_others(setup, path));
  return {};
}

Status check_not_default(const Setup& setup, std::string_view path) {
  for (const TomlDocument& document : setup.documents)
    if (const TomlValue value = document.at(path); value.text() == kHandler)
      return refuse(value.place, ": ", path.substr(path.rfind('/') + 1), " = \"", kHandler,
                    "\" still needs podqos; change that line first");
  return {};
}

void note_by_hand(Setup& setup, const TomlValue& found) {
  setup.notes.push_back(cat(found.place, ": podqos is registered there already, not by podqosctl"));
  setup.registered_in.push_back(found.file);
}

void check_left_out_hooks(const Setup& setup, const std::string& place,
                          const std::vector<std::string>& directories, EngineSettings& found) {
  if (std::ranges::find(directories, kCommonHooks) != directories.end()) return;
  const auto files = setup.files.list(kCommonHooks);
  if (!files) return;
  const auto other = std::ranges::find_if(*files, [](const std::string& file) {
    return file.ends_with(".json") && !file.contains("/50-podqos-");
  });
  if (other == files->end()) return;
  found.checks.push_back({std::string{setup.engine->name}, "hooks", Outcome::kWarning,
                          cat(place, ": hooks_dir leaves out ", printable(*other)),
                          cat("add \"", kCommonHooks, "\" to that list")});
}

Status check_nri_switch(const Setup& setup, const std::string& table, std::string_view key,
                        bool wanted, bool unset) {
  const TomlValue value = setup.at(cat(table, "/", key));
  if (value ? value.flag() == wanted : unset) return {};
  return refuse((value ? value : setup.at(table)).place, ": NRI is off; write \"", key, " = ",
                wanted ? "true" : "false", "\" there by hand");
}

Status note_nri(Setup& setup, const TomlValue& enabled) {
  setup.notes.push_back(cat("NRI is on in this ", setup.engine->title, "; ",
                            setup.documents.front().file, " needs no change"));
  if (enabled) setup.registered_in.push_back(enabled.file);
  return {};
}

}  // namespace podqos::ctl
