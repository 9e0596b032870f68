#include "prism/report/page/page_style.h"

namespace prism {

// The series' colours are those of Okabe and Ito, and of Tol, darkened for light mode and lightened for dark mode to a
// contrast of at least 3. Lines also differ in dashes and markers.
const char* const kPageColours = R"css(
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1c1d1f; --soft: #5b5f66; --rule: #d8d9d6; --strong-rule: #6d7178; --tint: #f3f3f0;
  --plot-ink: #4a4e55; --plot-grid: #e4e4e0; --plot-zero: #6d7178;
  --head: #c3d3df; --first-head: #2f6690;
  --series-0: #0072b2; --series-1: #d0540a; --series-2: #00876a; --series-3: #a8417f; --series-4: #8a6a00;
  --series-5: #2b8fb8; --series-6: #5d5d5d; --series-7: #6a4fd8; --series-8: #b0123b; --series-9: #4c8f1a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --ink: #e4e4e1; --soft: #a2a7ae; --rule: #34383d; --strong-rule: #8b9097; --tint: #1f2226;
    --plot-ink: #b3b8be; --plot-grid: #2b2f34; --plot-zero: #8b9097;
    --head: #34485a; --first-head: #7fb2d9;
    --series-0: #56b4e9; --series-1: #f2894b; --series-2: #2fc4a0; --series-3: #e191c2; --series-4: #dcc443;
    --series-5: #a5dbef; --series-6: #b5b5b5; --series-7: #ab9aff; --series-8: #ff7f93; --series-9: #9ad65c;
  }
}
)css";

