#include "ctl/configure/parts.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "ctl/configure/block.h"

namespace podqos::ctl {
namespace {

/// The first line of a file that is podqos's alone.
constexpr std::string_view kOwnFile =
    "# podqosctl configure writes this file anew, and removes it with --undo.\n";

bool is_own(const FileState& state) {
  return state.kind == FileState::Kind::kFile && state.text.starts_with(kOwnFile);
}

/// The block cannot be added: names the table of the file that it would have to extend.
std::unexpected<Error> refuse_table(const TomlDocument& before, const toml::table& added,
                                    const Error& cause) {
  TomlPath path;
  for (const toml::table* more = &added; more != nullptr && !more->empty();
       more = more->begin()->second.as_table()) {
    path.emplace_back(more->begin()->first.str());
    if (before.at(path) == nullptr) break;
  }
  return fail(cause.code,
              cat(before.place_of(path), ": no table can be added to what stands here (",
                  cause.message.substr(cause.message.rfind(": ") + 2), ")"));
}

/// Checks that a file says what it said before and what the block says.
Status check_result(const Lines& lines, std::string_view rest, std::string_view after) {
  PODQOS_ASSIGN(auto before, TomlDocument::parse(rest, lines.path));
  PODQOS_ASSIGN(const auto added, TomlDocument::parse(lines.text, lines.path));
  const auto result = TomlDocument::parse(after, lines.path);
  // Its line is one of podqos's, which the file does not have.
  if (!result) return refuse_table(before, added.values, result.error());
  merge(before.values, added.values);
  if (result->values == before.values) return {};
  return fail(ErrorCode::kConflict,
              cat(lines.path, ":1: podqos's lines would change what it says"));
}

/// Where the backup has the text of the file without the blocks, save the last newline.
bool is_original(std::string_view rest, std::string_view backup) {
  if (!rest.starts_with(backup)) return false;
  const std::string_view more = rest.substr(backup.size());
  return more.empty() || more == "\n" || more == "\r\n";
}

ConfigurePlan plan_of(FileChange change) {
  ConfigurePlan plan;
  plan.registered_in.push_back(change.path);
  if (change.before != change.after) plan.changes.push_back(std::move(change));
  return plan;
}

}  // namespace

std::string by_hand(std::string_view lines) {
  return cat("; add these lines by hand:\n", lines.substr(0, lines.find_last_not_of('\n') + 1));
}

Result<ConfigurePlan> plan_own_file(const Lines& lines, const ConfigSource& source) {
  PODQOS_ASSIGN(auto before, source.read(lines.path));
  if (before.kind == FileState::Kind::kLink)
    return fail(ErrorCode::kConflict, refused_link(lines.path, before) + by_hand(lines.text));
  if (before.kind != FileState::Kind::kAbsent && !is_own(before))
    return fail(ErrorCode::kConflict,
                cat(lines.path, ":1: is not podqosctl's file; move it away, or",
                    by_hand(lines.text).substr(1)));
  return plan_of({.path = lines.path,
                  .before = std::move(before),
                  .after = FileState::file(cat(kOwnFile, lines.text)),
                  .what = lines.what});
}

Result<ConfigurePlan> plan_block(const Lines& lines, std::string_view name, const std::string& base,
                                 const ConfigSource& source) {
  PODQOS_ASSIGN(auto before, source.read(lines.path));
  if (before.kind == FileState::Kind::kLink)
    return fail(ErrorCode::kConflict, refused_link(lines.path, before) + by_hand(lines.text));
  const bool is_new = before.kind == FileState::Kind::kAbsent;
  const std::string& text = is_new ? base : before.text;
  PODQOS_ASSIGN(auto after, put_block(text, name, lines.text, lines.path));
  PODQOS_ASSIGN(const auto rest, put_block(text, name, "", lines.path));
  const auto checked = after == before.text ? Status{} : check_result(lines, rest, after);
  if (!checked)
    return fail(checked.error().code, cat(checked.error().message, by_hand(lines.text)));
  return plan_of({.path = lines.path,
                  .before = std::move(before),
                  .after = FileState::file(std::move(after)),
                  .what = lines.what,
                  .backup = !is_new});
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

Status check_not_default(const TomlDocument& document, const TomlPath& key) {
  if (document.text_at(key) != kHandler) return {};
  return fail(ErrorCode::kConflict, cat(document.place_of(key), ": ", key.back(), " = \"", kHandler,
                                        "\" still needs podqos; change that line first"));
}

Result<TomlDocument> read_others(const std::string& path, const ConfigSource& source) {
  PODQOS_ASSIGN(auto text, source.follow(path));
  if (!text || is_own(FileState::file(*text))) return TomlDocument{.file = path, .values = {}};
  PODQOS_ASSIGN(const auto rest, without_blocks(std::move(*text), path));
  return TomlDocument::parse(rest, path);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as directories are
Status read_drop_ins(const std::string& directory, std::string_view suffix,
                     const ConfigSource& source, std::vector<TomlDocument>& documents) {
  PODQOS_ASSIGN(const auto entries, source.list(directory));
  for (const std::string& entry : entries) {
    const std::string path = cat(directory, "/", entry);
    if (suffix.empty() && entry.ends_with('/'))
      PODQOS_TRY(read_drop_ins(path.substr(0, path.size() - 1), suffix, source, documents));
    if (entry.ends_with('/') || !entry.ends_with(suffix)) continue;
    PODQOS_ASSIGN(auto document, read_others(path, source));
    documents.push_back(std::move(document));
  }
  return {};
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
