"""The style of the HTML page: one column, large enough on a phone, dark where that is preferred."""

__all__ = ["STYLE"]

STYLE = """
:root { --ink: #1c1e21; --soft: #5c636b; --paper: #fdfdfb; --line: #dddcd6; --link: #0b57a4;
  --exact: #1b6b3a; --near: #9a5200; --wash: #f4f2ec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e4df; --soft: #a2a6ab; --paper: #16181b;
  --line: #363a3f; --link: #8ab8ee; --exact: #7fce9c; --near: #f0b26a; --wash: #1f2226; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 46rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 Georgia, "Times New Roman", serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.4em 0 0.8em; }
h2 { font-size: 1.3rem; margin: 2.2em 0 0.5em; }
h3 { font-size: 1.08rem; margin: 0 0 0.2em; line-height: 1.3; }
a { color: var(--link); text-decoration-thickness: 0.06em; text-underline-offset: 0.15em; }
small { color: var(--soft); }
nav ul, header ul { margin: 0.2em 0 0.8em; padding-left: 1.2em; }
nav li { margin: 0.15em 0; }
summary { cursor: pointer; padding: 0.2em 0; }
summary h2 { display: inline; margin: 0; }
article { border-top: 1px solid var(--line); padding: 1.1rem 0 0.4rem; margin-top: 1rem;
  scroll-margin-top: 0.5rem; }
article:target h3 { color: var(--link); }
.tags { margin: 0 0 0.6em; }
.tag { display: inline-block; font: 0.75rem/1.5 system-ui, sans-serif; color: var(--soft);
  border: 1px solid var(--line); border-radius: 0.6em; padding: 0 0.55em;
  margin: 0 0.35em 0.2em 0; }
.tag.exact { color: var(--exact); border-color: currentColor; }
.tag.near { color: var(--near); border-color: currentColor; }
ol { padding-left: 1.5rem; margin: 0; }
li > p { margin: 0.6em 0 0.2em; }
ol > li.near { border-left: 3px solid var(--near); margin-left: -0.8rem; padding-left: 0.8rem;
  list-style-position: inside; }
ol > li.near > p:first-child { display: inline; }
.proof { color: var(--soft); font-size: 0.88rem; }
.wide { overflow-x: auto; overflow-y: hidden; padding: 0.35em 0; }
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", math; font-size: 1.06em; }
mtable.left mtd { text-align: left; padding: 0.2em 0; }
dl { display: grid; grid-template-columns: 5rem minmax(0, 1fr); gap: 0.15em 0.6em;
  margin: 0.7em 0 0; font-size: 0.9rem; background: var(--wash); padding: 0.6em 0.8em;
  border-radius: 0.4em; }
dt { color: var(--soft); }
dd { margin: 0; }
dd .wide { padding: 0.1em 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; line-height: 1.35; }
th { text-align: left; font-weight: normal; color: var(--soft); }
th, td { padding: 0.3em 0.7em 0.3em 0; border-bottom: 1px solid var(--line);
  vertical-align: baseline; overflow-wrap: normal; }
td.unit { color: var(--soft); font-size: 0.85em; }
td.value { white-space: nowrap; }
@media (max-width: 480px) { body { padding: 0.8rem 0.9rem 3rem; } math { font-size: 0.98em; }
  table { font-size: 0.82rem; } th, td { padding-right: 0.5em; } }
@media print { body { max-width: none; } article { break-inside: avoid; } }
"""
