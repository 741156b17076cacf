#include "ctl/configure/parts.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kBegin = "# podqos: begin ";
constexpr std::string_view kEnd = "# podqos: end ";
constexpr std::string_view kRemark =
    " (podqosctl configure writes these lines anew; --undo removes them)";

/// The name in a line that is this mark, perhaps with a remark behind it.
std::optional<std::string_view> name_in(std::string_view line, std::string_view mark) {
  if (!line.starts_with(mark)) return std::nullopt;
  line.remove_prefix(mark.size());
  return line.substr(0, line.find_first_of(" \r\n"));
}

/// The first line of a file that is podqos's alone.
constexpr std::string_view kOwnFile =
    "# podqosctl configure writes this file anew, and removes it with --undo.\n";

bool is_own(const FileState& state) {
  return state.kind == FileState::Kind::kFile && state.text.starts_with(kOwnFile);
}

/// Checks that the file is TOML with the block in it.
/// @return kInvalidArgument with the table of the file that the block would have to extend
Status check_result(const Lines& lines, std::string_view rest, std::string_view after) {
  PODQOS_ASSIGN(const auto before, TomlDocument::parse(rest, lines.path));
  PODQOS_ASSIGN(const auto added, TomlDocument::parse(lines.text, lines.path));
  const auto result = TomlDocument::parse(after, lines.path);
  if (result) return {};
  TomlPath path;
  for (const toml::table* more = &added.values; more != nullptr && !more->empty();
       more = more->begin()->second.as_table()) {
    path.emplace_back(more->begin()->first.str());
    if (before.at(path) == nullptr) break;
  }
  // The error's own line is one of podqos's, which the file does not have.
  const Error& cause = result.error();
  return fail(cause.code,
              cat(before.place_of(path), ": no table can be added to what stands here (",
                  cause.message.substr(cause.message.rfind(": ") + 2), ")"));
}

/// Where the backup has the text of the file without the blocks, save the last newline.
bool is_original(std::string_view rest, std::string_view backup) {
  if (!rest.starts_with(backup)) return false;
  const std::string_view more = rest.substr(backup.size());
  return more.empty() || more == "\n" || more == "\r\n";
}

/// Appends the paths of the files that read_files() reads of a directory.
// NOLINTNEXTLINE(misc-no-recursion): as deep as directories are
Status add_drop_ins(const std::string& directory, std::string_view suffix,
                    const ConfigSource& source, std::vector<std::string>& paths) {
  PODQOS_ASSIGN(const auto entries, source.list(directory));
  for (const std::string& entry : entries) {
    std::string path = cat(directory, "/", entry);
    if (suffix.empty() && entry.ends_with('/')) {
      path.pop_back();
      PODQOS_TRY(add_drop_ins(path, suffix, source, paths));
    } else if (!entry.ends_with('/') && entry.ends_with(suffix)) {
      paths.push_back(std::move(path));
    }
  }
  return {};
}

ConfigurePlan plan_of(FileChange change) {
  ConfigurePlan plan;
  plan.registered_in.push_back(change.path);
  if (change.before != change.after) plan.changes.push_back(std::move(change));
  return plan;
}

}  // namespace

Result<std::vector<Block>> find_blocks(std::string_view text, const std::string& file) {
  const auto misplaced = [&](std::size_t line, std::string_view mark, std::string_view name,
                             std::string_view what) {
    return fail(ErrorCode::kInvalidArgument,
                cat(file, ":", line, ": \"", mark, name, "\" ", what,
                    "; remove podqos's lines there by hand, both marks included"));
  };
  std::vector<Block> blocks;
  std::size_t opened = 0;  // line of the begin mark that has no end yet
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view content = text.substr(begin, end - begin);
    if (const auto name = name_in(content, kBegin)) {
      if (opened != 0) return misplaced(line, kBegin, *name, "is a duplicate marker");
      blocks.push_back({.name = std::string{*name}, .begin = begin, .end = 0});
      opened = line;
    } else if (const auto ended = name_in(content, kEnd)) {
      if (opened == 0 || blocks.back().name != *ended)
        return misplaced(line, kEnd, *ended, "has no begin above it");
      blocks.back().end = end;
      opened = 0;
    }
    begin = end;
  }
  if (opened != 0) return misplaced(opened, kBegin, blocks.back().name, "has no end below it");
  return blocks;
}

