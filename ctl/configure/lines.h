#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "ctl/configure/setup.h"

// What the plans of several engines have in common.
namespace podqos::ctl {

// podqos's own lines in a file of an engine stand between two comments, which no other line of the
// file has to change for:
//
//     # podqos: begin wrapper (podqosctl configure writes these lines anew; --undo removes them)
//     …
//     # podqos: end wrapper

/// `text` with `body` as the block of this method's name: in the place of that block, or at the
/// end. Lines end as the first line of `text` does (CRLF or LF); a newline is added to a last line
/// without one.
/// @param body  lines that end with LF
/// @return an error, "FILE:LINE: …", for a mark without its counterpart.
[[nodiscard]] Result<std::string> put_block(std::string_view text, std::string_view name,
                                            std::string_view body, const std::string& file);
/// `text` without podqos's blocks; an error as put_block().
[[nodiscard]] Result<std::string> without_blocks(std::string_view text, const std::string& file);

/// Adds a TOML file to the documents as its owner wrote it: without podqos's blocks, and empty if
/// it is podqos's own or does not exist; symlinks are followed.
[[nodiscard]] Status read_others(Setup& setup, const std::string& path);

/// The state of a file that is to be changed; refuses a symlink.
[[nodiscard]] Result<FileState> read_changeable(const EngineFiles& files, const std::string& path);

/// "add these lines by hand:" and the lines, for the end of an error.
[[nodiscard]] std::string by_hand(std::string_view lines);

/// Lines of podqos for an engine's files.
struct Lines {
  std::string path = {};
  std::string text = {};   ///< lines that end with LF
  std::string what = {};   ///< see FileChange
  std::string block = {};  ///< its name in a file of the operator's; "" for a file of podqos's own
  std::string base = {};   ///< content of a new file in front of the block
  std::string place = {};  ///< FILE:LINE of what the block adds a table to
};

/// Plans that these lines are in their file; no change if they are. A file of podqos's own says so
/// in its first line, and has no backup, since of such a directory some engines read every file.
/// @return an error for another's file of the name of podqos's own, for a symlink, and for a file
///         to which the block cannot be added; each says what to add by hand.
[[nodiscard]] Status add_lines(Setup& setup, const Lines& lines);

/// Plans that podqos's lines go from a file: a file of podqos's own is removed, blocks are taken
/// out of another one, as add_removal().
[[nodiscard]] Status remove_lines(Setup& setup, const std::string& path);

/// Plans a change of a file that undoes podqos's. One that is as it was before the first change
/// becomes the backup's bytes, and the backup goes; without backup, one of which nothing is left.
/// @param is_original  whether the file was made of this backup, and of nothing else
[[nodiscard]] Status add_removal(Setup& setup, FileChange change, bool is_empty,
                                 const std::function<bool(const std::string&)>& is_original);

/// Fails, naming the line, if the string at this path is podqos's runtime in one of the files: the
/// engine would not start containers without it.
[[nodiscard]] Status check_not_default(const Setup& setup, std::string_view path);

/// Whether a runtime of podqos's name is there that podqosctl has not written; then notes it.
/// @param runtime  path of its table
/// @param program  "" or "/KEY": where below it the path of the program stands
/// @return an error that names the line if it does not call the wrapper.
[[nodiscard]] Result<bool> is_there_by_hand(Setup& setup, const std::string& runtime,
                                            std::string_view program);

/// The note for a file that registers podqos without being podqosctl's.
[[nodiscard]] std::string already_there(const std::string& place);

/// A boolean that switches NRI on.
struct NriSwitch {
  std::string_view key;
  bool wanted = true;
  bool unset = true;  ///< whether NRI is on where the key is absent
};
/// Fails, naming the line, if a switch in `table` is off.
[[nodiscard]] Status check_nri(const Setup& setup, const std::string& table,
                               std::initializer_list<NriSwitch> switches);
/// Notes that NRI is on, by this value of the owner's if there is one.
[[nodiscard]] Status note_nri(Setup& setup, std::string_view config, const TomlValue& value);

}  // namespace podqos::ctl
