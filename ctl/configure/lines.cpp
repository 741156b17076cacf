#include "ctl/configure/lines.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kBegin = "# podqos: begin ";
constexpr std::string_view kEnd = "# podqos: end ";
constexpr std::string_view kRemark =
    " (podqosctl configure writes these lines anew; --undo removes them)";

/// The first line of a file that is podqos's alone.
constexpr std::string_view kOwnFile =
    "# podqosctl configure writes this file anew, and removes it with --undo.\n";

bool is_own(const FileState& state) {
  return state.kind == FileState::Kind::kFile && state.text.starts_with(kOwnFile);
}

/// The name in a line that is this mark, perhaps with a remark behind it; "" for any other line.
std::string_view name_in(std::string_view line, std::string_view mark) {
  if (!line.starts_with(mark)) return {};
  line.remove_prefix(mark.size());
  return line.substr(0, line.find_first_of(" \r\n"));
}

/// Replaces the block `name` by `block`, or appends it; without a name, all blocks go.
Result<std::string> edit_blocks(std::string_view text, std::string_view name,
                                std::string_view block, const std::string& file) {
  const auto misplaced = [&](std::size_t line, std::string_view mark, std::string_view of) {
    return refuse(file, ":", line, ": \"", mark, of,
                  "\" is not one of a pair; remove podqos's lines there by hand, both marks "
                  "included");
  };
  std::string out;
  std::string_view open;  // name of the block that has not ended yet
  std::size_t open_line = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view content = text.substr(0, size);
    text.remove_prefix(size);
    const std::string_view begun = name_in(content, kBegin);
    const std::string_view ended = name_in(content, kEnd);
    if (!begun.empty() && !open.empty()) return misplaced(line, kBegin, begun);
    if (!ended.empty() && ended != open) return misplaced(line, kEnd, ended);
    if (!begun.empty()) {
      open = begun;
      open_line = line;
    }
    if (begun == name) out += std::exchange(block, {});
    const bool goes = name.empty() ? !open.empty() : open == name;
    if (!goes) out += content;
    if (!ended.empty()) open = {};
  }
  if (!open.empty()) return misplaced(open_line, kBegin, open);
  return out.append(block);
}

/// The change that puts the lines into their file.
Result<FileChange> change_for(const EngineFiles& files, const Lines& lines) {
  PODQOS_ASSIGN(auto before, read_changeable(files, lines.path));
  FileChange change{.path = lines.path,
                    .before = before,
                    .after = before.with(cat(kOwnFile, lines.text)),
                    .what = lines.what};
  if (lines.block.empty() && before.exists() && !is_own(before))
    return refuse(lines.path, ":1: is not podqosctl's file, and is left as it is");
  if (lines.block.empty()) return change;
  change.backup = before.exists();
  PODQOS_ASSIGN(change.after.text, put_block(change.backup ? before.text : lines.base, lines.block,
                                             lines.text, lines.path));
  const auto parsed = TomlDocument::parse(change.after.text, lines.path);
  if (parsed) return change;
  // The error's own line is one of podqos's, which the file does not have.
  const std::string& why = parsed.error().message;
  return refuse(lines.place, ": no table can be added to what stands here: ",
                why.substr(why.find(": ", lines.path.size()) + 2));
}

}  // namespace

Result<std::string> put_block(std::string_view text, std::string_view name, std::string_view body,
                              const std::string& file) {
  const bool crlf = text.substr(0, text.find('\n')).ends_with('\r');
  const std::string_view newline = crlf ? "\r\n" : "\n";
  std::string block;
  for (const char c : cat(kBegin, name, kRemark, "\n", body, kEnd, name, "\n"))
    c == '\n' ? block += newline : block += c;
  const bool ends =
      text.empty() || text.ends_with('\n') || text.contains(cat(kBegin, name, kRemark));
  return edit_blocks(cat(text, ends ? "" : newline), name, block, file);
}

Result<std::string> without_blocks(std::string_view text, const std::string& file) {
  return edit_blocks(text, "", "", file);
}

std::string by_hand(std::string_view lines) {
  return cat("add these lines by hand:\n", without_newline(lines));
}

Result<FileState> read_changeable(const EngineFiles& files, const std::string& path) {
  PODQOS_ASSIGN(auto state, files.read(path));
  if (state.kind != FileState::Kind::kLink) return state;
  return refuse(path, ":1: is a symlink to ", printable(state.text),
                ", and podqosctl changes no file through a symlink");
}

