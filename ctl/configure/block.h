#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

// podqos's own lines in a file of an engine stand between two comments, which no other line of the
// file has to change for:
//
//     # podqos: begin wrapper (podqosctl configure writes these lines anew; --undo removes them)
//     …
//     # podqos: end wrapper

/// Where a block stands in a text: the bytes from the begin mark to the newline after the end mark.
struct BlockRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

/// The block `name` in `text`; nullopt if there is none.
/// @return kInvalidArgument, "FILE:LINE: …", if a mark is there twice or without its counterpart.
[[nodiscard]] Result<std::optional<BlockRange>> find_block(std::string_view text,
                                                           std::string_view name,
                                                           const std::string& file);

/// `text` with `body` as the block `name`: in the place of that block, or at the end. Lines end as
/// the first line of `text` does (CRLF or LF); a newline is added to a last line without one.
/// @param body  lines that end with LF
[[nodiscard]] Result<std::string> put_block(std::string_view text, std::string_view name,
                                            std::string_view body, const std::string& file);

/// `text` without the block `name`, and unchanged if there is none.
[[nodiscard]] Result<std::string> without_block(std::string_view text, std::string_view name,
                                                const std::string& file);

}  // namespace podqos::ctl