Result<std::string> put_block(std::string_view text, std::string_view name, std::string_view body,
                              const std::string& file) {
  PODQOS_ASSIGN(const auto blocks, find_blocks(text, file));
  const std::size_t first_end = text.find('\n');
  const bool crlf =
      first_end != std::string_view::npos && text.substr(0, first_end).ends_with('\r');
  const std::string_view newline = crlf ? "\r\n" : "\n";
  std::string lines;
  for (const char c : cat(kBegin, name, kRemark, "\n", body, kEnd, name, "\n"))
    c == '\n' ? lines += newline : lines += c;
  const auto found = std::ranges::find(blocks, name, &Block::name);
  if (found != blocks.end())
    return cat(text.substr(0, found->begin), lines, text.substr(found->end));
  return cat(text, text.empty() || text.ends_with('\n') ? "" : newline, lines);
}

Result<std::string> without_blocks(std::string text, const std::string& file) {
  PODQOS_ASSIGN(const auto blocks, find_blocks(text, file));
  for (const Block& block : std::views::reverse(blocks))
    text.erase(block.begin, block.end - block.begin);
  return text;
}

ConfigurePlan nothing_to_do(std::string note, std::string registered_in) {
  ConfigurePlan plan;
  plan.notes.push_back(std::move(note));
  if (!registered_in.empty()) plan.registered_in.push_back(std::move(registered_in));
  return plan;
}

Result<FileState> read_changeable(const std::string& path, const ConfigSource& source) {
  PODQOS_ASSIGN(auto state, source.read(path));
  if (state.kind != FileState::Kind::kLink) return state;
  return fail(ErrorCode::kConflict, cat(path, ":1: is a symlink to ", printable(state.text),
                                        ", and podqosctl changes no file through a symlink"));
}

std::string by_hand(std::string_view lines) {
  return cat("; add these lines by hand:\n", lines.substr(0, lines.find_last_not_of('\n') + 1));
}

Result<ConfigurePlan> plan_own_file(const Lines& lines, const ConfigSource& source) {
  auto before = read_changeable(lines.path, source);
  if (!before) return fail(before.error().code, before.error().message + by_hand(lines.text));
  if (before->kind != FileState::Kind::kAbsent && !is_own(*before))
    return fail(ErrorCode::kConflict,
                cat(lines.path, ":1: is not podqosctl's file; move it away, or",
                    by_hand(lines.text).substr(1)));
  return plan_of({.path = lines.path,
                  .before = *std::move(before),
                  .after = FileState::file(cat(kOwnFile, lines.text)),
                  .what = lines.what});
}

Result<ConfigurePlan> plan_block(const Lines& lines, std::string_view name, const std::string& base,
                                 const ConfigSource& source) {
  FileChange change{.path = lines.path, .before = {}, .after = {}, .what = lines.what};
  const auto refuse = [&](const Error& error) {
    return fail(error.code, cat(error.message, by_hand(lines.text)));
  };
  auto before = read_changeable(lines.path, source);
  if (!before) return refuse(before.error());
  change.before = *std::move(before);
  change.backup = change.before.kind != FileState::Kind::kAbsent;
  const std::string& text = change.backup ? change.before.text : base;
  PODQOS_ASSIGN(auto after, put_block(text, name, lines.text, lines.path));
  PODQOS_ASSIGN(const auto rest, put_block(text, name, "", lines.path));
  change.after = FileState::file(std::move(after));
  if (const auto good = check_result(lines, rest, change.after.text); !good)
    return refuse(good.error());
  return plan_of(std::move(change));
}

