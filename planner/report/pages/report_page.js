"use strict";
// The page of a plan that chooses again: sliders, state in the address, pictures, downloads.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const model = pageModel(data.live, KERNELS), sliders = data.sliders, byName = new Map(sliders.map((s) => [s.name, s]));
  const outputs = data.live.outputs, main = outputs[0];
  let state = {}, held = false, ignored = [];

  // ---- numbers in words ----
  const figure = (value, digits = 3) => {
    if (!Number.isFinite(value)) return "–";
    const all = Math.abs(value) >= 10 ** digits - 0.5;
    return all ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
  };
  const scaled = (value, steps) => {
    if (value === 0) return `0 ${steps[steps.length - 1][1]}`;
    const [size, unit] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) ?? steps[steps.length - 1];
    return `${figure(value / size)} ${unit}`;
  };
  const BYTES = [[1e15, "PB"], [1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
  const money = (value) => "$" + (value >= 100 ? Math.round(value).toLocaleString("en") : figure(value));
  const FORMS = {
    "s": (v) => scaled(v, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]),
    "byte": (v) => scaled(v, BYTES), "byte/s": (v) => scaled(v, BYTES) + "/s",
    "USD per million tokens": (v) => money(v), "USD per million input tokens": (v) => money(v),
    "USD per million output tokens": (v) => money(v), "USD/hour": (v) => money(v) + "/h",
    "USD/(chip*s)": (v) => "$" + (v * 3600).toFixed(2) + "/h", "token/s": (v) => figure(v) + " tok/s", "s/token": (v) => FORMS.s(v), "seq/s": (v) => figure(v) + " requests/s",
    "token/(s*chip)": (v) => figure(v) + " tok/s", "J/token": (v) => figure(v) + " J/token",
    "J/s": (v) => figure(v) + " W", "token": (v) => Math.round(v).toLocaleString("en") + " tokens", "token/seq": (v) => figure(v, 5) + " tokens",
    "seq": (v) => figure(v) + " sequences", "1": (v) => figure(v), "share": (v) => figure(v * 100) + "%",
    "USD": money, "USD/token": (v) => money(v * 1e6) + " per million", "flop/s": (v) => scaled(v, [[1e15, "PFLOP/s"], [1e12, "TFLOP/s"], [1, "FLOP/s"]]),
    "": (v) => "× " + figure(v),
  };
  const show = (value, unit) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    return (FORMS[unit] ?? ((v) => `${figure(v)} ${unit}`))(value);
  };
  const shown = (slider, value) => value === undefined || value === null ? slider.empty
    : slider.high <= 1 && slider.unit === "1" ? FORMS.share(value) : show(value, slider.unit);
  const change = (share) => `${share >= 0 ? "+" : "−"}${Number(Math.abs(share * 100).toPrecision(Math.abs(share) < 0.0995 ? 1 : 2))}%`;

  // ---- the state, in the address ----
  const valueOf = (slider) => state[slider.name] ?? slider.value;
  function read() {
    state = {}; ignored = []; held = false;
    for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
      const slider = byName.get(name), value = Number(text);
      if (name === "hold" && text === "1") held = true;
      else if (!slider) ignored.push(`${name} is not known here`);
      else if (!text || !Number.isFinite(value) || value < slider.low * 0.999999 || value > slider.high * 1.000001)
        ignored.push(`${name}=${text} is out of range`);
      else if (value !== slider.value) state[name] = slider.whole ? Math.round(value) : value;
    }
  }
  function write() {
    const words = Object.entries(state).map(([name, value]) => `${name}=${Number(value.toPrecision(12))}`);
    if (held) words.push("hold=1");
    history.replaceState(null, "", words.length ? "#" + words.join("&") : location.pathname + location.search);
  }

  // ---- sliders ----
  const TRACK = 1000;
  const toTrack = (s, value) => value === undefined || value === null ? 0
    : TRACK * (s.logarithmic ? Math.log(value / s.low) / Math.log(s.high / s.low) : (value - s.low) / (s.high - s.low));
  function fromTrack(s, at) {
    if (s.value === null && at <= 0) return undefined;
    const near = toTrack(s, s.value);
    if (s.value !== null && Math.abs(at - near) < 6) return s.value;
    let value = s.logarithmic ? s.low * (s.high / s.low) ** (at / TRACK) : s.low + (s.high - s.low) * at / TRACK;
    const size = s.logarithmic ? 10 ** (Math.floor(Math.log10(value)) - 1) : (s.high - s.low) / 95;
    value = Number((Math.round(value / size) * size).toPrecision(6));
    if (s.whole) value = Math.max(1, Math.round(value));
    return Math.min(s.high, Math.max(s.low, value));
  }
  function build() {
    let group = "", box = null;
    for (const slider of sliders) {
      if (slider.group !== group) {
        group = slider.group;
        box = document.createElement("fieldset");
        const legend = document.createElement("legend");
        legend.textContent = group;
        box.append(legend);
        $("sliders").append(box);
      }
      const row = document.createElement("div"), label = document.createElement("label");
      const value = document.createElement("output"), track = document.createElement("div"), input = document.createElement("input");
      row.className = "slider"; track.className = "track";
      Object.assign(input, { type: "range", min: 0, max: TRACK, step: 1, id: "s-" + slider.name });
      label.htmlFor = value.htmlFor = input.id; label.textContent = slider.label;
      if (slider.value !== null) {
        const tick = document.createElement("span");
        tick.className = "tick";
        const share = toTrack(slider, slider.value) / TRACK;
        tick.style.left = `calc(${(share * 100).toFixed(2)}% + ${(8 - 16 * share).toFixed(1)}px)`;
        track.append(tick);
      }
      input.addEventListener("input", () => {
        const moved = fromTrack(slider, Number(input.value));
        if (moved === undefined || moved === slider.value) delete state[slider.name]; else state[slider.name] = moved;
        later();
      });
      track.append(input); row.append(label, value, track); box.append(row);
      Object.assign(slider, { input, valueBox: value });
    }
  }
  function place() {
    for (const slider of sliders) {
      const value = valueOf(slider);
      if (slider.placed === String(value)) continue;
      const words = shown(slider, value);
      slider.placed = document.activeElement === slider.input ? null : String(value);
      if (document.activeElement !== slider.input) slider.input.value = toTrack(slider, value);
      slider.input.setAttribute("aria-valuetext", words);
      slider.valueBox.textContent = words;
      slider.valueBox.classList.toggle("changed", slider.name in state);
    }
    for (const [id, on] of [["free", !held], ["hold", held]]) $(id).setAttribute("aria-pressed", on);
  }

  // ---- what is shown ----
  // Only what differs is written: a text that is written anew is laid out anew, and read out anew.
  const put = (place, words) => { if (place.textContent !== words) place.textContent = words; };
  const before = new Map();
  function same(name, ...values) {
    const words = JSON.stringify(values), equal = before.get(name) === words;
    before.set(name, words);
    return equal;
  }
  const solved = model.choose({});
  const promiseOf = (output) => {
    const slider = sliders.find((s) => output.promise && output.promise.includes(Object.keys(s.sets)[0]));
    if (!slider) return null;
    const value = valueOf(slider);
    return slider.inverse ? 1 / value : value;
  };
  function card(output, plan) {
    const made = document.createElement("div"), name = document.createElement("span"), value = document.createElement("b"), note = document.createElement("span");
    const promise = promiseOf(output), x = plan.outputs[output.name];
    made.className = "card"; name.textContent = output.label; value.textContent = show(x, output.unit);
    note.textContent = promise !== null ? `promised ${show(promise, output.unit)}` : output.name === "usd_per_hour" ? plan.chips
      : output.name === "tokens_per_s" && plan.outputs.tokens_per_s_per_user ? `${figure(plan.outputs.tokens_per_s_per_user)} to each user` : "";
    made.append(name, value, note);
    return made;
  }
  const paragraph = (words, name) => { const p = document.createElement("p"); p.textContent = words; if (name) p.className = name; return p; };

  function headline(plan) {
    const price = plan.outputs[main.name], old = solved.feasible ? solved.outputs[main.name] : null;
    put($("price").firstChild, show(price, main.unit));
    const parts = outputs.filter((o) => o.name.startsWith(main.name + "_") && o.name in plan.outputs)
      .map((o) => `${o.name.slice(main.name.length + 1)} ${show(plan.outputs[o.name], o.unit)}`);
    put($("beside"), `${data.objective_unit}${parts.length ? " · " + parts.join(", ") : ""}`);
    const moved = old !== null && Math.abs(price / old - 1) > 1e-9;
    put($("since"), moved ? `${change(price / old - 1)} against the plan as solved, ${show(old, main.unit)}` : "");
    const cards = ["tpot", "ttft", "tokens_per_s", "usd_per_hour"].map((name) => outputs.find((o) => o.name === name))
      .filter((o) => o && o.name in plan.outputs).map((o) => card(o, plan));
    if (!same("cards", cards.map((made) => made.textContent))) $("cards").replaceChildren(...cards);
    put($("mini"), [main, ...outputs.filter((o) => ["tpot", "ttft"].includes(o.name) && o.name in plan.outputs)]
      .map((o) => (o === main ? "" : o.label + " ") + show(plan.outputs[o.name], o.unit)).join("   "));
  }
  // What was solved and is not worked out again is of the plan as solved: once a slider moves it is
  // hidden; chances of promises and what lies outside the fit are worked out anew.
  const range = $("band").textContent;
  function beside(plan) {
    const moved = Object.keys(state).length > 0;
    $("stands").hidden = moved;
    put($("band"), moved ? "The range, the sizes and all else beside the plan as solved are hidden: they are of other values than these." : range);
    const promised = (plan.promises ?? []).map((x) => `${titles([stepOf(x.promise)])} ${show(x.value, "s")} of ${show(x.limit, "s")}: ${x.word}${x.chance === null ? "" : `, holds in ${Math.round(100 * x.chance)} of 100 cases`}`);
    put($("promised"), moved ? promised.join("; ") : "");
    put($("outside"), moved && plan.outside?.length ? `outside the fit: ${plan.outside.join(", ")}` : "");
  }
  const stepOf = (name) => data.live.promises.find((x) => x.name === name).step;
  const titles = (words) => words.map((word) => data.live.titles[word] ?? word).join(" and ");
  function verdict(plan) {
    const box = $("verdict"), p = document.createElement("p");
    if (!plan.feasible) {
      p.append("No plan keeps every promise. The nearest one misses ");
      const missed = plan.missed.map((x) => `${data.live.titles[x.name] ?? x.name} by ${x.factor < 3 ? figure((x.factor - 1) * 100) + "%" : "a factor of " + figure(x.factor)}`);
      const strong = document.createElement("b");
      strong.className = "broken"; strong.textContent = missed.join(" and ") || "all of them together";
      p.append(strong, ". Loosen a promise, or give more memory, bandwidth or a shorter prompt.");
      if (box.textContent !== p.textContent) box.replaceChildren(p);
      return;
    }
    const strong = (words) => { const b = document.createElement("b"); b.textContent = words; return b; };
    p.append(strong(plan.layouts.join("; ")), ` on ${plan.chips}, ${plan.batch.toLocaleString("en")} sequences in flight, ${plan.per_replica.toLocaleString("en")} per replica. `);
    if (plan.breaks.length) p.append(plan.breaks_at, " would break ", strong(titles(plan.breaks)), ". ");
    const most = plan.steps.reduce((m, x) => (x[1] > (m?.[1] ?? 0) ? x : m), null);
    if (most) p.append("The largest part of a step is ", strong(most[0] === "kv" ? "reading the KV cache" : most[0]), ". ");
    if (solved.feasible && plan.layouts.join() !== solved.layouts.join()) p.append(`The layout has switched from ${solved.layouts.join("; ")}.`);
    if (box.textContent !== p.textContent) box.replaceChildren(p);
  }

  function steps(plan) {
    $("steps").hidden = !plan.steps.length;
    if (!plan.steps.length) return;
    const sum = (parts) => parts.reduce((m, [, x]) => m + x, 0), mine = sum(plan.steps), old = sum(solved.steps ?? []);
    const moved = solved.feasible && Math.abs(mine / old - 1) > 1e-9;
    if (same("steps", plan.steps, moved)) return;
    $("step-words").textContent = `${show(mine, "s")} to give every sequence its next token`;
    Pictures.bar($("step"), plan.steps, Math.max(mine, moved ? old : 0), (x) => show(x, "s"), "parts of a step",
      moved ? { parts: solved.steps, words: `thin: as solved, ${show(old, "s")}` } : null);
  }
  function memories(plan) {
    const place = $("memory");
    if (same("memory", plan.memories)) return;
    place.replaceChildren();
    for (const memory of plan.memories) {
      const title = document.createElement("h2"), words = paragraph("", "quiet"), box = document.createElement("figure");
      const whole = memory.lines.reduce((m, [, x]) => m + x, 0), free = memory.lines.find(([name]) => name === "free")?.[1] ?? 0;
      title.textContent = memory.title[0].toUpperCase() + memory.title.slice(1);
      words.textContent = `${show(whole - free, "byte")} of ${show(whole, "byte")} in use or reserved`;
      place.append(title, words, box);
      Pictures.bar(box, memory.lines, whole, (x) => show(x, "byte"), memory.title);
    }
  }
  const dot = (plan) => plan.feasible && plan.outputs.tpot ? [1 / plan.outputs.tpot, plan.outputs[main.name]] : null;
  let cloud = { dots: [], edge: [] };
  function frontier(plan) {
    $("curve").hidden = !cloud.edge.length;
    const tpot = outputs.find((o) => o.name === "tpot"), promise = tpot && promiseOf(tpot);
    const moved = Object.keys(state).length > 0 && solved.feasible;
    Pictures.frontier($("frontier"), cloud, dot(plan), moved ? dot(solved) : null, promise ? 1 / promise : null,
      (x) => show(x, main.unit), { title: "price against speed", speed: "tokens per second to each user" });
  }
  function growth(plan) {
    const grown = plan.feasible ? model.growth(state, plan.choice) : null;
    $("growing").hidden = !grown;
    Pictures.growth($("growth"), grown, (x) => show(x, "s"));
  }
  function* tornado(plan) {
    $("moving").hidden = !plan.feasible;
    if (!plan.feasible) return;
    const price = plan.score, share = (made) => (made.feasible ? made.score / price - 1 : NaN), rows = [];
    for (const s of sliders.filter((s) => s.value !== null && valueOf(s) > 0)) {
      const row = { label: s.label, held: [], free: [] };
      for (const factor of [0.8, 1.2]) {
        const value = valueOf(s) * factor, to = { ...state, [s.name]: s.whole ? Math.round(value) : Math.min(value, s.unit === "1" ? 0.99 : Infinity) };
        row.held.push(share(model.choose(to, plan.choice))); yield;
        row.free.push(share(model.choose(to))); yield;
      }
      rows.push(row);
    }
    const size = (row) => Math.max(...[...row.held, ...row.free].map((x) => (Number.isFinite(x) ? Math.abs(x) : 0)));
    Pictures.tornado($("tornado"), rows.sort((x, y) => size(y) - size(x)));
  }
  // What does not have to be there at once, all but the answer, a step and the memory: pictures on the
  // screen, and when the hand rests those that are not and what asks for another search.
  const seen = new Set(), watch = new IntersectionObserver((places) => {
    for (const { target, isIntersecting } of places) seen[isIntersecting ? "add" : "delete"](target.id);
  }, { rootMargin: "200px" });
  function* rest(plan) {
    const dots = [], more = [], tpot = plan.feasible && plan.outputs.tpot, pictures = [["curve", frontier], ["growing", growth]];
    const near = pictures.filter(([id]) => seen.has(id));
    for (const [, picture] of near) { picture(plan); yield; }
    yield REST;
    write();
    for (const one of pictures) if (!near.includes(one)) { one[1](plan); yield; }
    equations(plan); yield;
    for (const _ of model.clouded(state, dots)) yield;
    cloud = { dots, edge: model.edge(dots) };
    frontier(plan); yield;
    if (tpot) for (const _ of model.paced(state, tpot, more)) yield;
    if (more.length) { cloud = { dots: [...dots, ...more], edge: model.edge([...dots, ...more]) }; frontier(plan); }
    yield* tornado(plan);
  }
  function equations(plan) {
    for (const place of document.querySelectorAll("[data-value]")) {
      const name = place.dataset.value, value = plan.feasible ? plan.symbols[name] ?? plan.values[name] : undefined;
      put(place, show(value, place.dataset.unit));
    }
  }
  const command = () => {
    const sets = Object.entries(state).flatMap(([name, value]) => {
      const slider = byName.get(name);
      return Object.entries(slider.sets).map(([path, base]) => {
        const number = Number((slider.value && Object.keys(slider.sets).length > 1 ? base * value / slider.value : value).toPrecision(12));
        return slider.written ? ` --set '${path}=${number} ${slider.written}'` : ` --set ${path}=${number}`;
      });
    });
    return `planner solve ${data.file}${sets.join("")}`;
  };
  function reproduce() {
    const without = Object.keys(state).filter((name) => !Object.keys(byName.get(name).sets).length).map((name) => byName.get(name).label.toLowerCase());
    put($("command"), command());
    put($("uncommanded"), without.length ? `No scenario says ${without.join(" and ")}: the line leaves that out.` : "");
  }

  // ---- drawing ----
  const SLICE = 5, REST = 100; // milliseconds of work between two frames; without a move, to be at rest
  let waiting = 0, idle = 0, last = null;
  function later() { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); }); }
  function draw() {
    const begun = performance.now();
    const plan = model.choose(state, held && solved.feasible ? solved.choice : null);
    last = plan;
    place(); verdict(plan); reproduce();
    put($("notice"), ignored.length ? `Left out of the address: ${ignored.join("; ")}.` : "");
    $("notice").hidden = !ignored.length;
    beside(plan);
    for (const id of ["head", "steps", "memory"]) $(id).hidden = !plan.feasible;
    if (plan.feasible) { headline(plan); steps(plan); memories(plan); } else put($("mini"), "no plan keeps every promise");
    root.dataset.drawn = (performance.now() - begun).toFixed(1);
    root.dataset.idle = "0";
    clearTimeout(idle);
    sliced(rest(plan));
  }
  function sliced(work, wait = 0) {
    idle = setTimeout(() => {
      const begun = performance.now();
      let done = false, pause;
      while (!done && !pause && performance.now() - begun < SLICE) ({ done, value: pause } = work.next());
      root.dataset.slice = Math.max(Number(root.dataset.slice ?? 0), performance.now() - begun).toFixed(1);
      if (done) root.dataset.idle = "1"; else sliced(work, pause);
    }, wait);
  }

  // ---- does it choose as Python did? ----
  function checked() {
    const carried = data.carried;
    if (carried.feasible !== solved.feasible) return `Python ${carried.feasible ? "has a plan and this page has none" : "has no plan and this page has one"}`;
    if (!solved.feasible) return "";
    if (carried.layout && carried.layout !== solved.layouts.join(", ")) return `the layout differs: ${solved.layouts.join("; ")}`;
    let worst = 0;
    for (const [name, value] of Object.entries(carried.outputs)) {
      const off = Math.abs(solved.outputs[name] / value - 1);
      if (!(off <= 1e-9)) return `${name} differs by ${figure(off)}`;
      worst = Math.max(worst, off);
    }
    carried.worst = worst;
    return "";
  }

  // ---- downloads ----
  function save(name, words, type) {
    const link = document.createElement("a"), url = URL.createObjectURL(new Blob([words], { type }));
    Object.assign(link, { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  const finite = (key, value) => (typeof value === "number" && !Number.isFinite(value) ? null : value);
  const saves = {
    // Names and places of the document that the command prints.
    json: () => save("plan.json", JSON.stringify({ problem: data.problem, feasible: last.feasible, plan: last.feasible ? last.outputs : null, promises: last.promises ?? [], layouts: last.layouts, missed: last.missed, command: command(), state }, finite, 2), "application/json"),
    csv: () => save("frontier.csv", `tokens_per_s_per_user,${main.name}\n` + cloud.edge.map((row) => row.join(",")).join("\n") + "\n", "text/csv"),
    svg: () => document.querySelectorAll(".story svg").forEach((svg, k) => save(`picture-${k + 1}.svg`, Pictures.resolved(svg), "image/svg+xml")),
  };

  build();
  const fault = checked();
  document.body.classList.remove("still");
  root.dataset.checked = fault ? "no" : "yes";
  if (fault) {
    for (const slider of sliders) slider.input.disabled = true;
    $("self").textContent = `On opening, this page chose the plan again and did not agree with the answer it carries: ${fault}. The sliders are locked; what stands here is the plan as solved.`;
    document.body.classList.add("still");
    return;
  }
  $("self").textContent = solved.feasible
    ? `✓ On opening, this page chose the plan again by itself and compared it with the answer it carries: same layout, same batch, numbers equal to ${figure(Math.max(data.carried.worst, 1e-16), 1)}.`
    : "✓ On opening, this page searched again by itself: no plan keeps every promise, as the answer it carries says.";
  for (const place of document.querySelectorAll("[data-live]")) place.hidden = false;
  $("still").open = false;
  $("free").addEventListener("click", () => { held = false; later(); });
  $("hold").addEventListener("click", () => { held = true; later(); });
  $("reset").addEventListener("click", () => { state = {}; held = false; ignored = []; later(); });
  $("link").addEventListener("click", async () => {
    write();
    try { await navigator.clipboard.writeText(location.href); $("link").textContent = "Copied"; }
    catch { $("link").textContent = "The address of this page is the link"; }
    setTimeout(() => { $("link").textContent = "Copy link"; }, 2000);
  });
  for (const name in saves) $("save-" + name).addEventListener("click", saves[name]);
  addEventListener("hashchange", () => { read(); draw(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; Pictures.resized(); before.clear(); later(); } });
  for (const id of ["curve", "growing"]) watch.observe($(id));
  read();
  draw();
})();
