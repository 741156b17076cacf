#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/setup.h"

// What the plans of several engines have in common.
namespace podqos::ctl {

/// Where Podman and CRI-O look for hooks unless told otherwise.
constexpr const char* kCommonHooks = "/usr/share/containers/oci/hooks.d";
/// Podman's alone.
constexpr const char* kPrecreateFile = "50-podqos-precreate.json";
/// createRuntime and poststop, which the package registers with CRI-O and Podman.
constexpr const char* kPackagedHook =
    "/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json";

// podqos's lines in a file of an engine, or of its own, stand between two comments, which no other
// line of the file has to change for:
//
//     # podqos: begin wrapper (podqosctl configure writes these lines anew; --undo removes them)
//     …
//     # podqos: end wrapper

/// `text` with `body` as the block of this name, in the place of that block or at the end; without
/// a name, without any block. Lines end as the first line of `text` does (CRLF or LF); a newline is
/// added to a last line without one.
/// @param body  lines that end with LF
/// @return an error, "FILE:LINE: …", for a mark without its counterpart.
[[nodiscard]] Result<std::string> edit_blocks(std::string_view text, const std::string& file,
                                              std::string_view name = "",
                                              std::string_view body = "");

/// Adds a TOML file to the documents as its owner wrote it: without podqos's blocks, and empty if
/// it does not exist; symlinks are followed.
[[nodiscard]] Status read_others(Setup& setup, const std::string& path);
/// The same for these files and, after them, those of a directory whose names end so.
[[nodiscard]] Status read_all_others(Setup& setup, std::vector<std::string> paths,
                                     const std::string& drop_ins, std::string_view suffix,
                                     Depth depth);

/// "add these lines by hand:" and the lines, for the end of an error.
[[nodiscard]] std::string by_hand(std::string_view lines);

/// Makes the new text of a file from the old one, nullopt if there is none.
using Edit = std::function<Result<std::string>(const std::optional<std::string>& text)>;
/// Whether the file that is changed was made of this backup, and of podqos's change alone; nullptr:
/// if `after` is the backup.
using IsMadeOf = bool (*)(const FileChange& change, const std::string& backup);

/// Plans a change if the text is another one. Of a removal and with --undo, a file
/// that is as it was before the first change becomes the backup's bytes, and the backup goes;
/// without backup, a file goes of which nothing is left.
/// @param change  path, what, and whether a file that is there is kept as a backup
/// @param by_hand  for the end of an error
/// @return the error of `edit`, or an error for a symlink
[[nodiscard]] Status add_change(Setup& setup, FileChange change, const std::string& by_hand,
                                const Edit& edit, IsMadeOf is_made_of = nullptr);

/// Where an engine's files name its default runtime.
struct DefaultRuntime {
  std::string path;           ///< "crio/runtime/default_runtime"
  std::string header;         ///< of the table, as it is written: "crio.runtime"
  std::string runtimes;       ///< path of the table of runtimes: "crio/runtime/runtimes"
  std::string program;        ///< "" or "/KEY": where below one of these its program stands
  std::string_view built_in;  ///< words: the default where none is named
};
/// Whether podqos's runtime is the default, by its owner's lines or by podqos's.
[[nodiscard]] bool is_default(const Setup& setup, const std::string& path);
/// The lines that make it the default if that is asked for, or was before; else "".
/// @param file  where they are written
/// @return an error, naming the line, if a line of the owner's counts more than they would, if the
///         default runtime's program is another one than runc and crun, which podqos would not
///         call, or if the owner's table has to be changed.
[[nodiscard]] Result<std::string> default_lines(const Setup& setup, const DefaultRuntime& runtime,
                                                const std::string& file);

/// A block for an engine's TOML file.
struct Lines {
  std::string path = {};
  std::string text = {};   ///< lines that end with LF
  std::string what = {};   ///< see FileChange
  std::string table = {};  ///< path of the table that they define; "" if the operator has none
  /// Where the default runtime is named: lines in front of the text, see default_lines().
  std::optional<DefaultRuntime> default_runtime = std::nullopt;
  std::string block = "podqos";
  bool is_own = true;       ///< whether the file is podqos's own
  bool has_backup = false;  ///< never where the engine would read it, too
  std::string base = {};  ///< what a new file has in front of the block, podqos's own inside of it
};

/// Plans that these lines are in their file, or notes that the operator has written the table.
/// @return an error that names the line if the table does not call the wrapper; one that says what
///         to add by hand for another's file of the name of podqos's own, for a symlink, and for a
///         file to which the block cannot be added.
[[nodiscard]] Status add_lines(Setup& setup, Lines lines);

/// Plans that podqos's blocks go from a file.
[[nodiscard]] Status remove_lines(Setup& setup, const std::string& path);

/// Fails, naming the line, if the string at this path is podqos's runtime in one of the files: the
/// engine would not start containers without it.
[[nodiscard]] Status check_not_default(const Setup& setup, std::string_view path);

/// Notes that this value registers podqos without being podqosctl's.
void note_by_hand(Setup& setup, const TomlValue& found);

/// Warns if these directories of hooks leave out kCommonHooks although other programs have hooks
/// there.
/// @param place  FILE:LINE of the list
void check_left_out_hooks(const Setup& setup, const std::string& place,
                          const std::vector<std::string>& directories, EngineSettings& found);

/// Fails, naming the line, if this key of the table switches NRI off.
/// @param wanted  the value with which NRI is on
/// @param unset  whether NRI is on where the key is absent
[[nodiscard]] Status check_nri_switch(const Setup& setup, const std::string& table,
                                      std::string_view key, bool wanted, bool unset = true);
/// Notes that NRI is on, by this value of the owner's if there is one.
[[nodiscard]] Status note_nri(Setup& setup, const TomlValue& enabled);

}  // namespace podqos::ctl
