#pragma once

#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace podqos {

/// The value of a sample, as it is written; "" if there is none.
inline std::string value_of(std::string_view text, std::string_view sample) {
  const std::string start = "\n" + std::string{sample} + " ";
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + start.size();
  return std::string{text.substr(begin, text.find('\n', begin) - begin)};
}

/// Samples of podqos, and their values as they are written; "" for one that is not there.
using Samples = std::map<std::string, std::string>;
inline void expect_samples(std::string_view text, const Samples& samples) {
  for (const auto& [sample, value] : samples)
    EXPECT_EQ(value_of(text, "podqos_" + sample), value) << sample;
}

}  // namespace podqos
