"use strict";
// Pictures of a plan as SVG: bars of what adds up, price against speed, a step against its batch,
// what a change of each quantity does. Sizes are those of the page, so that letters stay readable.
const Pictures = (() => {
  const NAME = "http://www.w3.org/2000/svg";
  function node(tag, attributes = {}, ...inner) {
    const made = document.createElementNS(NAME, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    for (const part of inner.flat()) made.append(part);
    return made;
  }
  const text = (x, y, words, attributes = {}) => node("text", { x, y, ...attributes }, words);
  const line = (x1, y1, x2, y2, name) => node("line", { x1, y1, x2, y2, class: name });

  // Widths are read once: to read one after something was drawn lays the whole page out anew.
  const widths = new Map();
  function widthOf(place) {
    const frame = place.id ? place : place.parentElement;
    if (!widths.get(frame.id)) widths.set(frame.id, frame.clientWidth);
    return widths.get(frame.id);
  }

  function drawn(place, height, label, fill) {
    const width = Math.max(widthOf(place), 280);
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
    fill(svg, width);
    place.replaceChildren(svg);
  }

  const KNOWN = ["weights", "kv", "compute", "collectives", "overhead", "prefill"];
  const OTHER = { state: "compute", activations: "overhead", reserved: "collectives", drafts: "compute" };
  const token = (name) => (KNOWN.includes(name) ? name : OTHER[name] ?? "overhead");
  const called = (name) => (name === "kv" ? "KV cache" : name);
  const wide = (words, size = 12) => words.length * size * 0.56;

  // One bar of parts; those too narrow for their name go into a row of swatches below.
  function bar(place, parts, whole, show, label, solved) {
    const shown = parts.filter(([, value]) => value > 0), small = [];
    const height = solved ? 66 : 46;
    drawn(place, height, label, (svg, width) => {
      let x = 0;
      for (const [name, value] of shown) {
        const w = width * value / whole, free = name === "free", on = free ? "ink" : `on-${token(name)}`;
        svg.append(node("rect", { x, y: 0, width: Math.max(w - 1.2, 0.6), height: 44, rx: 2,
          ...(free ? { class: "f-free" } : { fill: `var(--${token(name)})` }) }));
        if (w > Math.max(wide(called(name)), wide(show(value))) + 16) {
          svg.append(text(x + 8, 18, called(name), { fill: `var(--${on})`, class: "strong" }));
          svg.append(text(x + 8, 35, show(value), { fill: `var(--${on})` }));
        } else small.push([name, value]);
        x += w;
      }
      if (solved) {
        let at = 0;
        for (const [name, value] of solved.parts.filter(([, v]) => v > 0)) {
          const w = width * value / whole;
          svg.append(node("rect", { x: at, y: 50, width: Math.max(w - 1.2, 0.6), height: 7, fill: `var(--${token(name)})` }));
          at += w;
        }
      }
    });
    const list = document.createElement("ul");
    list.className = "legend";
    for (const [name, value] of small) {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = name === "free" ? "var(--panel)" : `var(--${token(name)})`;
      item.append(swatch, `${called(name)} ${show(value)}`);
      list.append(item);
    }
    if (solved) { const item = document.createElement("li"); item.className = "quiet"; item.append(solved.words); list.append(item); }
    if (list.children.length) place.append(list);
  }

  // Ticks 1-2-5 of a decade, or evenly spaced ones.
  function decades(low, high) {
    const ticks = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const step of [1, 2, 5]) {
        const value = Number((step * 10 ** k).toPrecision(3));
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
      }
    return ticks.length > 1 ? ticks : even(high).filter((value) => value >= low);
  }
  function even(high, count = 5) {
    const rough = high / count, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((x) => x * size).find((x) => x >= rough), ticks = [];
    for (let value = 0; value <= high * 1.0001; value += step) ticks.push(Number(value.toPrecision(6)));
    return ticks;
  }

  function frontier(place, cloud, at, solved, slowest, show, labels) {
    if (!cloud.edge.length) { place.replaceChildren(); return; }
    drawn(place, 330, labels.title, (svg, width) => {
      const left = 52, right = width - 10, top = 16, bottom = 286;
      const marks = [at, solved].filter(Boolean);
      const speeds = [...cloud.edge, ...marks].map((dot) => dot[0]);
      const prices = [...cloud.edge, ...marks].map((dot) => dot[1]);
      const fast = Math.max(...speeds, slowest ?? 0) * 1.06;
      const low = Math.min(...prices) * 0.8, high = Math.min(Math.max(...prices) * 1.3, low * 1000);
      const x = (value) => left + (right - left) * value / fast;
      const y = (value) => bottom - (bottom - top) * Math.log(value / low) / Math.log(high / low);
      for (const price of decades(low, high)) {
        svg.append(line(left, y(price), right, y(price), "rule"));
        svg.append(text(left - 8, y(price) + 4, show(price), { "text-anchor": "end", class: "soft" }));
      }
      for (const speed of even(fast, width < 500 ? 4 : 6)) {
        if (x(speed) > right) continue;
        svg.append(text(x(speed), bottom + 18, String(speed), { "text-anchor": "middle", class: "soft" }));
      }
      svg.append(text((left + right) / 2, bottom + 38, labels.speed, { "text-anchor": "middle", class: "soft" }));
      if (slowest) {
        svg.append(node("rect", { x: left, y: top, width: Math.max(x(slowest) - left, 0), height: bottom - top, class: "slow" }));
        svg.append(line(x(slowest), top, x(slowest), bottom, "dash"));
        svg.append(text(x(slowest) - 5, top + 11, "too slow", { "text-anchor": "end", class: "soft" }));
      }
      // One path for all dots, each pixel once: thousands of elements would take longer than the search.
      const pixels = new Set();
      for (const [speed, price] of cloud.dots)
        if (price <= high && speed <= fast) pixels.add(`M${Math.round(x(speed))} ${Math.round(y(price))}h0`);
      svg.append(node("path", { d: [...pixels].join(""), class: "dots" }));
      const inside = cloud.edge.filter(([, price]) => price <= high);
      svg.append(node("polyline", { points: inside.map(([s, p]) => `${x(s).toFixed(1)},${y(p).toFixed(1)}`).join(" "), class: "edge" }));
      if (solved) svg.append(node("circle", { cx: x(solved[0]), cy: y(solved[1]), r: 5, class: "solved" }));
      if (at) {
        svg.append(node("circle", { cx: x(at[0]), cy: y(at[1]), r: 6, class: "plan" }));
        const end = x(at[0]) > right - 170, above = end || y(at[1]) + 26 > bottom;
        svg.append(text(x(at[0]) + (end ? -11 : 11), y(at[1]) + (above ? -10 : 20), `${show(at[1])} at ${at[0].toPrecision(3)}`, { class: "strong halo", "text-anchor": end ? "end" : "start" }));
      }
      svg.append(line(left, bottom, right, bottom, "axis"));
    });
  }

  function growth(place, grown, show) {
    if (!grown) { place.replaceChildren(); return; }
    drawn(place, 320, "a step against its batch", (svg, width) => {
      const left = 52, right = width - (width < 500 ? 76 : 100), top = 14, bottom = 274;
      const rows = grown.rows, last = rows[rows.length - 1], end = last.batch;
      const sum = (parts) => parts.reduce((m, value) => m + value, 0);
      const limit = grown.limit;
      const ceiling = Math.max(Math.min(sum(last.parts), (limit ?? Infinity) * 1.7), sum(rows.find((r) => r.batch >= grown.at)?.parts ?? last.parts) * 1.15);
      const x = (batch) => left + (right - left) * Math.log(batch) / Math.log(Math.max(end, 2));
      const y = (seconds) => bottom - (bottom - top) * Math.min(seconds / ceiling, 1);
      for (const seconds of even(ceiling)) {
        svg.append(line(left, y(seconds), right, y(seconds), "rule"));
        svg.append(text(left - 8, y(seconds) + 4, show(seconds), { "text-anchor": "end", class: "soft" }));
      }
      const below = rows.map(() => 0), ends = [];
      grown.parts.forEach((name, k) => {
        if (!rows.some((row) => row.parts[k] > 0)) return;
        const low = [...below];
        rows.forEach((row, i) => { below[i] += row.parts[k]; });
        const upper = rows.map((row, i) => `${x(row.batch).toFixed(1)},${y(below[i]).toFixed(1)}`);
        const lower = rows.map((row, i) => `${x(row.batch).toFixed(1)},${y(low[i]).toFixed(1)}`).reverse();
        svg.append(node("polygon", { points: [...upper, ...lower].join(" "), fill: `var(--${token(name)})`, stroke: "var(--paper)", "stroke-width": 0.7 }));
        ends.push([name, (y(below[rows.length - 1]) + y(low[rows.length - 1])) / 2]);
      });
      let floor = bottom + 6;
      for (const [name, middle] of ends) {
        const at = Math.min(middle, floor - 15);
        floor = at;
        svg.append(node("rect", { x: right + 7, y: at - 5, width: 9, height: 9, fill: `var(--${token(name)})` }));
        svg.append(text(right + 20, at + 4, called(name), { class: "soft" }));
      }
      if (limit && limit <= ceiling) {
        svg.append(line(left, y(limit), right, y(limit), "dash"));
        svg.append(text(left + 6, y(limit) - 6, `promised ${show(limit)}`, { class: "halo" }));
      }
      if (grown.wall && grown.wall > 1) {
        svg.append(line(x(grown.wall), top, x(grown.wall), bottom, "wall"));
        svg.append(text(x(grown.wall), top - 4, "memory full", { "text-anchor": "middle" }));
      }
      svg.append(line(x(grown.at), top, x(grown.at), bottom, "axis"));
      const here = rows.reduce((m, row) => (Math.abs(row.batch - grown.at) < Math.abs(m.batch - grown.at) ? row : m));
      svg.append(node("circle", { cx: x(grown.at), cy: y(sum(here.parts)), r: 6, class: "plan" }));
      for (const batch of decades(1, end)) {
        if (Math.abs(x(batch) - x(grown.at)) < 26 || (width < 500 && !String(batch).startsWith("1"))) continue;
        svg.append(text(x(batch), bottom + 18, batch.toLocaleString("en"), { "text-anchor": "middle", class: "soft" }));
      }
      svg.append(text(x(grown.at), bottom + 18, grown.at.toLocaleString("en"), { "text-anchor": "middle", class: "strong" }));
      svg.append(text((left + right) / 2, bottom + 38, "sequences in flight per replica", { "text-anchor": "middle", class: "soft" }));
    });
  }

  // Rows of {label, held: [less, more], free: [less, more]} as changes of the objective.
  function tornado(place, rows) {
    const height = rows.length * 34 + 12;
    drawn(place, height, "what a change of each quantity does to the price", (svg, width) => {
      const names = width < 500 ? 118 : 160, room = 52, middle = names + (width - names) / 2;
      const shares = rows.flatMap((row) => [...row.held, ...row.free]).filter(Number.isFinite).map(Math.abs);
      const most = Math.max(0.02, ...shares), unit = ((width - names) / 2 - room) / most;
      const percent = (share) => `${share > 0 ? "+" : "−"}${Number(Math.abs(share * 100).toPrecision(Math.abs(share) < 0.0995 ? 1 : 2))}%`;
      rows.forEach((row, k) => {
        const y = k * 34 + 4;
        svg.append(text(0, y + 17, row.label));
        const effects = [...row.held, ...row.free].filter((share) => Number.isFinite(share) && Math.abs(share) > 5e-4);
        if (!effects.length && row.held.every(Number.isFinite)) { svg.append(text(middle + 8, y + 17, "no effect here", { class: "soft" })); return; }
        [["less", 0], ["more", 1]].forEach(([name, j]) => {
          const share = row.held[j], free = row.free[j], top = y + 13 * j;
          if (Number.isFinite(share) && Math.abs(share) > 5e-4) {
            const w = Math.abs(share) * unit;
            svg.append(node("rect", { x: share > 0 ? middle : middle - w, y: top, width: w, height: 11, class: `f-${name}` }));
          }
          if (Number.isFinite(free) && Math.abs(free - (Number.isFinite(share) ? share : 0)) > 5e-4) {
            const w = Math.abs(free) * unit;
            svg.append(node("rect", { x: free > 0 ? middle : middle - w, y: top - 0.5, width: Math.max(w, 1), height: 12, class: "outline" }));
          }
          const shown = Number.isFinite(share) ? share : free;
          if (!Number.isFinite(shown)) svg.append(text(middle + 8, top + 10, "no plan", { class: "soft" }));
          else if (Math.abs(shown) > 5e-4) {
            const far = Number.isFinite(share) && Number.isFinite(free) && Math.sign(share) === Math.sign(free) ? Math.max(Math.abs(share), Math.abs(free)) : Math.abs(shown);
            svg.append(text(middle + Math.sign(shown) * (far * unit + 5), top + 10, percent(shown), { "text-anchor": shown > 0 ? "start" : "end", class: "soft" }));
          }
        });
      });
      svg.append(line(middle, 0, middle, height - 4, "axis"));
    });
  }

  // The same picture with every colour as a number, to be saved.
  function resolved(svg) {
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((made, k) => {
      const style = getComputedStyle(from[k]);
      for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-family", "font-weight"])
        made.setAttribute(name, style.getPropertyValue(name));
      made.removeAttribute("class");
    });
    copy.setAttribute("xmlns", NAME);
    copy.setAttribute("width", svg.clientWidth);
    return new XMLSerializer().serializeToString(copy);
  }

  return { bar, frontier, growth, tornado, resolved, resized: () => widths.clear() };
})();
