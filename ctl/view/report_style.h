#pragma once

#include <string_view>

namespace podqos::ctl {

/// How the page of `podqosctl report` looks; CSS.
inline constexpr std::string_view kReportStyle = R"(
:root { color-scheme: light dark; --text: #1d2329; --dim: #5b6570; --page: #fff; --box: #f4f6f8;
  --line: #d5dbe1; --use: #2870c2; --limit: #c9dbef; --red: #c01c28; --yellow: #8f5902; }
@media (prefers-color-scheme: dark) { :root { --text: #dfe4e9; --dim: #98a3ae; --page: #14181c;
  --box: #1e242a; --line: #343c45; --use: #5b9fe6; --limit: #2c4560; --red: #ff7b72;
  --yellow: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; background: var(--page);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
p { margin: .3rem 0; }
small, .dim, th, dt { color: var(--dim); font-weight: normal; }
small { font-size: .85em; }
code { font: .9em ui-monospace, monospace; background: var(--box); padding: .1em .3em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .8rem 0; }
dd { margin: 0; }
ul { list-style: none; margin: 0; padding: 0; }
li { background: var(--box); border-left: 4px solid var(--line); margin: .4rem 0;
  padding: .4rem .7rem; }
li.red, li.yellow { border-color: currentcolor; }
li span { color: var(--text); }
summary { cursor: pointer; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left;
  vertical-align: top; }
h1, dd, li, th, td { unicode-bidi: isolate; }
td { font-variant-numeric: tabular-nums; }
.number { text-align: right; }
td:first-child { min-width: 10rem; }
.bar { width: 24%; min-width: 10rem; }
svg { display: block; width: 100%; height: .7rem; margin: .15rem 0; background: var(--line); }
.limit { fill: var(--limit); }
.use { fill: var(--use); }
.request { fill: var(--text); }
.red { color: var(--red); }
.yellow { color: var(--yellow); }
.use.red { fill: var(--red); }
.use.yellow { fill: var(--yellow); }
.tier, .tree, .node { background: var(--box); font-weight: 600; }
.pod td:first-child { padding-left: 1.5rem; font-weight: 600; }
.container td:first-child { padding-left: 2.8rem; }
.time { white-space: nowrap; }
@media (max-width: 56rem) {
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 1rem; border-bottom: 1px solid var(--line);
    padding: .4rem 0; }
  td, .number { border: 0; padding: .1rem .4rem; text-align: left; }
  td:first-child, .bar, .what { flex: 0 0 100%; }
  td[data-name]::before { content: attr(data-name) " "; color: var(--dim); font-weight: normal; }
  .unset { display: none; }
  .usage td:first-child { padding-left: .4rem; }
  .pod { padding-left: 1rem; }
  .container { padding-left: 2rem; }
}
)";

}  // namespace podqos::ctl
