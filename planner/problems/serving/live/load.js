"use strict";
// One pool under a load: the batch that gathers, and the fewest chips that keep the promises. As
// planner/problems/serving/search/sizing and step/occupancy.
const FEW = 1e-9, BESIDE = 0.75, EVEN = 1e-6, STEEPEST = 0.99;

// The smallest whole number in (low, high] for which `holds`, from where it was the last time.
function first(holds, low, high, near = 0) {
  let step = Math.max(1, Math.floor(near / 16));
  if (near > low && near < high) {
    if (holds(near)) for (high = near; high - step > low; step *= 4) { if (holds(high - step)) high -= step; else { low = high - step; break; } }
    else for (low = near; low + step < high; step *= 4) { if (holds(low + step)) { high = low + step; break; } else low += step; }
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle; else low = middle;
  }
  return high;
}

// The smallest batch of a row, of at most `most`, that `carries`; 0 if none. Throughput grows from
// one full group to the next, and within a group in pieces where no ceiling moves.
function carrying(pool, i, carries, most, near = 0) {
  const way = (name) => pool.way(name)[i], group = pool.group[i], groups = Math.max(Math.floor(most / group), 1);
  if (!carries(groups * group)) return 0;
  const before = (first((n) => carries(n * group), 0, groups, Math.ceil(near / group)) - 1) * group;
  const cell = way("pp") * way("dp_attention"), full = way("pp") * way("cp");
  let start = before, end = before + group;
  for (let number = 1; number <= way("cp"); number++) {
    const low = before + (number - 1) * cell, high = low + cell, none = Math.floor(low / full), last = Math.floor(high / full);
    if (last > none && carries(Math.max(last * full, 1))) {
      const whole = first((n) => carries(n * full), none, last);
      start = Math.max(low, (whole - 1) * full); end = whole * full;
      break;
    }
    if (carries(high)) { start = Math.max(low, last * full); end = high; break; }
  }
  return first(carries, start, end);
}

