// The style sheet and the frame of weir's HTML pages.
#pragma once

#include <string>
#include <string_view>

namespace weir::report {

// Returns a self-contained page of these parts. `title` is any text. The only script is that of
// `figures`: gate/web's report.html.
[[nodiscard]] std::string html_page(std::string_view title, std::string_view more_style,
                                    std::string_view body, std::string_view figures = "");

// One accent; red for broken limits alone. All text keeps a contrast of 4.5:1 or more.
inline constexpr std::string_view k_html_style = R"css(
:root { color-scheme: light dark; --page: #fff; --text: #1c2128; --soft: #59636e; --line: #d8dee4;
  --band: #f6f8fa; --accent: #0a5fb4; --bad: #b3261e; --bad-band: #fdf0ef; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1419; --text: #dfe5eb; --soft: #9aa5b1;
  --line: #2b333c; --band: #171d24; --accent: #6cb2f5; --bad: #ff8a80; --bad-band: #2a1715; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .25rem; font-weight: 650; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; font-weight: 650; }
h3 { font-size: .95rem; margin: 0 0 .35rem; font-weight: 600; }
section.cell > h2 { margin: 0 0 .35rem; }
h2 code, h3 code { font-size: .95em; }
p { margin: .25rem 0; }
.soft, dt, th { color: var(--soft); }
.word { font-size: .8rem; font-weight: 650; letter-spacing: .02em; margin-right: .35rem;
  padding: .05rem .4rem; border: 1px solid currentColor; border-radius: .25rem; white-space: nowrap; }
.fail, td.fail { color: var(--bad); }
.error, .inconclusive, .new, .improved, .waived { color: var(--accent); }
.pass, .skipped, .info { color: var(--soft); }
.missing { border-left: 3px solid var(--accent); padding: .1rem 0 .1rem .6rem; margin: .5rem 0; }
section.cell { border-top: 1px solid var(--line); padding: .8rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0;
  border-bottom: 1px solid var(--line); font-weight: 400; overflow-wrap: normal; }
thead th { font-size: .8rem; white-space: nowrap; }
th[scope=row] { color: var(--text); min-width: 7rem; overflow-wrap: anywhere; }
td.number { text-align: right; white-space: nowrap; }
th.number { text-align: right; }
tr.fail td, tr.fail th { background: var(--bad-band); }
td.change { min-width: 9rem; } td.limit { min-width: 7rem; overflow-wrap: anywhere; }
td.why { color: var(--soft); min-width: 14rem; overflow-wrap: anywhere; }
pre { background: var(--band); border: 1px solid var(--line); border-radius: .3rem; padding: .6rem;
  overflow-x: auto; font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  white-space: pre-wrap; }
code { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
ul.changes { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1.4rem; margin: .4rem 0;
  padding: 0; font-variant-numeric: tabular-nums; }
figure { margin: .8rem 0; max-width: 44rem; }
figcaption { font-size: .85rem; font-variant-numeric: tabular-nums; margin-bottom: .3rem; }
details { border-top: 1px solid var(--line); }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; padding: .35rem 0; }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
details > div { padding: 0 0 .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .5rem 0; }
dd { margin: 0; }
details details { margin-left: 1rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; }
  .metrics thead { position: absolute; clip-path: inset(50%); }
  .metrics tr { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding: .25rem .3rem;
    border-bottom: 1px solid var(--line); }
  .metrics tr.fail { background: var(--bad-band); }
  .metrics :is(th, td) { border: 0; padding: 0; white-space: normal; min-width: 0; }
  .metrics :is(th[scope=row], td.why) { flex-basis: 100%; }
  .metrics td:empty { display: none; } .metrics td.number + td.number::before { content: "\2192\00a0"; }
  .metrics td.number:empty + td.number::before { content: none; }
  details details { margin-left: .5rem; } }
@media print { details > div { display: block; } body { max-width: none; } }
)css";

}  // namespace weir::report