Status plan_own_removal(const std::string& path, const ConfigSource& source, ConfigurePlan& plan) {
  PODQOS_ASSIGN(auto state, source.read(path));
  if (is_own(state))
    plan.changes.push_back(
        {.path = path, .before = std::move(state), .after = {}, .what = "podqos's lines"});
  return {};
}

Status plan_block_removal(const std::string& path, const std::vector<std::string>& bases,
                          const ConfigSource& source, ConfigurePlan& plan) {
  PODQOS_ASSIGN(auto state, source.read(path));
  if (state.kind != FileState::Kind::kFile) return {};
  PODQOS_ASSIGN(const auto rest, without_blocks(state.text, path));
  if (rest == state.text) return {};
  PODQOS_ASSIGN(const auto backup, source.read(cat(path, kBackupSuffix)));
  FileChange change{.path = path,
                    .before = std::move(state),
                    .after = FileState::file(rest),
                    .what = "podqos's lines"};
  if (backup.kind == FileState::Kind::kFile)
    restore_backup(change, backup, is_original(rest, backup.text), plan);
  else if (rest.empty() || std::ranges::find(bases, rest) != bases.end())
    change.after = {};
  plan.changes.push_back(std::move(change));
  return {};
}

void restore_backup(FileChange& change, const FileState& backup, bool is_original,
                    ConfigurePlan& plan) {
  change.drop_backup = is_original;
  if (is_original)
    change.after = backup;
  else
    plan.notes.push_back(cat("kept backup ", change.path, kBackupSuffix, ": ", change.path,
                             " was modified since; remove it when you no longer need it"));
}

Status check_not_default(const std::vector<TomlDocument>& documents, const TomlPath& key) {
  for (const TomlDocument& document : documents)
    if (document.text_at(key) == kHandler)
      return fail(ErrorCode::kConflict,
                  cat(document.place_of(key), ": ", key.back(), " = \"", kHandler,
                      "\" still needs podqos; change that line first"));
  return {};
}

Result<TomlDocument> read_others(const std::string& path, const ConfigSource& source) {
  PODQOS_ASSIGN(auto text, source.follow(path));
  if (!text || is_own(FileState::file(*text))) return TomlDocument{.file = path, .values = {}};
  PODQOS_ASSIGN(const auto rest, without_blocks(std::move(*text), path));
  return TomlDocument::parse(rest, path);
}

Result<std::vector<TomlDocument>> read_files(std::vector<std::string> paths,
                                             const std::string& directory, std::string_view suffix,
                                             const ConfigSource& source) {
  PODQOS_TRY(add_drop_ins(directory, suffix, source, paths));
  std::vector<TomlDocument> documents;
  for (const std::string& path : paths) {
    PODQOS_ASSIGN(documents.emplace_back(), read_others(path, source));
  }
  return documents;
}

const TomlDocument* last_with(const std::vector<TomlDocument>& documents, const TomlPath& path) {
  const TomlDocument* found = nullptr;
  for (const TomlDocument& document : documents)
    if (document.at(path) != nullptr) found = &document;
  return found;
}

Result<std::optional<ConfigurePlan>> registered_by_hand(const std::vector<TomlDocument>& documents,
                                                        const TomlPath& runtime,
                                                        const TomlPath& program) {
  const TomlDocument* found = last_with(documents, runtime);
  if (found == nullptr) return std::nullopt;
  TomlPath path = runtime;
  path.insert(path.end(), program.begin(), program.end());
  if (found->text_at(path) == kWrapperPath || found->lists(path, kWrapperPath))
    return nothing_to_do(already_there(found->place_of(runtime)), found->file);
  return fail(ErrorCode::kConflict, cat(found->place_of(path), ": a runtime \"", kHandler,
                                        "\" is there already, and does not call ", kWrapperPath,
                                        ": correct or remove it by hand"));
}

std::string already_there(const std::string& place) {
  return cat(place, ": podqos is registered there already, not by podqosctl");
}

}  // namespace podqos::ctl
