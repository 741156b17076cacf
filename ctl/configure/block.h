#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

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

}  // namespace podqos::ctl