function loadedPools({ bind, nearby, lowered, passSizes, replicasMost, winning, LARGEST, SAME, TIE }) {
  // Whether memory, and the engine's limits of a step, let in so many sequences.
  const holds = (b, i, batch) => { const r = b.at("needed", i, batch); return b.pool.occupancy_limits.every((name, k) => r[k] <= b.limits[name]); };

  // Sequences that a replica of a row has room for, and how many add as much to a step as there is
  // without any.
  function room(b, i) {
    if (Number.isNaN(b.room[i])) {
      b.room[i] = nearby((batch) => holds(b, i, batch), b.pool.rooms[i] || 1);
      b.pool.rooms[i] = b.room[i];
      const group = b.pool.group[i], most = Math.max(Math.floor(b.room[i] / group), 1) * group;
      const less = most > group ? Math.floor(BESIDE * most / group) * group : BESIDE * most;
      const [time] = b.at("paced", i, most);
      const grows = Math.min(STEEPEST, Math.max(EVEN, (1 - b.at("paced", i, less)[0] / time) / (1 - less / most)));
      b.flat[i] = most * (1 / grows - 1);
    }
    return b.room[i];
  }

  // A row on so many chips, with as many replicas as they hold or its own.
  function sized(b, i, chips) {
    const { pool } = b, way = (name) => pool.way(name)[i], load = pool.load;
    const stage = { stage: pool.group[i] / way("pp") * way("tp"), stages: way("pp"), domain: pool.words.domain };
    const replicas = load.grows ? replicasMost(chips, stage) : way("replicas");
    b.counted({ n_rep: Math.max(replicas, FEW), n_up: Math.max(replicas - load.spare, FEW), n_chips: chips });
    return { row: i, fill: 1, chips, replicas };
  }

  // Share of time in which a rank has more in flight than it has room for.
  function crowded(b, i, batch) {
    const ranks = b.pool.way("dp_attention")[i], most = room(b, i);
    b.counted({ n_flat: b.flat[i] });
    const r = b.at("gathered", i, batch);
    return Crowding.exceeding(r[0], r[1], Math.floor(most / ranks));
  }
  const roomy = (b, i, batch) => b.limits.crowded === undefined || crowded(b, i, batch) <= b.limits.crowded;
  const keeps = (b, i, batch, without = -1) => b.keeps(i, batch, 1, without) && roomy(b, i, batch);

  // Of prompts that may share a pass as many as carry the load and come first, those in time before.
  function quickest(b, i, loads = () => {}) {
    const late = b.pool.scored.ttft, load = b.pool.promised.indexOf("load");
    let best = null;
    for (const batch of passSizes(b, i)) {
      loads(batch);
      const kept = b.keeps(i, batch), ttft = b.pool.results.scored[late];
      if (!(b.promises(i, batch)[load] <= b.limits.load)) continue;
      if (!best || (kept && !best.kept) || (kept === best.kept && ttft < best.ttft)) best = { batch, kept, ttft };
    }
    return best ? best.batch : 0;
  }

  // The largest batch of a row that keeps its promises, room for caches among them.
  function largest(b, i) {
    b.pool.last[i] = nearby((batch) => b.holds(i, batch) && roomy(b, i, batch), b.pool.last[i]);
    return lowered(b, (batch) => keeps(b, i, batch), b.pool.last[i]);
  }

  // The batch that gathers where a row has so many chips, 0 if it cannot carry the load.
  function gathers(b, i) {
    if (b.pool.mode === "prefill") return quickest(b, i);
    const batch = carrying(b.pool, i, (n) => b.at("carried", i, n)[0] <= b.limits.load, LARGEST, b.pool.last[i]);
    if (batch) b.pool.last[i] = batch;
    return batch;
  }

  // Whether a full group neither carries the load nor keeps a promise that larger ones break too.
  function short({ pool, limits, promises }, i, batch, without) {
    const r = promises(i, batch), over = (name) => { const k = pool.promised.indexOf(name); return k >= 0 && k !== without && r[k] > limits[name]; };
    return !(r[pool.promised.indexOf("load")] <= limits.load) && (over("need") || over("tpot"));
  }

  // A row on so many chips, null where it does not keep its promises there: of one that did not the
  // last time, the batch that showed it is tried first.
  function on(b, i, chips, without) {
    const { pool } = b, point = sized(b, i, chips), reads = pool.mode === "prefill", group = pool.group[i];
    if (!(point.replicas > pool.load.spare)) return null;
    if (!reads && pool.trial[i] && short(b, i, pool.trial[i], without)) return null;
    const batch = gathers(b, i);
    if (batch && keeps(b, i, batch, without)) return { ...point, batch };
    if (!reads && batch)
      pool.trial[i] = [0.9, 0.97].map((x) => Math.floor(x * batch / group) * group).find((full) => full && short(b, i, full, without)) ?? 0;
    return null;
  }

  // A row on the fewest chips that keep its promises, of at most the one at `top`.
  function fitted(b, i, top, without = -1) {
    const { paid, grows } = b.pool.load, own = b.pool.way("chips")[i], tried = (chips) => on(b, i, chips, without);
    if (!grows) return tried(own);
    let best = tried(paid[top]);
    if (!best) return null;
    const least = first((k) => { const point = tried(paid[k]); if (point) best = point; return point; }, -1, top, b.pool.fewest[i]);
    b.pool.fewest[i] = least;
    return best;
  }

  // Points of every row, or of one. More chips cost more, so that where the price is made small a
  // row is looked at on no more than the best has, or than cost `most`.
  function points(number, state, only = null, most = Infinity) {
    const b = bind(number, state), { pool } = b, { paid, grows, priced } = pool.load, every = [], prunes = grows && priced && only === null;
    let top = paid.length - 1;
    const score = (i, batch) => { const x = b.score(i, batch)[pool.scored[pool.score]]; return pool.score === "requests" ? 1 / x : x; };
    while (prunes && most < Infinity && top >= 0 && (sized(b, 0, paid[top]), score(0, 1) > most)) top--;
    const look = (i) => {
      const point = top >= 0 && b.allowed(i) ? fitted(b, i, top) : null;
      if (!point) return;
      ready(b, point);
      every.push({ ...point, pool: number, score: score(i, point.batch), latency: pool.results.scored[pool.scored.latency], paid: point.chips, odd: () => b.bands.odd(i, point.batch) });
      if (prunes) top = Math.min(top, paid.findLastIndex((chips) => chips <= point.chips * (1 + TIE)));
    };
    if (only !== null) look(only);
    else {
      const recent = [...pool.recent];
      recent.forEach(look);
      for (let i = 0; i < pool.size; i++) if (!recent.includes(i)) look(i);
      if (every.length) winning(pool.recent, every.reduce((m, x) => (m.score <= x.score * (1 + SAME) ? m : x)).row);
    }
    return every;
  }
  const ready = (b, { row, chips }) => { if (b.pool.crowds) { room(b, row); b.counted({ n_flat: b.flat[row] }); } return sized(b, row, chips); };

  // How far the nearest row is from what it must keep, on the most chips: factors by name.
  function nearest(number, state) {
    const b = bind(number, state), { pool } = b, { paid, grows } = pool.load, names = pool.promised;
    let near = null;
    for (let i = 0; i < pool.size; i++) {
      if (!b.allowed(i)) continue;
      sized(b, i, grows ? paid[paid.length - 1] : pool.way("chips")[i]);
      const batch = gathers(b, i) || Math.max(1, pool.mode === "prefill" ? passSizes(b, i)[0] : nearby((n) => holds(b, i, n), 1));
      const late = b.late(i, batch), missed = Array.from(b.promises(i, batch), (x, k) => ({ name: names[k], factor: x * late[k] / b.most[k] }));
      if (b.limits.crowded !== undefined) missed.push({ name: "crowded", factor: crowded(b, i, batch) / b.limits.crowded });
      const worst = missed.reduce((m, x) => Math.max(m, Number.isFinite(x.factor) ? x.factor : 1e9), 0);
      if (!near || worst < near.worst) near = { worst, missed };
    }
    return near;
  }

  // What fewer chips would break.
  function broken(b, point, named) {
    const { paid, grows } = b.pool.load, at = paid.indexOf(point.chips);
    if (!grows || at < 1) return { breaks: [], breaks_at: "" };
    sized(b, point.row, paid[at - 1]);
    const batch = gathers(b, point.row), names = b.pool.promised;
    let breaks = batch ? named.filter(([name]) => name === "crowded" && crowded(b, point.row, batch) > b.limits.crowded).map(([name]) => name) : ["load"];
    const late = batch ? b.late(point.row, batch) : [];
    if (batch) breaks = [...names.filter((_, k) => !(b.promises(point.row, batch)[k] * late[k] <= b.most[k])), ...breaks];
    ready(b, point);
    return { breaks, breaks_at: `${paid[at - 1]} chips` };
  }

  return { points, ready, fitted, on, nearest, broken, largest, roomy, quickest };
}
