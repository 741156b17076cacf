#include "ctl/configure/parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "ctl/configure/block.h"

namespace podqos::ctl {
namespace {

/// `text` without all blocks of these names.
Result<std::string> without_blocks(std::string text, std::span<const std::string_view> names,
                                   const std::string& file) {
  for (const std::string_view name : names) {
    auto rest = without_block(text, name, file);
    if (!rest) return fail(std::move(rest).error());
    text = std::move(*rest);
  }
  return text;
}

/// The block cannot be added: names the table of the file that it would have to extend.
std::unexpected<Error> refuse_table(const TomlDocument& before, const TomlDocument& added,
                                    const Error& cause) {
  TomlPath path;
  for (const nlohmann::json* more = &added.values(); more->is_object() && !more->empty();) {
    path.push_back(more->begin().key());
    if (before.at(path) == nullptr) break;
    more = &more->begin().value();
  }
  return fail(cause.code,
              cat(before.place_of(path), ": no table can be added to what stands here (",
                  cause.message.substr(cause.message.rfind(": ") + 2), ")"));
}

/// Checks that a file says what it said before and what the block says.
Status check_result(const TomlBlock& block, std::string_view rest, std::string_view after) {
  auto before = TomlDocument::parse(rest, block.path);
  if (!before) return fail(std::move(before).error());
  const auto added = TomlDocument::parse(block.body, block.path);
  if (!added) return fail(added.error());
  const auto result = TomlDocument::parse(after, block.path);
  // Its line is one of podqos's, which the file does not have.
  if (!result) return refuse_table(*before, *added, result.error());
  if (result->values() == merged(before->values(), added->values())) return {};
  return fail(ErrorCode::kConflict,
              cat(block.path, ":1: podqos's lines would change what it says"));
}

/// Where the backup has the text of the file without the blocks, save the last newline.
bool is_original(std::string_view rest, std::string_view backup) {
  if (rest == backup) return true;
  return rest.starts_with(backup) &&
         (rest.substr(backup.size()) == "\n" || rest.substr(backup.size()) == "\r\n");
}

}  // namespace

std::string by_hand(std::string_view body) {
  return cat("; add these lines by hand:\n",
             body.ends_with('\n') ? body.substr(0, body.size() - 1) : body);
}

Result<std::optional<FileChange>> plan_block(const TomlBlock& block, const ConfigSource& source) {
  auto state = source.read(block.path);
  if (!state) return fail(std::move(state).error());
  if (state->kind == FileState::Kind::kLink) {
    return fail(ErrorCode::kConflict,
                cat(block.path, ":1: is a symlink to ", printable(state->text),
                    ", and podqosctl changes no file through a symlink", by_hand(block.body)));
  }
  const bool is_new = state->kind == FileState::Kind::kAbsent;
  const std::string& text = is_new ? block.base : state->text;
  auto after = put_block(text, block.name, block.body, block.path);
  if (!after) return fail(std::move(after).error());
  if (!is_new && *after == text) return std::nullopt;
  const auto rest = without_block(text, block.name, block.path);
  if (!rest) return fail(rest.error());
  if (!is_new && block.drop_in && *rest == text) {
    return fail(ErrorCode::kConflict,
                cat(block.path, ":1: is not podqosctl's file; move it away, or",
                    by_hand(block.body).substr(1)));
  }
  if (const auto checked = check_result(block, *rest, *after); !checked)
    return fail(checked.error().code, cat(checked.error().message, by_hand(block.body)));
  return FileChange{.path = block.path,
                    .before = std::move(*state),
                    .after = FileState::file(std::move(*after)),
                    .what = block.what,
                    .backup = !is_new && !block.drop_in};
}

Status plan_block_removal(const BlockRemoval& removal, const ConfigSource& source,
                          ConfigurePlan& plan) {
  auto state = source.read(removal.path);
  if (!state) return fail(std::move(state).error());
  if (state->kind != FileState::Kind::kFile) return {};
  auto rest = without_blocks(state->text, removal.names, removal.path);
  if (!rest) return fail(std::move(rest).error());
  if (*rest == state->text) return {};
  const std::string backup_path = cat(removal.path, kBackupSuffix);
  const auto backup = source.read(backup_path);
  if (!backup) return fail(backup.error());
  FileChange change{.path = removal.path,
                    .before = std::move(*state),
                    .after = FileState::file(*rest),
                    .what = "podqos's lines"};
  if (backup->kind == FileState::Kind::kFile) {
    change.drop_backup = is_original(*rest, backup->text);
    if (change.drop_backup)
      change.after = *backup;
    else
      plan.notes.push_back(backup_stays(removal.path));
  } else if (rest->empty() || std::ranges::find(removal.bases, *rest) != removal.bases.end()) {
    change.after = {};
  }
  plan.changes.push_back(std::move(change));
  return {};
}

Status check_not_default(const TomlDocument& document, const TomlPath& key) {
  if (text_at(document, key) != kHandler) return {};
  return fail(ErrorCode::kConflict, cat(document.place_of(key), ": ", key.back(), " = \"", kHandler,
                                        "\" still needs podqos; change that line first"));
}

Result<TomlDocument> read_others(const std::string& path, std::span<const std::string_view> names,
                                 const ConfigSource& source) {
  auto text = source.follow(path);
  if (!text) return fail(std::move(text).error());
  auto rest = without_blocks(text->value_or(""), names, path);
  if (!rest) return fail(std::move(rest).error());
  return TomlDocument::parse(*rest, path);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as directories are
Result<std::vector<TomlDocument>> read_drop_ins(const std::string& directory,
                                                std::string_view suffix,
                                                std::span<const std::string_view> names,
                                                const ConfigSource& source) {
  const auto entries = source.list(directory);
  if (!entries) return fail(entries.error());
  std::vector<TomlDocument> documents;
  for (const std::string& entry : *entries) {
    if (suffix.empty() && entry.ends_with('/')) {
      auto more = read_drop_ins(cat(directory, "/", entry.substr(0, entry.size() - 1)), suffix,
                                names, source);
      if (!more) return fail(std::move(more).error());
      std::ranges::move(*more, std::back_inserter(documents));
    }
    if (entry.ends_with('/') || !entry.ends_with(suffix)) continue;
    auto document = read_others(cat(directory, "/", entry), names, source);
    if (!document) return fail(std::move(document).error());
    documents.push_back(std::move(*document));
  }
  return documents;
}

const TomlDocument* last_with(const std::vector<TomlDocument>& documents, const TomlPath& path) {
  const TomlDocument* found = nullptr;
  for (const TomlDocument& document : documents)
    if (document.at(path) != nullptr) found = &document;
  return found;
}

Result<bool> registered_by_hand(const std::vector<TomlDocument>& documents, const TomlPath& runtime,
                                const TomlPath& program) {
  const TomlDocument* found = last_with(documents, runtime);
  if (found == nullptr) return false;
  TomlPath path = runtime;
  path.insert(path.end(), program.begin(), program.end());
  if (text_at(*found, path) == kWrapperPath) return true;
  return fail(ErrorCode::kConflict, cat(found->place_of(path), ": a runtime \"", kHandler,
                                        "\" is there already, and does not call ", kWrapperPath,
                                        ": correct or remove it by hand"));
}

std::string already_there(const std::string& place) {
  return cat(place, ": podqos is registered there already, not by podqosctl");
}

}  // namespace podqos::ctl
