"use strict";
// A pool at what the sliders say: the stages of its kernel on typed arrays. What depends on a layout
// is computed when a row is first looked at, and kept while only promises move.
const KEPT = 4; // states of a pool whose layouts are kept: the page asks for few at a time
// Sequences in flight as a whole number, of two that are as near the even one, as Python rounds.
const inFlight = (x) => { const up = Math.round(x); return Math.max(1, up - x === 0.5 && up % 2 ? up - 1 : up); };
function boundPools(data, kernels, pools) {
  const physical = data.sliders.filter((s) => [...s.sets, ...s.adds, ...s.times].length);
  const promised = data.sliders.filter((s) => s.limit);
  const states = pools.map(() => []), [readers, decoders] = ["read", "decode"].map((pool) => new Set(data.questions.map((question) => question[pool])));

  // A pool with the promises of a state; with a pace, of another time per token.
  function bind(number, state) {
    const pool = pools[number], key = physical.map((s) => state[s.name] ?? "").join();
    const places = states[number], at = places.findIndex((x) => x.key === key);
    if (at >= 0) places.unshift(...places.splice(at, 1));
    else {
      const used = places.length < KEPT ? null : places.pop();
      places.unshift(staged(pool, state, key, used ? used.l : new Float64Array(pool.names.width * pool.size)));
    }
    // Batches over all replicas that are given, of two pools to the one that decodes; none where free.
    const totals = readers.has(number) ? [] : state.batch !== undefined ? [state.batch] : pool.batches;
    return limited(pool, places[0], state, totals, decoders.has(number));
  }

  function staged(pool, state, key, l) {
    const values = { ...pool.values }, factor = {};
    for (const slider of physical) {
      const after = state[slider.name];
      if (after === undefined) continue;
      for (const name of slider.sets) if (name in values) values[name] = after;
      for (const name of slider.adds) if (name in values) values[name] = values[name] === slider.value ? after : values[name] + (after - slider.value);
      for (const name of slider.times)
        if (name in values) values[name] *= after / slider.value;
        else factor[name] = after / slider.value;
    }
    const given = pool.followed, after = new Float64Array(given.functions.batch.length);
    pool.follow.batch(pool.follow.scenario(given.names[0].map((n) => values[n])), null, 0, [], after);
    given.functions.batch.forEach((name, k) => { values[name] = after[k]; });
    const s = pool.kernel.scenario(pool.names.names[0].map((name) => values[name]));
    const times = Float64Array.from(pool.names.names[1], (name) => factor[name] ?? 1);
    const empty = () => new Float64Array(pool.load || pool.crowds ? pool.size : 0).fill(NaN);
    return { key, values, s, l, times, ready: new Uint8Array(pool.size), room: empty(), flat: empty(), bands: rowBands(data, pool, values, times) };
  }

  function limited(pool, { values, s, l, times, ready, room, flat, bands }, state, totals, decodes) {
    const { names, kernel, rows, a, b, place, results, promised: kept } = pool, width = names.width, functions = names.functions;
    const limits = { ...pool.limits };
    for (const slider of promised) {
      const after = state[slider.name];
      if (after !== undefined && slider.limit in limits) limits[slider.limit] = slider.inverse ? 1 / after : after;
    }
    if (state.pace !== undefined) limits.tpot = state.pace;
    const most = Float64Array.from(kept, (name) => limits[name]), count = most.length, scored = results.scored;
    const put = (i, batch, fill) => {
      if (!ready[i]) {
        for (let k = 0, o = i * a.length; k < a.length; k++) a[k] = rows[o + k] * times[k];
        kernel.layout(s, a, i * width, l); ready[i] = 1;
      }
      if (place.batch >= 0) b[place.batch] = batch;
      if (place.fill >= 0) b[place.fill] = fill;
    };
    const at = (name, i, batch, fill = 1) => {
      put(i, batch, fill);
      const r = results[name];
      kernel[name](s, l, i * width, b, r);
      return r;
    };
    // What a batch is scored by; the first of it are what is promised, as a view.
    const score = (i, batch, fill = 1) => { put(i, batch, fill); kernel.scored(s, l, i * width, b, scored); return scored; };
    const promises = (i, batch, fill = 1) => { score(i, batch, fill); return results.promised; };
    // Whether the estimate of a batch keeps every promise but one: larger ones break what it breaks.
    const holds = (i, batch, fill = 1, without = -1) => {
      score(i, batch, fill);
      for (let k = 0; k < count; k++) if (k !== without && !(scored[k] <= most[k])) return false;
      return true;
    };
    // Factors of promised times to the quantile at which promises hold, and whether they hold there.
    const banded = kept.map((name) => (name === "latency" ? "whole" : data.constants.banded[name])), chancy = pool.chancy && banded.some((name) => name);
    const late = (i, batch) => { const at = chancy && bands.at(i, batch); return banded.map((name) => (at && name ? at[name] : 1)); };
    const keeps = (i, batch, fill = 1, without = -1) => {
      if (!holds(i, batch, fill, without)) return false;
      const at = chancy && bands.at(i, batch);
      return !at || banded.every((name, k) => !name || k === without || scored[k] * at[name] <= most[k]);
    };
    const named = (r) => Object.fromEntries(functions.batch.map((name, k) => [name, r[k]]));
    // Every output of a layout on other numbers of replicas and chips.
    const resized = (i, replicas, chips, batch, fill) => {
      const mine = new Float64Array(width), r = new Float64Array(functions.batch.length);
      const counts = { n_rep: replicas, n_chips: chips };
      for (let k = 0; k < a.length; k++) a[k] = counts[names.names[1][k]] ?? rows[i * a.length + k] * times[k];
      kernel.layout(s, a, 0, mine);
      if (place.batch >= 0) b[place.batch] = batch;
      if (place.fill >= 0) b[place.fill] = fill;
      kernel.batch(s, mine, 0, b, r);
      return named(r);
    };
    const cut = pool.way("cp"), halves = pool.way("halves"), largest = Math.max(...totals);
    const allowed = (i) => (cut[i] === 1 || !pool.least_part || values.L_in / cut[i] >= pool.least_part)
      && !(totals.length && halves[i] > 1 && !(largest > (decodes ? 1 : pool.way("replicas")[i]) * pool.group[i]));
    const counted = (counts) => { for (const name in counts) if (name in pool.counts) b[pool.counts[name]] = counts[name]; };
    const outputs = (i, batch, fill = 1) => named(at("batch", i, batch, fill));
    return { pool, values, limits, totals, most, room, flat, allowed, at, score, promises, holds, keeps, chancy, late, bands, counted, resized, outputs };
  }

  return bind;
}