Status add_lines(Setup& setup, const Lines& lines) {
  auto change = change_for(setup.files, lines);
  if (!change)
    return fail(change.error().code, cat(change.error().message, "; ", by_hand(lines.text)));
  setup.registered_in.push_back(lines.path);
  if (change->before != change->after) setup.changes.push_back(*std::move(change));
  return {};
}

Status remove_lines(Setup& setup, const std::string& path) {
  PODQOS_ASSIGN(auto state, setup.files.read(path));
  FileChange change{.path = path, .before = state, .after = {}, .what = "podqos's lines"};
  if (is_own(state)) {
    setup.changes.push_back(std::move(change));
    return {};
  }
  PODQOS_ASSIGN(auto rest, without_blocks(state.text, path));
  if (state.kind != FileState::Kind::kFile || rest == state.text) return {};
  // What a new file has in front of the block.
  const bool is_empty = rest.empty() || rest == "version = 2\n" || rest == "version = 3\n";
  change.after = state.with(rest);
  return add_removal(setup, std::move(change), is_empty, [&](const std::string& backup) {
    // The last line may have had no newline.
    return rest == backup || rest == cat(backup, "\n") || rest == cat(backup, "\r\n");
  });
}

Status add_removal(Setup& setup, FileChange change, bool is_empty,
                   const std::function<bool(const std::string&)>& is_original) {
  const std::string path = cat(change.path, kBackupSuffix);
  PODQOS_ASSIGN(const auto backup, setup.files.read(path));
  if (backup.kind != FileState::Kind::kFile) {
    if (is_empty) change.after = {};
  } else if (is_original(backup.text)) {
    change.drop_backup = true;
    change.after.text = backup.text;
  } else {
    setup.notes.push_back(cat("kept backup ", path, ": ", change.path,
                              " was modified since; remove it when you no longer need it"));
  }
  setup.changes.push_back(std::move(change));
  return {};
}

Status check_not_default(const Setup& setup, std::string_view path) {
  for (const TomlDocument& document : setup.documents)
    if (const TomlValue value = document.at(path); value.text() == kHandler)
      return refuse(value.place, ": ", path.substr(path.rfind('/') + 1), " = \"", kHandler,
                    "\" still needs podqos; change that line first");
  return {};
}

Status read_others(Setup& setup, const std::string& path) {
  PODQOS_ASSIGN(const auto text, setup.files.follow(path));
  const bool is_others = text && !text->starts_with(kOwnFile);
  PODQOS_ASSIGN(const auto rest, without_blocks(is_others ? *text : "", path));
  PODQOS_ASSIGN(setup.documents.emplace_back(), TomlDocument::parse(rest, path));
  return {};
}

Result<bool> is_there_by_hand(Setup& setup, const std::string& runtime, std::string_view program) {
  const TomlValue found = setup.at(runtime);
  if (!found) return false;
  const TomlValue called = setup.at(cat(runtime, program));
  if (called.text() != kWrapperPath && !called.lists(kWrapperPath))
    return refuse((called ? called : found).place, ": a runtime \"", kHandler,
                  "\" is there already, and does not call ", kWrapperPath,
                  ": correct or remove it by hand");
  setup.notes.push_back(already_there(found.place));
  setup.registered_in.push_back(found.file);
  return true;
}

std::string already_there(const std::string& place) {
  return cat(place, ": podqos is registered there already, not by podqosctl");
}

Status check_nri(const Setup& setup, const std::string& table,
                 std::initializer_list<NriSwitch> switches) {
  for (const auto& [key, wanted, unset] : switches) {
    const TomlValue value = setup.at(cat(table, "/", key));
    if (value ? value.flag() == wanted : unset) continue;
    return refuse((value ? value : setup.at(table)).place, ": NRI is off; write \"", key, " = ",
                  wanted ? "true" : "false", "\" there by hand");
  }
  return {};
}

Status note_nri(Setup& setup, std::string_view config, const TomlValue& value) {
  setup.notes.push_back(
      cat("NRI is on in this ", setup.engine->title, "; ", config, " needs no change"));
  if (value) setup.registered_in.push_back(value.file);
  return {};
}

}  // namespace podqos::ctl
