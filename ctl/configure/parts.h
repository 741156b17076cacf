#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"

// What the plans of several engines have in common.
namespace podqos::ctl {

/// A block of podqos in a file of TOML.
struct TomlBlock {
  std::string path;
  std::string_view name;  ///< of the block: the way
  std::string body;       ///< lines that end with LF
  std::string what;       ///< see FileChange
  std::string base;       ///< content of a new file in front of the block
  /// The file is podqos's alone: one of that name without a block of podqos is another's, and no
  /// backup is made in its directory, of which some engines read every file.
  bool drop_in = true;
};

/// ": add these lines by hand:" and the lines, for the end of an error.
[[nodiscard]] std::string by_hand(std::string_view body);

/// The change that brings a block into its file; nullopt if it stands there already. The result is
/// parsed, and must say what the file said before and what the block says, nothing else.
/// @return an error for a symlink, for a file that is no TOML, and for one to which the block
/// cannot
///         be added; each says what to add by hand.
[[nodiscard]] Result<std::optional<FileChange>> plan_block(const TomlBlock& block,
                                                           const ConfigSource& source);

/// A file out of which podqos's blocks are to be taken.
struct BlockRemoval {
  std::string path;
  std::span<const std::string_view> names;  ///< of the blocks
  /// Contents that plan_block() may have put in front of a new file's block.
  std::vector<std::string> bases;
};

/// Takes the blocks out of a file, and adds the change, if it is one, to `plan`. A file that held
/// nothing else is removed. One that is as it was before the first change becomes the backup's
/// bytes, and the backup goes.
[[nodiscard]] Status plan_block_removal(const BlockRemoval& removal, const ConfigSource& source,
                                        ConfigurePlan& plan);

/// Fails, naming the line, if the string at `key` is podqos's runtime: the engine would not start
/// containers without it.
[[nodiscard]] Status check_not_default(const TomlDocument& document, const TomlPath& key);

/// A TOML file as its owner wrote it: without the blocks `names` of podqos. Empty if it does not
/// exist; symlinks are followed.
[[nodiscard]] Result<TomlDocument> read_others(const std::string& path,
                                               std::span<const std::string_view> names,
                                               const ConfigSource& source);

/// read_others() of the files of a directory whose names end with `suffix`, in the order in which
/// engines read them. Without a suffix those of its directories, too, as CRI-O reads them
/// (pkg/config, UpdateFromPath); with one, directories are passed over, as by Podman.
[[nodiscard]] Result<std::vector<TomlDocument>> read_drop_ins(
    const std::string& directory, std::string_view suffix, std::span<const std::string_view> names,
    const ConfigSource& source);

/// The last of the documents that has `path`, which is the one that counts; nullptr if none has.
[[nodiscard]] const TomlDocument* last_with(const std::vector<TomlDocument>& documents,
                                            const TomlPath& path);

/// A runtime of podqos's name that podqosctl has not written.
/// @param program  where in the runtime's table the path of the program stands
/// @return false if no document has it, true if it calls the wrapper; an error that names the line
///         if it calls something else.
[[nodiscard]] Result<bool> registered_by_hand(const std::vector<TomlDocument>& documents,
                                              const TomlPath& runtime, const TomlPath& program);

/// The note for a file that registers podqos without being podqosctl's.
[[nodiscard]] std::string already_there(const std::string& place);

}  // namespace podqos::ctl
