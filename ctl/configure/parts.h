#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"

// What the plans of several engines have in common.
namespace podqos::ctl {

// podqos's own lines in a file of an engine stand between two comments, which no other line of the
// file has to change for:
//
//     # podqos: begin wrapper (podqosctl configure writes these lines anew; --undo removes them)
//     …
//     # podqos: end wrapper

/// A block in a text: the bytes from its begin mark to the newline after its end mark.
struct Block {
  std::string name;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// All blocks of podqos in `text`.
/// @return kInvalidArgument, "FILE:LINE: …", for a mark without its counterpart.
[[nodiscard]] Result<std::vector<Block>> find_blocks(std::string_view text,
                                                     const std::string& file);

/// `text` with `body` as the block `name`: in the place of that block, or at the end. Lines end as
/// the first line of `text` does (CRLF or LF); a newline is added to a last line without one.
/// @param body  lines that end with LF
[[nodiscard]] Result<std::string> put_block(std::string_view text, std::string_view name,
                                            std::string_view body, const std::string& file);

/// `text` without podqos's blocks.
[[nodiscard]] Result<std::string> without_blocks(std::string text, const std::string& file);

/// Lines of podqos for an engine's files.
struct Lines {
  std::string path;
  std::string text;  ///< lines that end with LF
  std::string what;  ///< see FileChange
};

/// ": add these lines by hand:" and the lines, for the end of an error.
[[nodiscard]] std::string by_hand(std::string_view lines);

/// A plan that changes nothing, and why.
/// @param registered_in  the file that registers podqos; "" where none has to
[[nodiscard]] ConfigurePlan nothing_to_do(std::string note, std::string registered_in = {});

/// The state of a file that is to be changed.
/// @return kConflict for a symlink: "PATH:1: is a symlink to …".
[[nodiscard]] Result<FileState> read_changeable(const std::string& path,
                                                const ConfigSource& source);

/// Plans a file that is podqos's alone and says so in its first line; no change if it is as it
/// should be. No backup is made, since of such a directory some engines read every file.
/// @return kConflict for another's file of this name, with what to add by hand.
[[nodiscard]] Result<ConfigurePlan> plan_own_file(const Lines& lines, const ConfigSource& source);

/// Plans a block in a file of the engine's operator; no change if it stands there already.
/// @param name  of the block
/// @param base  content of a new file in front of the block
/// @return an error for a symlink, for a file that is no TOML, and for one to which the block
///         cannot be added; each says what to add by hand.
[[nodiscard]] Result<ConfigurePlan> plan_block(const Lines& lines, std::string_view name,
                                               const std::string& base, const ConfigSource& source);

/// Adds the removal of a file that is podqos's alone, if it is there, to `plan`.
[[nodiscard]] Status plan_own_removal(const std::string& path, const ConfigSource& source,
                                      ConfigurePlan& plan);

/// Takes podqos's blocks out of a file, and adds the change, if it is one, to `plan`. A file that
/// held nothing else than one of the `bases` is removed. One that is as it was before the first
/// change becomes the backup's bytes, and the backup goes.
[[nodiscard]] Status plan_block_removal(const std::string& path,
                                        const std::vector<std::string>& bases,
                                        const ConfigSource& source, ConfigurePlan& plan);

/// Makes the backup of a file its content again if `is_original`; else notes that it stays.
/// @param backup  the state of the backup, a file
void restore_backup(FileChange& change, const FileState& backup, bool is_original,
                    ConfigurePlan& plan);

/// Fails, naming the line, if the string at `key` of a document is podqos's runtime: the engine
/// would not start containers without it.
[[nodiscard]] Status check_not_default(const std::vector<TomlDocument>& documents,
                                       const TomlPath& key);

/// A TOML file as its owner wrote it: without podqos's blocks, and empty if it is podqos's own or
/// does not exist; symlinks are followed.
[[nodiscard]] Result<TomlDocument> read_others(const std::string& path, const ConfigSource& source);

/// The read_others() of these files, then of those of a directory whose names end with `suffix`, in
/// the order in which engines read them. Without a suffix those of its directories, too, as CRI-O
/// reads them (pkg/config, UpdateFromPath); with one, directories are passed over, as by Podman.
[[nodiscard]] Result<std::vector<TomlDocument>> read_files(std::vector<std::string> paths,
                                                           const std::string& directory,
                                                           std::string_view suffix,
                                                           const ConfigSource& source);

/// The last of the documents that has `path`, which is the one that counts; nullptr if none has.
[[nodiscard]] const TomlDocument* last_with(const std::vector<TomlDocument>& documents,
                                            const TomlPath& path);

/// A runtime of podqos's name that podqosctl has not written.
/// @param program  where in the runtime's table the path of the program stands
/// @return a plan that changes nothing if it calls the wrapper; nullopt if no document has it; an
///         error that names the line if it calls something else.
[[nodiscard]] Result<std::optional<ConfigurePlan>> registered_by_hand(
    const std::vector<TomlDocument>& documents, const TomlPath& runtime, const TomlPath& program);

/// The note for a file that registers podqos without being podqosctl's.
[[nodiscard]] std::string already_there(const std::string& place);

}  // namespace podqos::ctl
