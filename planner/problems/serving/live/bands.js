"use strict";
// How far off the times of a row may be at a batch, and what of it no measured row covers. As
// planner/problems/serving/step/shares, search/promise_limits and catalogue/coefficient_spread.

// The distribution function of the standard normal.
function normal(x) {
  let sum = x, term = x;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= x * x / k;
  return 0.5 + sum * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
}

// Chance that a sum of times [estimate, low end, high end], all off alike, is at most a limit.
function chanceWithin(limit, parts, { tenth, search: [farthest, rounds, close] }) {
  const logs = parts.filter(([time]) => time > 0).map(([time, low, high]) => [Math.log(time) + (Math.log(low) + Math.log(high)) / 2, (Math.log(high) - Math.log(low)) / (2 * tenth)]);
  let deviations = 0;
  for (let turn = 0; turn < rounds && logs.length; turn++) {
    const late = logs.map(([middle, spread]) => Math.exp(middle + deviations * spread)), sum = late.reduce((a, x) => a + x, 0);
    const off = Math.log(sum / limit), slope = late.reduce((a, x, k) => a + x * logs[k][1], 0) / sum;
    if (!slope) return Number(off <= 1e-9);
    const step = off / slope;
    deviations = Math.max(-farthest, Math.min(deviations - step, farthest));
    if (Math.abs(step) < close) break;
  }
  return logs.length ? normal(deviations) : 1;
}

// Each promised time with its limit, the chance that it holds and a word for it; as promise_chances.
function promisesOf({ promises, constants }, limits, times, bands) {
  const { banded, sure, likely, same } = constants;
  return promises.filter(({ step }) => limits[step] !== undefined).map(({ name, step }) => {
    const parts = (step in banded ? [[times[step], bands[banded[step]]]] : [[times.ttft, bands.ttft], [times.rest, bands.tpot]]);
    const value = parts.reduce((sum, [time]) => sum + time, 0), limit = limits[step];
    const chance = parts.every(([, band]) => band) ? chanceWithin(limit, parts.map(([time, band]) => [time, ...band]), constants) : null;
    const word = !(value <= limit * (1 + same)) ? "broken" : chance === null ? "kept" : chance >= sure ? "sure" : chance >= likely ? "likely" : "unlikely";
    return { promise: name, value, limit, chance, word };
  });
}

// What of a plan no measured row covers, what widens its band most first, in words; as beyond_fit.
// Pools are [role, what lies outside], the role empty for one alone.
function outsideWords(pools, { least, times }) {
  const whole = (x) => x.toLocaleString("en", { maximumFractionDigits: 0 }), merged = new Map();
  for (const [role, parts] of pools)
    for (const x of parts) {
      const key = `${x.name}/${x.asked}`, before = merged.get(key), of = x.ranged ? x.words.replace("{asked}", whole(x.asked)) : x.words;
      if (!before) merged.set(key, { ...x, said: of + (role && x.ranged ? ` to ${role}` : "") });
      else if (x.share > before.share) merged.set(key, { ...x, said: of });
    }
  return [...merged.values()].sort((x, y) => y.variance - x.variance || y.share - x.share).map(({ said, ends, share, time }) => {
    const notes = [...(ends ? [`fit: ${[...new Set(ends.map(whole))].join(" to ")}`] : []), ...(share >= least ? [`${(100 * share).toFixed(0)}% of the ${times[time]}`] : [])];
    return notes.length ? `${said} (${notes.join("; ")})` : said;
  });
}

// The rows of a symmetric matrix that is kept as its lower triangle.
function triangle({ covariance, names }) {
  const bytes = Uint8Array.from(atob(covariance), (letter) => letter.charCodeAt(0)), whole = new Float64Array(bytes.buffer);
  const at = (i, j) => whole[i * (i + 1) / 2 + j];
  return covariance && names.map((_, i) => names.map((_, j) => at(Math.max(i, j), Math.min(i, j))));
}

