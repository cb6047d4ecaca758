"use strict";
// The search of a serving plan: bisection for the largest batch of every layout, then the ends of
// groups and cells, over every row; of equal prices the faster plan. As planner/problems/serving/search.
function pageModel(data, kernels) {
  const LETTERS = data.letters, LARGEST = data.largest_batch, SAME = data.same_price, TIE = data.tie, RECENT = 4;
  const LEVEL = 1 + TIE + 4 * SAME; // of the best score: what may be as good
  const place = new Map([...LETTERS].map((letter, k) => [letter, k]));
  const indices = data.indices.map((text) => {
    const wide = text[0] === "1", letters = text.slice(1), index = [];
    for (let k = 0; k < letters.length; k += wide ? 2 : 1)
      index.push(wide ? place.get(letters[k]) * LETTERS.length + place.get(letters[k + 1]) : place.get(letters[k]));
    return index;
  });
  const table = data.columns.map(([number, values]) => Float64Array.from(indices[number], (k) => values[k]));
  const words = (text) => text.split(" ").filter(Boolean);
  const signatures = data.kernels.map(({ names, width, functions }) => ({ width, names: names.map(words),
    functions: Object.fromEntries(Object.entries(functions).map(([name, text]) => [name, words(text)])) }));
  const pools = data.pools.map(unpacked);

  function unpacked(pool) {
    const columns = {};
    for (const [name, number] of Object.entries(pool.columns)) columns[name] = table[number];
    const ways = Object.fromEntries(Object.keys(columns).filter((name) => name.startsWith("way.")).map((name) => [name.slice(4), columns[name]]));
    const way = (name) => ways[name];
    const size = pool.rows, replica = new Float64Array(size), group = new Float64Array(size);
    for (let i = 0; i < size; i++) {
      group[i] = way("pp")[i] * way("dp_attention")[i] * way("cp")[i];
      replica[i] = way("tp")[i] * group[i];
    }
    const kernel = kernels[pool.kernel], names = signatures[pool.kernel];
    const taken = names.names[1].map((name) => columns[name]), rows = new Float64Array(taken.length * size);
    taken.forEach((column, k) => column.forEach((value, i) => { rows[i * taken.length + k] = value; }));
    const results = {};
    for (const name in names.functions) results[name] = new Float64Array(names.functions[name].length);
    const promised = names.functions.scored.filter((name) => name in pool.limits);
    results.promised = results.scored.subarray(0, promised.length);
    const place = { batch: names.names[2].indexOf("B"), fill: names.names[2].indexOf("r_fill") };
    const counts = Object.fromEntries(names.names[2].map((name, k) => [name, k]));
    const scored = Object.fromEntries(names.functions.scored.map((name, k) => [name, k]));
    return { ...pool, columns, way, group, replica, kernel, names, rows, size, results, place, counts, scored, promised,
             a: new Float64Array(taken.length), b: new Float64Array(names.names[2].length),
             last: new Float64Array(size), trial: new Float64Array(size), ends: new Float64Array(size), recent: [],
             rooms: new Float64Array(size), fewest: new Int32Array(size),
             follow: kernels[pool.follow], followed: signatures[pool.follow], chancy: pool.deviations !== null, values: { ...data.values, ...pool.values }, };
  }

  // What only a load or two pools need is there only where they are.
  const bind = boundPools(data, kernels, pools), packed = typeof packing === "function" ? packing() : null;
  const loaded = packed && loadedPools({ bind, nearby, lowered, passSizes, replicasMost: packed.replicasMost, winning, LARGEST, SAME, TIE });

  // ---- batches ----

  function between(low, high) {
    const least = Math.max(low, 1);
    return Math.floor(high > 4 * least ? Math.sqrt(least * high) : (low + high) / 2);
  }

  function bisected(holds, low = 0, high = LARGEST + 1) {
    while (high - low > 1) {
      const middle = between(low, high);
      if (holds(middle)) low = middle; else high = middle;
    }
    return low;
  }

  // The largest batch that holds, from where the last search of a row ended: most move little.
  function nearby(holds, last) {
    if (!holds(1)) return 0;
    let low = 1, high = LARGEST + 1, step = Math.max(1, Math.floor(last / 16));
    if (last > 1) {
      if (holds(last)) {
        for (low = last; low + step < high; step *= 4) { if (holds(low + step)) low += step; else { high = low + step; break; } }
      } else {
        for (high = last; high - step > low; step *= 4) { if (holds(high - step)) { low = high - step; break; } else high -= step; }
      }
    }
    return bisected(holds, low, high);
  }
  const largest = (b, i) => b.pool.crowds ? loaded.largest(b, i)
    : lowered(b, (batch) => b.keeps(i, batch), (b.pool.last[i] = nearby((batch) => b.holds(i, batch), b.pool.last[i])));

  // The largest batch, of at most `most`, that keeps its promises by chance, which is not always the
  // smaller the likelier: as `lowered` of planner/problems/serving/search/promise_limits.
  function lowered(b, keeps, most) {
    if (!b.chancy || most < 1 || keeps(most)) return most;
    let [ratio, end] = data.constants.lower, bad = most, good = 0;
    for (; ; ratio = Math.max(ratio ** 2, end)) {
      const tried = Math.floor(bad * ratio);
      if (tried < 1) return 0;
      if (keeps(tried)) { good = tried; break; }
      bad = tried;
    }
    while (bad - good > 1) { const middle = Math.floor((good + bad) / 2); if (keeps(middle)) good = middle; else bad = middle; }
    return good;
  }

  function worth(pool, i, most, pair = false) {
    if (most < 1) return [];
    if (pool.score === "latency" && !pair) return [1];
    const way = pool.way, group = pool.group[i], full = Math.floor(most / group);
    const cell = way("pp")[i] * way("dp_attention")[i], stages = way("pp")[i] * way("cp")[i];
    const tried = new Set([Math.max(full * group, 1)]);
    for (let number = 1; number <= way("cp")[i]; number++) {
      const end = Math.min(full * group + number * cell, most);
      tried.add(Math.max(end, 1));
      tried.add(Math.max(Math.floor(end / stages) * stages, 1));
    }
    return [...tried];
  }

  // Prompts in flight of a replica that reads alone: every number that a pass of each rank may hold.
  function passRun(b, i) {
    const fresh = b.values.L_in * (1 - b.values.x_hit), chunk = b.pool.columns.c_chunk ? b.pool.columns.c_chunk[i] : b.values.c_chunk;
    return [Math.max(Math.ceil(chunk / fresh), 1), b.pool.way("pp")[i] * b.pool.way("dp_attention")[i]];
  }
  const passMost = (b, i) => { const [most, ranks] = passRun(b, i); return most * ranks; };
  function passSizes(b, i) {
    const [most, ranks] = passRun(b, i), sizes = [1];
    let number = 1;
    while (number < most) {
      number = number >= data.every ? Math.floor(number * data.stride) : number + 1;
      sizes.push(Math.min(number, most));
    }
    return sizes.map((size) => size * ranks);
  }

  // Sequences in flight over all replicas; ranks and stages that read side by side have as many each.
  function spread(pool, i, totals) {
    const replicas = pool.way("replicas")[i];
    const alike = pool.mode === "prefill" ? pool.way("pp")[i] * pool.way("dp_attention")[i] : 1;
    return totals.map((total) => {
      const batch = alike * Math.ceil(total / (replicas * alike));
      return [batch, total / (batch * replicas)];
    });
  }

  // The score of a row on a batch, infinite where a promise breaks.
  function scored(b, i, batch, fill = 1) {
    if (!b.keeps(i, batch, fill)) return Infinity;
    const score = b.pool.results.scored[b.pool.scored[b.pool.score]];
    return b.pool.score === "requests" ? 1 / score : score;
  }

  // Whether no batch of a row can score `most` or less. T(B)/B never rises over full groups and a
  // promise once broken stays so: a full group that breaks one and scores worse decides the row.
  function hopeless(b, i, most) {
    const { pool } = b, batch = pool.trial[i];
    if (!batch || pool.score === "latency" || b.holds(i, batch)) return false;
    const score = pool.results.scored[pool.scored[pool.score]];
    return (pool.score === "requests" ? 1 / score : score) > most;
  }

  // The full group at which a row is tried next time: a little above what it holds now.
  function remember({ pool }, i, most) {
    pool.trial[i] = Math.ceil((1.1 * most + 1) / pool.group[i]) * pool.group[i];
  }

  // The fewest whole groups that are as cheap: past its critical batch a roofline is flat.
  function cheapest(b, i, end, goal) {
    const group = b.pool.group[i];
    let low = 0, high = Math.ceil(end / group);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (scored(b, i, middle * group) <= goal * (1 + SAME)) high = middle; else low = middle;
    }
    return Math.min(high * group, end);
  }

  // Rows that won lately, the last first: what one of them reaches now bounds a search of all.
  function winning(recent, row) {
    const at = recent.findIndex((x) => String(x) === String(row));
    if (at >= 0) recent.splice(at, 1);
    recent.unshift(row);
    recent.length = Math.min(recent.length, RECENT);
  }

  // Points of one pool that keep every promise, of all rows or of one; without those that `most`, or
  // what the best rows of searches before reach now, proves to be worse.
  function points(number, state, only = null, most = Infinity) {
    if (pools[number].load) return loaded.points(number, state, only, most);
    const b = bind(number, state), { pool, totals, allowed } = b, every = [];
    const reads = pool.mode === "prefill";
    const tried = (i) => (totals.length ? spread(pool, i, totals)
      : (reads ? passSizes(b, i) : worth(pool, i, largest(b, i))).map((batch) => [batch, 1]));
    const prunes = only === null && !totals.length && !reads;
    if (prunes)
      for (const i of pool.recent)
        if (allowed(i)) for (const [batch] of tried(i)) most = Math.min(most, scored(b, i, batch) * LEVEL);
    for (let i = only ?? 0; i < (only === null ? pool.size : only + 1); i++) {
      if (!allowed(i) || (prunes && hopeless(b, i, most))) continue;
      for (const [end, fill] of tried(i)) {
        const goal = scored(b, i, end, fill), r = pool.results.scored;
        if (goal === Infinity || (prunes && goal > most)) continue;
        if (prunes) most = Math.min(most, goal * LEVEL);
        const batch = pool.bound && pool.score !== "latency" && !totals.length ? cheapest(b, i, end, goal) : end, score = scored(b, i, batch, fill);
        every.push({ row: i, batch, fill, score, latency: r[pool.scored.latency], pool: number, paid: pool.way("chips")[i], odd: () => b.bands.odd(i, batch) });
      }
      if (prunes) remember(b, i, pool.last[i]);
    }
    if (prunes && every.length) winning(pool.recent, every.reduce((m, x) => (m.score <= x.score ? m : x)).row);
    return every;
  }

  // Points that are about as good as the best, the plainer first; as plainest_first.
  function best(every) {
    const least = every.reduce((m, x) => Math.min(m, x.score), Infinity);
    return sorted(every.filter((x) => x.score <= least * (1 + TIE)), (x) => {
      const pool = pools[x.pool], way = (name) => pool.way(name)[x.row];
      return [...plainness(x), Math.floor(Math.log(x.score / least) / SAME), Math.round(x.latency * 1e12),
              pool.replica[x.row], way("pp"), way("dp_attention"), way("tp_expert"), way("halves"), way("dcp")];
    });
  }
  const plainness = (x) => [Number(x.odd() >= data.constants.odd[0]), x.paid, x.odd()];
  // By keys that are lists of numbers.
  function sorted(every, key) {
    const keyed = every.map((x) => [key(x), x]);
    keyed.sort(([x], [y]) => { const k = x.findIndex((value, at) => value !== y[at]); return k < 0 ? 0 : x[k] - y[k]; });
    return keyed.map(([, x]) => x);
  }

  function nearest(state) {
    let found = null;
    for (const number of data.questions.flatMap((q) => (q.pool === undefined ? [] : [q.pool]))) {
      const b = bind(number, state), names = b.pool.promised;
      if (b.pool.load) {
        const near = loaded.nearest(number, state);
        if (near && (!found || near.worst < found.worst)) found = { worst: near.worst, missed: overdrawn(near.missed) };
        continue;
      }
      const every = [];
      for (let i = 0; i < b.pool.size; i++) {
        if (!b.allowed(i)) continue;
        for (const [batch, fill] of b.totals.length ? spread(b.pool, i, b.totals) : [[b.pool.mode === "prefill" ? passSizes(b, i)[0] : 1, 1]]) {
          const late = b.late(i, batch), r = Array.from(b.promises(i, batch, fill), (x, k) => x * late[k] / b.most[k]);
          const hard = Math.max(...r.filter((_, k) => data.physics.includes(names[k])));
          every.push([hard, Math.max(...r), r]);
        }
      }
      const fits = every.some(([hard]) => hard <= 1);
      const allowed = every.filter(([hard]) => !fits || hard <= 1);
      const near = allowed.reduce((m, x) => (m && m[1] <= x[1] ? m : x), null);
      if (near && (!found || near[1] < found.worst))
        found = { worst: near[1], missed: overdrawn(near[2].map((factor, k) => ({ name: names[k], factor }))) };
    }
    return found ? found.missed : [];
  }
  const overdrawn = (factors) => factors.filter((x) => x.factor > 1).sort((x, y) => y.factor - x.factor);

  // ---- what the page asks ----

  let leading = 0; // the question whose plan won last: what it reaches bounds the search of others
  function choose(state, held = null) {
    const numbers = held ? [held.question] : data.questions.map((_, k) => k).sort((x, y) => (y === leading) - (x === leading));
    let every = [], least = Infinity;
    for (const number of numbers) {
      const points = answered(number, state, held, least * LEVEL);
      every.push(...points);
      least = points.reduce((m, x) => Math.min(m, x.score), least);
    }
    if (!every.length) return { feasible: false, missed: nearest(state) };
    // Of each question the first that is about as good, of those the plainest.
    every = every.filter((x) => x.score <= least * (1 + TIE)).sort((x, y) => x.question - y.question);
    const firsts = every.filter((x, k) => every.findIndex((y) => y.question === x.question) === k);
    const point = firsts.length > 1 ? sorted(firsts, plainness)[0] : firsts[0];
    leading = point.question;
    return point.rows ? together.described(point, state) : described(point, state);
  }

  // Points of a question that are about as good as its best, the plainest first.
  function answered(number, state, held, most) {
    const question = data.questions[number];
    const every = question.pool === undefined ? together.searched(question, state, held, most)
      : best(points(question.pool, state, held ? held.row : null, most));
    return every.map((x) => ({ ...x, question: number }));
  }

  function laid(pool, i, replicas = pool.way("replicas")[i]) {
    const way = (name) => pool.way(name)[i], words = pool.words;
    const whole = [["PP", "pp"], ["TP", "tp"], ["DP", "dp_attention"], ["CP", "cp"]];
    const inner = way("dcp") > 1 ? { tp: " (DCP" + way("dcp") + ")" } : {};
    const ways = whole.filter(([, name]) => way(name) > 1)
      .map(([word, name]) => word + way(name) + (inner[name] || ""));
    const experts = way("ep") > 1 ? ["EP" + way("ep")] : [];
    if (way("tp_expert") > 1) experts.push((experts.length ? "" : "experts ") + "TP" + way("tp_expert"));
    const parts = [ways.join(" × ") || "TP1"];
    if (experts.length) parts.push(experts.join(" × "));
    if (way("halves") > 1) parts.push("dual-batch overlap");
    if (words.redundant_experts) parts.push(words.redundant_experts + " redundant experts");
    if (words.drafts) parts.push(words.drafts + " draft token" + (words.drafts > 1 ? "s" : ""));
    const text = parts.join(", ");
    return replicas > 1 ? replicas + " × (" + text + ")" : text;
  }

  function memory(b, i, batch, values) {
    const pool = b.pool, way = (name) => pool.way(name)[i], words = pool.words;
    const sequences = Math.ceil(Math.ceil(batch / way("dp_attention")) / way("cp"));
    const state = sequences * words.state / way("tp") * (Math.ceil(words.layers / way("pp")) / words.layers);
    return [["weights", values["memory.weights"]], ["kv", values["memory.kv"] - state], ["state", state],
            ["activations", values["memory.activations"]], ["reserved", values["memory.reserved"]],
            ["free", b.values.M_cap - values.need]];
  }

  const bandsAt = (b, i, batch) => (b.pool.bound ? {} : b.bands.at(i, batch).bands);
  const outside = (b, i, batch) => (b.pool.bound ? [] : b.bands.at(i, batch).outside);

  const stepOf = (values) => data.parts.map((part) => [part, values["part." + part]]);

  function described(point, state) {
    const b = bind(point.pool, state), pool = b.pool, i = point.row;
    if (pool.load) loaded.ready(b, point);
    const values = b.outputs(i, point.batch, point.fill), outputs = {};
    for (const output of data.outputs)
      if (output.word in values && !data.absent[pool.mode].includes(output.name))
        outputs[output.name] = values[output.word] * output.scale;
    const chips = point.chips ?? pool.way("chips")[i], batch = inFlight(values.sequences);
    outputs.batch = batch;
    return {
      feasible: true, choice: point, score: point.score, outputs, symbols: values, values: b.values,
      layouts: [laid(pool, i, point.replicas)], chips: chips + " " + pool.words.chip,
      formats: "weights " + pool.words.weights + ", KV cache " + pool.words.kv,
      batch, per_replica: point.batch,
      ...(pool.load ? loaded.broken(b, point, Object.entries(b.limits)) : broken(b, i, point.batch)),
      steps: pool.mode === "prefill" || pool.bound ? [] : stepOf(values),
      outside: outsideWords([["", outside(b, i, point.batch)]], data.constants),
      promises: promisesOf(data, b.limits, { ...values, rest: values.tpot * (b.values.L_out - 1) }, bandsAt(b, i, point.batch)),
      memories: [{ title: "memory of one chip", lines: memory(b, i, point.batch, values) }],
    };
  }

  // What one sequence more, or one more for every chip, would break.
  function broken(b, i, batch) {
    const promised = b.pool.promised, late = b.late(i, batch);
    for (const [more, words] of [[1, "One sequence more"], [b.pool.group[i], "One sequence more on every rank"]]) {
      const next = Array.from(b.promises(i, batch + more, 1), (x, k) => x * late[k] / b.most[k]);
      const breaks = promised.map((name, k) => [name, next[k]]).filter(([, x]) => !(x <= 1));
      if (breaks.length) return { breaks: breaks.sort((x, y) => y[1] - x[1]).map(([name]) => name), breaks_at: words };
    }
    return { breaks: [], breaks_at: "" };
  }

  // Price and speed of every layout at batches that double, and of each where it is cheapest: a few
  // rows at a time, so that a page need not wait for all of them.
  function* clouded(state, dots) {
    for (const { pool: number } of data.questions) {
      if (number === undefined || pools[number].mode === "prefill") continue;
      if (pools[number].load) { yield* loadCloud(number, state, dots); continue; }
      const pool = pools[number], { tpot, [data.outputs[0].word]: price } = pool.scored;
      const without = pool.promised.indexOf("tpot"), ends = pool.ends;
      for (let i = 0; i < pool.size; i++) {
        const b = bind(number, state), r = pool.results.scored;
        if (!b.allowed(i)) continue;
        const most = lowered(b, (batch) => b.keeps(i, batch, 1, without), (ends[i] = nearby((batch) => b.holds(i, batch, 1, without), ends[i])));
        const dot = (batch) => { b.score(i, batch); dots.push([1 / r[tpot], r[price] * data.outputs[0].scale]); };
        for (let batch = pool.group[i]; batch < most; batch *= 2) dot(batch);
        if (most >= 1) dot(Math.max(Math.floor(most / pool.group[i]) * pool.group[i], 1));
        if (i % 16 === 15) yield;
      }
    }
  }

  // Under a load of every layout on the fewest chips and on more, each with the batch that gathers.
  function* loadCloud(number, state, dots) {
    const pool = pools[number], { paid, grows } = pool.load, { tpot, [data.outputs[0].word]: price } = pool.scored;
    const without = pool.promised.indexOf("tpot");
    for (let i = 0; i < pool.size; i++) {
      const b = bind(number, state), r = pool.results.scored;
      const least = b.allowed(i) ? loaded.fitted(b, i, paid.length - 1, without) : null;
      for (let k = least && grows ? paid.indexOf(least.chips) : 0; least && k < (grows ? paid.length : 1); k += Math.max(1, Math.ceil(k / 4))) {
        const point = k && grows && paid[k] !== least.chips ? loaded.on(b, i, paid[k], without) : least;
        if (!point) continue;
        loaded.ready(b, point);
        b.score(i, point.batch);
        dots.push([1 / r[tpot], r[price] * data.outputs[0].scale]);
      }
      if (i % 4 === 3) yield;
    }
  }

  // Of dots the cheapest at each speed.
  function edge(dots) {
    const made = [];
    let least = Infinity;
    for (const dot of [...dots].sort((x, y) => y[0] - x[0] || x[1] - y[1]))
      if (dot[1] < least) { least = dot[1]; made.push(dot); }
    return made.reverse();
  }

  // Price and speed of the best plan at promises around one, where pools are paired; one at a time.
  function* paced(state, pace, dots) {
    if (data.questions.every((q) => q.pool !== undefined)) return;
    for (let k = -7; k < 4; k++) {
      const plan = choose({ ...state, pace: pace * 4 ** (k / 4) });
      if (plan.feasible) dots.push([1 / plan.outputs.tpot, plan.outputs[data.outputs[0].name]]);
      yield;
    }
  }

  // The parts of a step against the batch, on one layout.
  function growth(state, point) {
    const b = bind(point.rows ? point.decode : point.pool, state), pool = b.pool;
    const i = point.rows ? point.rows[1] : point.row;
    if (pool.mode === "prefill" || pool.bound) return null;
    if (pool.load) loaded.ready(b, point);
    const need = pool.promised.indexOf("need");
    const wall = bisected((batch) => b.promises(i, batch, 1)[need] <= b.limits.need);
    const end = Math.max(8, Math.min(point.batch * 4, LARGEST)), rows = [];
    for (let k = 0; k <= 60; k++) {
      const batch = Math.max(1, Math.round(Math.exp(Math.log(end) * k / 60)));
      if (rows.length && rows[rows.length - 1].batch === batch) continue;
      rows.push({ batch, parts: stepOf(b.outputs(i, batch)).map(([, x]) => x) });
    }
    const limit = b.limits.tpot === undefined ? null : b.limits.tpot * b.values.g;
    return { rows, wall: wall < end ? wall : null, limit, at: point.batch, parts: data.parts };
  }

  const together = typeof pairedPools !== "function" ? null : pairedPools({ data, packed, loaded, kernels, signatures, bind, largest, remember, winning, worth, passSizes, passMost, laid, memory, stepOf, broken, outside, bandsAt, sorted, SAME, TIE, LEVEL });
  return { choose, clouded, edge, paced, growth, points, bind, pools };
}
