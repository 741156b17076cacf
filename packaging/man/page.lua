-- Examples in a manual page, without the font names C and CB of pandoc 2, which groff 1.23 does not know.
function CodeBlock(block)
  local text = block.text:gsub("\\", "\\[rs]"):gsub("%-", "\\-"):gsub("%f[^\n\0]([.'])", "\\&%1")
  return pandoc.RawBlock("man", ".IP\n.nf\n" .. text .. "\n.fi")
end