// The rows of a pool at the values of a state; what a batch rests on is worked out once.
function rowBands(data, pool, values, times) {
  const { rest, noise, tenth, digits, least, adds, axes, odd: [outsides, domains, stages, halved, most] } = data.constants;
  const spread = data.bands[pool.band], fit = data.fits[pool.fit], way = (name, i) => pool.way(name)[i], known = new Map();
  const { kernel, names: { names, width, functions }, scored } = pool, timed = Object.keys(pool.spreads);
  const scenarios = !spread ? [] : [null, ...spread.names].map((off, k) => kernel.scenario(names[0].map((name) =>
    (name !== off ? values[name] : spread.over[k - 1] ? values[name] / rest : values[name] * rest))));
  const places = timed.map((time) => scored[time === "ttft" && !pool.gathers ? "first" : time]), covariance = spread && triangle(spread);
  const r = new Float64Array(functions.scored.length), b = new Float64Array(names[2].length), a = new Float64Array(names[1].length);
  const l = new Float64Array(width * scenarios.length);
  let last = -1; // the row whose layouts stand in `l`

  function layout(i) {
    if (last === i) return;
    for (let k = 0; k < a.length; k++) a[k] = pool.rows[i * a.length + k] * times[k];
    scenarios.forEach((s, k) => kernel.layout(s, a, k * width, l));
    last = i;
  }

  // Both times where nothing waits, and their shares that rest on each coefficient.
  function resting(i, batch) {
    const plain = {}, shares = {};
    layout(i);
    if (pool.place.batch >= 0) b[pool.place.batch] = batch;
    if (pool.place.fill >= 0) b[pool.place.fill] = 1;
    scenarios.forEach((s, k) => {
      kernel.scored(s, l, k * width, b, r);
      timed.forEach((time, t) => {
        const x = r[places[t]];
        if (!k) { plain[time] = x; shares[time] = new Float64Array(scenarios.length - 1); return; }
        shares[time][k - 1] = Math.round(Math.min(Math.abs(1 - x / Math.max(plain[time], 1e-30)), 1) * digits) / digits;
      });
    });
    return [plain, shares];
  }

  // Where a row lies, by dimension of the hull, and the kinds of distance beyond its ranges.
  function placed(i, batch) {
    const chips = pool.replica[i], at = { chips, domains: Math.ceil(chips / pool.words.domain), stages: way("pp", i), overlap: way("halves", i) - 1, ranks: Number(way("dcp", i) > 1) };
    if (pool.words.experts) Object.assign(at, { ep: way("ep", i), uneven: Number((pool.words.experts + pool.words.redundant_experts) % way("ep", i) > 0) });
    if (pool.mode !== "decode") at.prompt = values.L_in * (1 - values.x_hit);
    if (pool.mode !== "prefill") Object.assign(at, { batch: Math.max(batch / way("dp_attention", i), 1), context: values.L_ctx, drafts: pool.words.positions - 1 });
    return at;
  }
  const isOut = (each, at) => (each.inside ? each.name in at && !(each.inside[0] <= at[each.name] && at[each.name] <= each.inside[1])
    : !each.levels || (each.name in at && !each.levels.includes(at[each.name])));
  const kindsOf = (at) => new Set([...pool.kinds, ...fit.filter((each) => (each.inside || each.levels) && isOut(each, at)).map((each) => each.regime)]);

  // As far as its kinds of distance reach, and to either side what else no run measured.
  function ends(time, shares, kinds) {
    const more = tenth * Math.sqrt([...kinds].reduce((sum, kind) => sum + (adds[time][kind] ?? 0) ** 2, 0)), [low, high] = reaching(time, shares, kinds);
    return more ? [Math.exp(-Math.hypot(Math.log(low), more)), Math.exp(Math.hypot(Math.log(high), more))] : [low, high];
  }
  function reaching(time, shares, kinds) {
    const of = pool.spreads[time];
    if (of.plain) return of.plain.map(Math.exp);
    const live = [...shares.keys()].filter((k) => shares[k]);
    let variance = 0;
    live.forEach((i, place) => {
      let beside = covariance[i][i] / 2 * shares[i];
      for (const j of live.slice(place + 1)) beside += covariance[i][j] * shares[j];
      variance += 2 * shares[i] * beside;
    });
    const sigma = Math.sqrt(variance + noise ** 2);
    const pairs = ["", ...kinds].filter((kind) => of[kind]).map((kind) => { const [low, high, more] = of[kind], off = Math.hypot(sigma, more); return [Math.exp(low * off), Math.exp(high * off)]; });
    return [Math.min(...pairs.map(([low]) => low)), Math.max(...pairs.map(([, high]) => high))];
  }
  // With the range of accepted drafts in it, as planner/problems/serving/step/drafting.
  function accepted([low, high]) {
    const [fewer, more] = spread.accepted, [x, y] = [Math.log(low), Math.log(high)];
    return [Math.exp(x - (Math.hypot(x, more) - Math.abs(x))), Math.exp(y + Math.hypot(y, fewer) - Math.abs(y))];
  }
  function bandsOf(shares, kinds) {
    return Object.fromEntries(timed.map((time) => {
      const band = ends(time, shares[time], kinds);
      return [time, time === "tpot" && spread.accepted ? accepted(band) : band];
    }));
  }

  // What lies outside, each with the largest share of a time that rests on it; as beyond_fit.
  function outsideOf(shares, at, kinds) {
    const out = new Map(fit.map((each) => [each.name, isOut(each, at)]));
    return fit.filter((each) => out.get(each.name) && !each.beside.some((name) => out.get(name))).flatMap((each) => {
      const [time, ...others] = each.prompts ? timed : timed.slice(0, 1);
      const parts = [time, ...others].map((name) => [Math.min(each.of.reduce((sum, k) => sum + shares[name][k], 0), 1), name]);
      const [share, of] = parts.reduce((m, x) => (x[0] > m[0] ? x : m));
      const band = () => ends(time, shares[time], kinds), nearer = () => ends(time, shares[time], [...kinds].filter((kind) => kind !== each.regime));
      if (share < least && String(band()) === String(nearer())) return [];
      const variance = each.of.reduce((sum, k, place) => sum + (shares[of][k] * each.widths[place]) ** 2, 0);
      return [{ ...each, asked: at[each.name], share, time: of, variance }];
    });
  }

  function at(i, batch) {
    const key = i + batch * pool.size;
    let found = known.get(key);
    if (!found) {
      const [plain, shares] = resting(i, batch), place = placed(i, batch), kinds = kindsOf(place), bands = bandsOf(shares, kinds);
      const factor = (time) => (pool.deviations === null || !bands[time] ? 1 : lateBy(...bands[time]));
      const tpot = factor("tpot"), ttft = factor("ttft"), steps = plain.tpot * (values.L_out - 1);
      const whole = pool.mode === "decode" ? tpot : pool.mode === "prefill" ? ttft : (plain.ttft * ttft + steps * tpot) / (plain.ttft + steps);
      known.set(key, (found = { tpot, ttft, whole, bands, outside: outsideOf(shares, place, kinds) }));
    }
    return found;
  }
  const lateBy = (low, high) => {
    const [x, y] = [Math.log(low), Math.log(high)];
    return Math.exp(Math.max((x + y) / 2 + pool.deviations * (y - x) / (2 * tenth), 0));
  };

  // How far a row is from a plain one, as deployment/plain_plans.
  function oddness(i, outside) {
    const across = Math.min(Math.ceil(pool.replica[i] / pool.words.domain) - 1, most);
    const uneven = axes.reduce((sum, name) => sum + Number((way(name, i) & (way(name, i) - 1)) > 0), 0);
    return outsides * (outside.length > 0) + domains * across + stages * ((way("pp", i) > 1) + (way("dcp", i) > 1)) + halved * (way("halves", i) > 1) + uneven;
  }
  return { at, odd: (i, batch) => oddness(i, spread ? at(i, batch).outside : []) };
}