const char* const kHeatMapStyle = R"css(
.heat text { font-size: 12px; fill: #1c1d1f; fill: var(--ink); }
.heat .label { fill: #5b5f66; fill: var(--soft); }
.heat .cell { fill: #0072b2; fill: var(--series-0); }
.heat .ground { fill: #f3f3f0; fill: var(--tint); }
)css";

const char* const kPageStyle = R"css(
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 Charter, "Bitstream Charter", "Iowan Old Style", Georgia, "DejaVu Serif", serif;
}
h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 600; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; font-weight: 600; margin: 3rem 0 .75rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 44rem; overflow-wrap: anywhere; }
.lead { font-size: 1.1rem; }
table, figcaption, .note, .legend, .sample header, summary, footer, svg text {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif;
}
.scroll { position: relative; overflow-x: auto; margin: .75rem 0; }
.scroll:focus-visible { outline: 2px solid var(--series-0); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.4; border-bottom: 1.5px solid var(--strong-rule); }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { padding: .4rem .9rem .4rem 0; text-align: left; vertical-align: baseline; font-weight: 400; }
th:last-child, td:last-child { padding-right: 0; }
thead th {
  font-weight: 600; border-top: 1.5px solid var(--strong-rule); border-bottom: 1px solid var(--strong-rule);
  vertical-align: bottom;
}
tbody th:not(.n) { min-width: 7rem; }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
th, td { max-width: 22rem; overflow-wrap: break-word; }
.short { white-space: nowrap; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums lining-nums; }
thead .n { white-space: normal; min-width: 3.5rem; }
.spread { display: inline-block; text-align: left; white-space: pre; color: var(--soft); }
.note { font-size: .8125rem; color: var(--soft); margin: .3rem 0; }
.key { vertical-align: baseline; margin-right: .5rem; overflow: visible; }
.legend {
  display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; list-style: none; padding: 0; margin: .5rem 0 1rem;
  font-size: .875rem;
}
.legend li { overflow-wrap: anywhere; }
.legend button {
  padding: .1rem 0; border: 0; background: none; color: inherit; font: inherit; text-align: left; cursor: pointer;
  overflow-wrap: anywhere;
}
.legend button:focus-visible { outline: 2px solid var(--series-0); outline-offset: 2px; }
.legend .off { opacity: .5; text-decoration: line-through; }
.tabs { display: flex; flex-wrap: wrap; gap: .25rem 1.75rem; margin: 2.5rem 0 -1rem; border-bottom: 1px solid var(--rule); }
.tabs button {
  padding: .5rem 0; border: 0; border-bottom: 3px solid transparent; background: none; color: var(--soft); cursor: pointer;
  font: 600 .9375rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif;
}
.tabs button[aria-selected="true"] { color: var(--ink); border-bottom-color: var(--series-0); }
.tabs button:focus-visible { outline: 2px solid var(--series-0); outline-offset: 2px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1.75rem 2.5rem; }
.schedules {
  margin-top: 1.25rem; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1.5rem 2.5rem;
}
figure { margin: 0; min-width: 0; }
figure > svg { display: block; width: 100%; height: auto; }
.figures > .wide { grid-column: 1 / -1; overflow-x: auto; }
figcaption { font-size: .8125rem; color: var(--soft); margin-top: .5rem; line-height: 1.45; max-width: 44rem; }
figcaption b { color: var(--ink); font-weight: 600; }
.plot { color: var(--plot-ink); }
.plot .axis { font-size: 13px; fill: currentColor; text-anchor: middle; }
.plot .row { font-size: 13px; fill: var(--ink); unicode-bidi: isolate; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.plot .ring { fill: none; stroke: var(--ink); stroke-width: 1.5; pointer-events: none; }
.plot:focus-visible { outline: 2px solid var(--series-0); outline-offset: 2px; }
.plot .off { display: none; }
.tip {
  position: absolute; visibility: hidden; pointer-events: none; max-width: min(22rem, calc(100vw - 1rem));
  padding: .35rem .6rem; border-left: 4px solid; background: var(--tint); color: var(--ink);
  box-shadow: 0 1px 5px rgb(0 0 0 / .35); font: .8125rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}
.tip.shown { visibility: visible; }
.tip bdi { display: block; font-weight: 600; }
.schedule text { font-size: 13px; fill: var(--ink); font-variant-numeric: tabular-nums; }
.schedule .heading text { fill: var(--soft); font-size: 12px; }
.schedule .head { fill: var(--head); }
.schedule .first { fill: var(--first-head); }
.schedules figcaption { margin: 0 0 .5rem; color: var(--ink); overflow-wrap: anywhere; }
.schedules figcaption span { color: var(--soft); }
.samples { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 1rem 2.5rem; }
.sample { border-top: 1px solid var(--strong-rule); padding-top: .5rem; min-width: 0; }
.sample header { font-size: .8125rem; color: var(--soft); overflow-wrap: anywhere; }
.sample p { white-space: pre-wrap; margin: .4rem 0 0; }
.sample .prompt { color: var(--soft); font-style: italic; }
.missing { background: var(--tint); border-left: 3px solid var(--strong-rule); padding: .6rem .9rem; }
details { margin: 1rem 0; }
summary { cursor: pointer; font-size: .875rem; color: var(--soft); }
footer { margin-top: 3.5rem; padding-top: .75rem; border-top: 1px solid var(--rule); font-size: .8125rem; color: var(--soft); }
@media (min-width: 56rem) {
  .figures figure:nth-child(odd):last-child:not(.empty):not(.wide) { grid-column: 1 / -1; display: grid; grid-template-columns: subgrid; }
}
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.4rem; }
  h2 { margin-top: 2.25rem; }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --soft: #444; --rule: #ccc; --strong-rule: #555; --tint: #f4f4f4;
    --plot-ink: #333; --plot-grid: #ddd; --plot-zero: #555; --head: #c3d3df; --first-head: #2f6690;
    --series-0: #0072b2; --series-1: #d0540a; --series-2: #00876a; --series-3: #a8417f; --series-4: #8a6a00;
    --series-5: #2b8fb8; --series-6: #5d5d5d; --series-7: #6a4fd8; --series-8: #b0123b; --series-9: #4c8f1a;
  }
  @page { margin: 16mm; }
  body { padding: 0; max-width: none; font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .figures { grid-template-columns: 1fr 1fr; gap: 1rem 1.5rem; }
  .scroll { overflow: visible; }
  .tip, .hint, .tabs { display: none; }
  section[hidden] { display: block; }
  table { font-size: 7pt; }
  th, td { padding-right: .4rem; }
  .n, .short { white-space: normal; }
  thead .n { min-width: 0; }
  .spread { min-width: 0 !important; }
  tbody th:not(.n) { min-width: 0; }
  h2, h3, caption, thead { break-after: avoid; }
  figure, tr, .sample { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; }
}
)css";

}  // namespace prism
