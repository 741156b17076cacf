-- Examples in a manual page, without the font names C and CB of pandoc 2, which groff 1.23 does not know. Without these
-- escapes groff prints typographic characters on some terminals, and an example could not be copied.
local escapes = {
  ["\\"] = "\\[rs]", ["-"] = "\\-", ["'"] = "\\[aq]", ["`"] = "\\[ga]", ["^"] = "\\[ha]", ["~"] = "\\[ti]"
}

function CodeBlock(block)
  local text = block.text:gsub("[\\%-'`^~]", escapes):gsub("%f[^\n\0]%.", "\\&.")
  return pandoc.RawBlock("man", ".IP\n.nf\n" .. text .. "\n.fi")
end
