"use strict";
// Two pools: every pair of layouts, every split of the chips between them, without a load. As
// planner/problems/serving/deployment: pool_matching, pool_pairs, and step/packing.
function pairedPools({ data, kernels, bind, largest, worth, laid, memory, stepOf, broken, SAME }) {
  // ---- how many replicas a number of chips holds ----

  const stagesMost = (chips, stage, domain) => (stage <= domain
    ? Math.floor(chips / domain) * Math.floor(domain / stage) + Math.floor((chips % domain) / stage)
    : Math.floor(chips / stage));
  const replicasMost = (chips, room) => Math.floor(stagesMost(chips, room.stage, room.domain) / room.stages);

  function chipsLeast(count, room) {
    const stages = count * room.stages, inside = Math.max(Math.floor(room.domain / room.stage), 1);
    const full = Math.floor(Math.max(stages - 1, 0) / inside);
    return room.stage <= room.domain ? full * room.domain + (stages - full * inside) * room.stage : stages * room.stage;
  }

  const sidesKept = new Map();
  function upperSides(first, second, domain) {
    const key = `${first},${second},${domain}`;
    if (sidesKept.has(key)) return sidesKept.get(key);
    const corners = [];
    if (Math.floor(domain / first) <= Math.floor(domain / second))
      for (let i = 0; i <= Math.floor(domain / first); i++) corners.push([i, Math.floor((domain - i * first) / second)]);
    else for (let j = Math.floor(domain / second); j >= 0; j--) corners.push([Math.floor((domain - j * second) / first), j]);
    const hull = [[0, Math.floor(domain / second)]];
    const turns = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0]);
    for (const [x, y] of corners) {
      while (hull.length > 1 && turns(hull[hull.length - 2], hull[hull.length - 1], [x, y])) hull.pop();
      if (x > hull[hull.length - 1][0]) hull.push([x, y]);
    }
    const sides = [[1, 0, Math.floor(domain / second)]];
    for (let k = 1; k < hull.length; k++) {
      const [x, y] = hull[k - 1], [u, v] = hull[k];
      sides.push([u - x, y - v, (u - x) * y + (y - v) * x]);
    }
    sidesKept.set(key, sides);
    return sides;
  }

  function stagesLeft(chips, first, count, second, domain) {
    const whole = Math.floor(chips / domain), rest = chips % domain, ends = Math.floor(rest / first);
    if (first > domain || second > domain) {
      const begun = Math.ceil(Math.max(count - ends, 0) / Math.max(Math.floor(domain / first), 1));
      const taken = first > domain ? count * Math.floor(first / domain) : begun;
      if (taken > whole) return -1;
      return stagesMost(Math.max((whole - taken) * domain + (first > domain ? rest : 0), 0), second, domain);
    }
    let best = -1;
    const sides = upperSides(first, second, domain), inside = Math.floor(domain / first);
    for (let number = 0; number <= Math.min(ends, count); number++) {
      const left = count - number;
      if (left > whole * inside) continue;
      const under = Math.min(...sides.map(([run, fall, height]) => Math.floor((height * whole - fall * left) / run)));
      if (under >= 0) best = Math.max(best, under + Math.floor((rest - number * first) / second));
    }
    return best;
  }

  function left(question, a, b, count, chips) {
    if (question.together) {
      const stages = stagesLeft(chips, a.room.stage, count * a.room.stages, b.room.stage, a.room.domain);
      return stages < 0 ? -1 : Math.floor(stages / b.room.stages);
    }
    const rest = chips - chipsLeast(count, a.room);
    return replicasMost(Math.max(rest, 0), b.room) - (rest < 0 ? 1 : 0);
  }

  // The smallest whole number in (low, high] for which `holds`.
  function first(holds, low, high) {
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) high = middle; else low = middle;
    }
    return high;
  }

  // ---- layouts of either pool at their best ----

  const shards = (pool, i) => Math.min(pool.way("tp")[i], Math.max(pool.words.kv_heads, 1)) * pool.way("pp")[i] * pool.way("cp")[i];
  const room = (pool, i) => ({
    stage: pool.way("tp")[i] * pool.way("dp_attention")[i] * pool.way("cp")[i],
    stages: pool.way("pp")[i], domain: pool.words.domain,
  });
  const rateOf = (slot, free) => (1 - free) / slot;

  function passSizes(b, i) {
    const fresh = b.values.L_in * (1 - b.values.x_hit), chunk = b.pool.columns.c_chunk ? b.pool.columns.c_chunk[i] : b.values.c_chunk;
    const ranks = b.pool.way("pp")[i] * b.pool.way("dp_attention")[i];
    const most = Math.max(Math.ceil(chunk / fresh), 1), sizes = [1];
    let number = 1;
    while (number < most) {
      number = number >= data.every ? Math.floor(number * data.stride) : number + 1;
      sizes.push(Math.min(number, most));
    }
    return sizes.map((size) => size * ranks);
  }

  function promptBytes(b) {
    const v = b.values;
    return v.b_store * v.L_in + v.R_bnd_mem + v.R_state;
  }
  const transferTime = (question, b, chips) => question.latency + promptBytes(b) / (chips * question.rate);

  function reading(question, state, only) {
    const b = bind(question.read, state), pool = b.pool, promised = pool.names.functions.promised;
    const late = promised.indexOf("ttft"), all = pool.names.functions.scored, made = [];
    const slots = all.indexOf("slot"), first = all.indexOf("ttft"), ready = b.limits.ttft ?? Infinity;
    for (let i = only ?? 0; i < (only === null ? pool.size : only + 1); i++) {
      if (!b.allowed(i)) continue;
      for (const batch of passSizes(b, i)) {
        const r = b.at("scored", i, batch, 1);
        let good = true;
        for (let k = 0; k < b.most.length; k++) if (k !== late && !(r[k] <= b.most[k])) good = false;
        if (!good) continue;
        const slot = r[slots], ttft = r[first];
        if (ttft > ready) continue;
        made.push({ row: i, batch, slot, ttft, rate: rateOf(slot, question.headroom), room: room(pool, i),
                    sends: shards(pool, i), engines: pool.way("engines")[i] });
      }
    }
    return { b, made, limit: b.limits.ttft ?? Infinity };
  }

  function decoding(question, state, only) {
    const b = bind(question.decode, state), pool = b.pool, made = [];
    for (let i = only ?? 0; i < (only === null ? pool.size : only + 1); i++) {
      if (!b.allowed(i)) continue;
      for (const batch of worth({ ...pool, score: "" }, i, largest(b, i))) {
        const point = b.scored(i, batch);
        if (point) made.push({ row: i, batch, slot: point.slot, latency: point.latency, rate: rateOf(point.slot, question.headroom),
                               room: room(pool, i), group: shards(pool, i), engines: pool.way("engines")[i] });
      }
    }
    return { b, made };
  }

  // Of each group, engine and room the layout whose requests take least of the objective: the first
  // that is `in` time of those that come in the order of their rates.
  function fastest(layouts, numbers, bits, reached) {
    const time = Float64Array.from(layouts, (x) => 1 / x.rate);
    const ordered = layouts.map((_, k) => k).sort((x, y) => time[x] - time[y] || x - y);
    const keys = layouts.map((x) => x.room.stage * 65536 + x.room.stages), groups = new Map();
    for (const bit of bits) {
      const runs = bit === null ? ordered : ordered.filter((k) => (layouts[k].engines >> bit) & 1);
      const every = new Set(runs.map((k) => keys[k])).size;
      for (const number of numbers) {
        const rooms = new Map();
        for (const k of runs) {
          if (rooms.has(keys[k])) continue;
          if (rooms.size === every) break;
          const layout = layouts[k], key = keys[k];
          const latency = reached(layout, number);
          if (latency !== null) rooms.set(key, { ...layout, latency });
        }
        groups.set(`${number}/${bit}`, [...rooms.values()]);
      }
    }
    return groups;
  }

  function engineBits(read, decode) {
    const every = [...read, ...decode];
    if (!every.length || every.reduce((m, x) => m & x.engines, -1)) return [null];
    const either = read.reduce((m, x) => m | x.engines, 0) & decode.reduce((m, x) => m | x.engines, 0);
    return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => (either >> bit) & 1);
  }

  // ---- pairs and splits ----

  function searched(question, state, held) {
    if (state.batch !== undefined) return null;
    const read = reading(question, state, held ? held.rows[0] : null), decode = decoding(question, state, held ? held.rows[1] : null);
    if (!read.made.length || !decode.made.length) return null;
    const numbers = [...new Set(decode.made.map((x) => x.group))];
    const bits = engineBits(read.made, decode.made), prices = [read.b.values.p_chip, decode.b.values.p_chip];
    const a = fastest(read.made, numbers, bits, (x, number) => {
      const latency = x.ttft + transferTime(question, read.b, Math.min(x.sends, number));
      return latency <= read.limit ? latency : null;
    });
    const b = fastest(decode.made, numbers, bits, (x, number) => (x.group === number ? x.latency : null));
    // Pairs in the order of what they could reach without whole numbers, until the best betters that.
    const most = Math.max(...question.paid), pairs = [];
    for (const [group, firsts] of a)
      for (const two of b.get(group) ?? [])
        for (const one of firsts) {
          const parts = [one.room.stage * one.room.stages / one.rate, two.room.stage * two.room.stages / two.rate];
          pairs.push([question.throughput ? (parts[0] + parts[1]) / most : prices[0] * parts[0] + prices[1] * parts[1], one, two]);
        }
    pairs.sort((x, y) => x[0] - y[0]);
    let best = null;
    for (const [least, one, two] of pairs) {
      if (best && least > best.score * (1 + 4 * SAME)) break;
      const pair = split(question, one, two, prices);
      if (pair && (!best || level(pair, best) < 0)) best = pair;
    }
    return best && { ...best, read: question.read, decode: question.decode };
  }
  function level(x, y) {
    const apart = Math.log(x.score / y.score) / SAME;
    return Math.abs(apart) >= 1 ? apart : x.latency - y.latency;
  }

  function split(question, a, b, prices) {
    const spare = question.spare;
    let best = null;
    for (const chips of question.paid) {
      const beside = (n) => left(question, a, b, n, chips), most = Math.max(replicasMost(chips, a.room), 1);
      for (const n of counts(question, a, b, beside, most)) {
        const m = beside(n[0]), decodes = n[1] ? (m >= n[1] ? n[1] : 0) : m;
        if (!(n[0] > spare && decodes > spare)) continue;
        const taken = question.together ? n[0] * a.room.stage * a.room.stages : chipsLeast(n[0], a.room);
        const served = Math.min((n[0] - spare) * a.rate, (decodes - spare) * b.rate);
        if (!(served > 0)) continue;
        const cost = (prices[0] * taken + prices[1] * Math.max(chips - taken, 0)) / served;
        const score = question.throughput ? 1 / served : cost;
        if (!best || score < best.score * (1 - SAME))
          best = { score, latency: a.latency + b.latency, rows: [a.row, b.row], replicas: [n[0], decodes],
                   chips: [taken, chips - taken], requests: served, batch: b.batch, reads: a.batch, slots: [a.slot, b.slot] };
      }
    }
    return best;
  }

  // Replicas that read, each with those that decode where the question says how many.
  function counts(question, a, b, beside, most) {
    const spare = question.spare, every = [];
    const crossing = (decodes) => first((n) => (n - spare) * a.rate >= (Math.min(beside(n), decodes || Infinity) - spare) * b.rate, 0, most);
    for (const reads of question.reads)
      for (const decodes of question.decodes)
        if (reads) every.push([reads, decodes]);
        else if (decodes) every.push([Math.min(crossing(decodes), first((n) => beside(n) < decodes, 0, most + 1) - 1), decodes]);
        else { const cross = crossing(0); every.push([cross, 0], [cross - 1, 0]); }
    return every;
  }

  // ---- a pair in full ----

  // The smallest batch whose slots carry so many requests of a replica.
  function carrying(b, i, requests, up, free, most) {
    const slot = b.pool.names.functions.scored.indexOf("slot");
    const carries = (batch) => requests * b.at("scored", i, batch, 1)[slot] / up <= 1 - free;
    const way = (name) => b.pool.way(name)[i], group = b.pool.group[i], groups = Math.max(Math.floor(most / group), 1);
    if (!carries(groups * group)) return most;
    const before = (first((n) => carries(n * group), 0, groups) - 1) * group;
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

  function described(pair, state) {
    const question = data.questions[pair.question], spare = question.spare;
    const read = bind(pair.read, state), decode = bind(pair.decode, state), [i, j] = pair.rows;
    const up = pair.replicas.map((n) => n - spare);
    const share = pair.requests * pair.slots[0] / pair.replicas[0];
    const batch = carrying(decode, j, pair.requests, up[1], question.headroom, Math.floor(pair.batch));
    const slot = decode.at("scored", j, batch, 1)[decode.pool.names.functions.scored.indexOf("slot")];
    const fill = pair.requests * slot / up[1] * up[1] / pair.replicas[1];
    const first = read.resized(i, pair.replicas[0], pair.chips[0], pair.reads, share);
    const last = decode.resized(j, pair.replicas[1], pair.chips[1], batch, fill);
    const transfer = transferTime(question, read, Math.min(shards(read.pool, i), shards(decode.pool, j)));
    const symbols = {
      one_seq: 1, L_in: decode.values.L_in, L_out: decode.values.L_out, L_dec: decode.values.L_dec, T_move: transfer,
      T_ttft: first.first, T_wait: 0, T_tpot: last.tpot, m_grid: decode.values.m_grid,
    };
    [[read, first], [decode, last]].forEach(([b, values], k) => {
      const name = ["pf", "dec"][k];
      Object.assign(symbols, { ["p_chip_" + name]: b.values.p_chip, ["p_power_" + name]: b.values.p_power,
        ["n_chips_" + name]: pair.chips[k], ["n_" + name]: up[k], ["X_" + name]: rateOf(pair.slots[k], question.headroom),
        ["P_chip_" + name]: values.watts });
    });
    const names = data.kernels[question.kernel], kernel = kernels[question.kernel];
    const r = new Float64Array(names.functions.batch.length);
    kernel.batch(kernel.scenario(names.names[0].map((name) => symbols[name])), null, 0, [], r);
    const whole = Object.fromEntries(names.functions.batch.map((name, k) => [name, r[k]])), outputs = {};
    for (const output of data.outputs) {
      const value = output.word in whole ? whole[output.word] : ["tpot", "sequences"].includes(output.word) ? last[output.word] : undefined;
      if (value !== undefined && !Number.isNaN(value)) outputs[output.name] = value * output.scale;
    }
    outputs.tokens_per_s_per_user = last.tokens_per_s_per_user;
    outputs.batch = Math.max(1, Math.round(last.sequences));
    const busy = [share, fill].map((x) => Math.round(100 * x));
    const named = [laid(read.pool, i, pair.replicas[0]), laid(decode.pool, j, pair.replicas[1])];
    const counted = (pool, k) => `${pair.chips[k]} ${pool.words.chip}`;
    return {
      feasible: true, choice: pair, score: pair.score, outputs, symbols: { ...first, ...last, ...whole, ...symbols,
        C_pools: whole.usd_per_token, X_pools: whole.requests },
      values: { ...read.values, ...decode.values },
      layouts: [`prefill ${named[0]}`, `decode ${named[1]}`], busy,
      chips: [counted(read.pool, 0), counted(decode.pool, 1)].join(" and "),
      batch: outputs.batch, per_replica: pair.batch, ...broken(decode, j, pair.batch),
      steps: stepOf(last),
      memories: [{ title: "memory of one prefill chip", lines: memory(read, i, pair.reads, first) },
                 { title: "memory of one decode chip", lines: memory(decode, j, batch, last) }],
    };
  }

  return { searched, described };
}
if (typeof module !== "undefined") module.exports = { pairedPools };
