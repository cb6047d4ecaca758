"use strict";
// Two pools: every pair of layouts, every split of the chips between them, without a load. As
// planner/problems/serving/deployment: pool_matching, pool_pairs, and step/packing.
function pairedPools({ data, packed, loaded, kernels, signatures, bind, largest, remember, winning, worth, passSizes, passMost, laid, memory, stepOf, broken, outside, bandsAt, sorted, SAME, TIE, LEVEL }) {
  const { replicasMost, chipsThatRead, rented, beside } = packed;

  // ---- layouts of either pool at their best ----

  const shards = (pool, i) => Math.min(pool.way("tp")[i] / pool.way("dcp")[i], Math.max(pool.words.kv_heads, 1)) * pool.way("dcp")[i] * pool.way("pp")[i] * pool.way("cp")[i];
  // Rooms of layouts, equal ones once: they stay while sliders move, and so does what is left beside.
  const rooms = new Map(), roomsOf = new Map();
  function room(pool, i) {
    if (!roomsOf.has(pool)) roomsOf.set(pool, Array.from({ length: pool.size }, (_, k) => interned(pool, k)));
    return roomsOf.get(pool)[i];
  }
  function interned(pool, i) {
    const stage = pool.way("tp")[i] * pool.way("dp_attention")[i] * pool.way("cp")[i], stages = pool.way("pp")[i];
    const { domain } = pool.words, key = `${stage},${stages},${domain}`;
    if (!rooms.has(key)) rooms.set(key, { stage, stages, domain, id: rooms.size });
    return rooms.get(key);
  }
  const rateOf = (slot, free) => (1 - free) / slot;

  // The cache of a prompt goes to the other pool, a drafter's stays.
  const promptBytes = (question, { values: v }) => (v.b_store - question.drafted) * v.L_in + v.R_bnd_mem + v.R_state;
  const transferTime = (question, b, chips) => question.latency + promptBytes(question, b) / (chips * question.rate);

  // What chips of a layout take for one request, of the objective, in slots that are all in use.
  const share = (question, b, i, slot, weight) => weight * b.pool.replica[i] * slot / (1 - question.headroom);

  // How far a row is from a plain one where it decides between equals; of one that reads on its smallest pass.
  function oddOf({ pool, bands }, i, batch) {
    const odd = pool.bound ? 0 : bands.odd(i, pool.mode === "prefill" ? pool.way("pp")[i] * pool.way("dp_attention")[i] : batch);
    return odd - odd % data.constants.odd[3];
  }

  // A row that reads, on passes of one size.
  function reader(question, b, i, batch) {
    const { pool } = b, late = pool.promised.indexOf("ttft");
    if (!b.keeps(i, batch, 1, late)) return null;
    const r = pool.results.scored, slot = r[pool.scored.slot], ttft = r[pool.scored.ttft];
    if (ttft > (b.limits.ttft ?? Infinity)) return null;
    return { row: i, batch, slot, ttft, late: late < 0 ? 1 : b.late(i, batch)[late], odd: oddOf(b, i, batch), rate: rateOf(slot, question.headroom), fill: 1, room: room(pool, i),
             sends: shards(pool, i), engines: pool.way("engines")[i] };
  }

  // Rows that read, each on every size of a pass. On the largest a request takes least of a slot
  // (T(B)/B never rises): a row that takes more than `most` even so is left out.
  function reading(question, b, only, least, most) {
    const made = [];
    for (let i = only ?? 0; i < (only ?? b.pool.size - 1) + 1; i++) {
      if (!b.allowed(i) || least[i] > most) continue;
      for (const batch of passSizes(b, i)) {
        const one = reader(question, b, i, batch);
        if (one) made.push(one);
      }
    }
    return made;
  }

  function leastReading(question, b, weight) {
    const { pool } = b, least = new Float64Array(pool.size).fill(Infinity);
    for (let i = 0; i < pool.size; i++) {
      if (!b.allowed(i)) continue;
      const slot = b.score(i, passMost(b, i))[pool.scored.slot];
      least[i] = share(question, b, i, slot, weight);
    }
    return least;
  }

  // Batches given for all replicas that decode, on each number of them: of those with as many each
  // the fewest. Halves hold a sequence on every rank.
  function shared(question, { pool, totals }, i) {
    const made = [], most = pool.way("replicas")[i];
    for (const total of totals) {
      const fewest = new Map(), [number] = question.decodes;
      for (let m = 1; m <= Math.min(total, most); m++) if (!fewest.has(Math.ceil(total / m))) fewest.set(Math.ceil(total / m), m);
      for (const m of number ? question.decodes.filter((x) => x <= most) : fewest.values())
        if (pool.way("halves")[i] === 1 || total > m * pool.group[i]) made.push([Math.ceil(total / m), total / (Math.ceil(total / m) * m), m]);
    }
    return made;
  }

  function decoder(question, b, i, batch, fill, count = 0) {
    const { pool } = b;
    if (!b.keeps(i, batch, fill)) return null;
    const r = pool.results.scored, slot = r[pool.scored.slot];
    return { odd: oddOf(b, i, batch), row: i, batch, slot, latency: r[pool.scored.latency], rate: fill * rateOf(slot, question.headroom), fill, count,
             room: room(pool, i), group: shards(pool, i), engines: pool.way("engines")[i] };
  }

  function decoding(question, b, only, weight, most) {
    const made = [], { pool } = b;
    for (let i = only ?? 0; i < (only ?? pool.size - 1) + 1; i++) {
      if (!b.allowed(i) || (only === null && beyond(question, b, i, weight, most))) continue;
      const tried = b.totals.length ? shared(question, b, i) : worth(pool, i, largest(b, i), true).map((batch) => [batch, 1]);
      for (const [batch, fill, count] of tried) {
        const one = decoder(question, b, i, batch, fill, count);
        if (one) made.push(one);
      }
      if (!b.totals.length) remember(b, i, pool.last[i]);
    }
    return made;
  }

  // Whether no batch of a row takes `most` or less: as `hopeless`, by its slots.
  function beyond(question, b, i, weight, most) {
    const { pool, totals } = b, batch = totals.length ? 0 : pool.trial[i];
    return batch > 0 && most < Infinity && !b.holds(i, batch)
      && share(question, b, i, pool.results.scored[pool.scored.slot], weight) > most;
  }

  // Of each group, engine, room and oddness, and of a given batch of each number of replicas, the layout whose
  // requests take least of the objective: the first that is `in` time of those that come in the order
  // of their rates. Of a given batch with the `slower` ones, which fewer prompts suffice for.
  function fastest(layouts, numbers, bits, decodes, reached) {
    const time = Float64Array.from(layouts, (x) => 1 / x.rate);
    const ordered = layouts.map((_, k) => k).sort((x, y) => time[x] - time[y] || x - y);
    const keys = layouts.map((x) => `${x.room.id}/${x.count ?? 0}/${x.odd}`), groups = new Map();
    for (const bit of bits) {
      const runs = ordered.filter((k) => inGroup(layouts[k], bit, decodes));
      const every = new Set(runs.map((k) => keys[k])).size;
      for (const number of numbers) {
        const bests = new Map();
        for (const k of runs) {
          const layout = layouts[k], best = bests.get(keys[k]);
          if (best && !layout.count) continue;
          if (bests.size === every && !layout.count) break;
          const latency = reached(layout, number);
          if (latency === null) continue;
          if (best) best.slower.push({ ...layout, latency });
          else bests.set(keys[k], { ...layout, latency, slower: [] });
        }
        groups.set(`${number}/${named(bit)}`, [...bests.values()]);
      }
    }
    return groups;
  }

  // Engines that pairs are kept apart by, null where one runs all layouts that keep the promises:
  // those that were left out as dearer count too. Where some decode in stages, those that move caches
  // into one stage or into as many as they come from also by stages; as pairs/engine_groups.
  function engineBits(reads, decodes, pruned, tied) {
    const both = (m, x) => m & x.engines, either = (m, x) => m | x.engines;
    const stages = pruned.filter(([b]) => b.pool.mode === "decode").some(([b, keeps]) => {
      const pp = b.pool.way("pp");
      for (let i = 0; i < b.pool.size; i++) if (pp[i] > 1 && b.allowed(i) && keeps(i)) return true;
      return false;
    }) || decodes.some((x) => x.room.stages > 1);
    const apart = stages ? tied : 0;
    let shared = [...reads, ...decodes].reduce(both, -1) & ~apart;
    for (const [b, keeps] of pruned)
      for (let i = 0, engines = b.pool.way("engines"); shared && i < b.pool.size; i++)
        if ((shared & engines[i]) !== shared && b.allowed(i) && keeps(i)) shared &= engines[i];
    if (shared) return [null];
    const runs = reads.reduce(either, 0) & decodes.reduce(either, 0), counts = [...new Set(decodes.map((x) => x.room.stages))];
    return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => (runs >> bit) & 1)
      .flatMap((bit) => ((apart >> bit) & 1 ? counts : [0]).map((number) => ({ bit, stages: number })));
  }
  const inGroup = (x, of, decodes) => of === null || (((x.engines >> of.bit) & 1) && (of.stages <= (decodes ? 0 : 1) || x.room.stages === of.stages));
  const named = (of) => (of === null ? "all" : `${of.bit}:${of.stages}`);

  // ---- pairs and splits ----

  const underLoad = typeof loadedPairs === "function" && loadedPairs({ data, bind, loaded, packed, worth, passSizes, room, shards, transferTime, fastest, engineBits, inGroup, named, oddOf, sorted, remember, winning, largest, SAME, TIE, LEVEL });

  function searched(question, state, held, most) {
    question.recent ??= [];
    if (question.loaded) return underLoad.searched(question, state, held, most);
    if (state.batch !== undefined && !question.batched) return [];
    const a = bind(question.read, state), b = bind(question.decode, state), [i, j] = held ? held.rows : [null, null];
    const prices = [a.values.p_chip, b.values.p_chip], chips = Math.max(...question.paid);
    const weights = question.throughput ? [1 / chips, 1 / chips] : prices, none = new Float64Array(a.pool.size);
    if (!held && question.recent.length) {
      const rows = (k) => [...new Set(question.recent.map((pair) => pair[k]))];
      const again = matched(question, a, b, rows(0).flatMap((row) => reading(question, a, row, none, Infinity)),
        rows(1).flatMap((row) => decoding(question, b, row, 0, Infinity)), prices, weights, most);
      most = again.reduce((m, x) => Math.min(m, x.score * LEVEL), most);
    }
    const least = most < Infinity ? leastReading(question, a, weights[0]) : none;
    const decodes = decoding(question, b, j, weights[1], most - least.reduce((m, x) => Math.min(m, x), Infinity));
    const rest = decodes.reduce((m, x) => Math.min(m, share(question, b, x.row, x.slot, weights[1])), Infinity);
    const reads = decodes.length ? reading(question, a, i, least, most - rest) : [];
    const ones = fitting(question, reads, decodes, prices, most), others = fitting(question, decodes, ones, prices, most);
    const pruned = held ? [] : [[a, (i) => reader(question, a, i, passSizes(a, i)[0])], [b, (i) => (b.totals.length ? shared(question, b, i) : [[1, 1]]).some(([batch, fill]) => b.keeps(i, batch, fill))]];
    const best = matched(question, a, b, ones, others, prices, weights, most, pruned);
    if (best.length && !held) winning(question.recent, best[0].rows);
    return best;
  }

  // The best of the pairs of rows, of those that could take `most` or less, the plainer first.
  function matched(question, a, b, reads, decodes, prices, weights, most, pruned = []) {
    if (!reads.length || !decodes.length) return [];
    const numbers = [...new Set(decodes.map((x) => x.group))], bits = engineBits(reads, decodes, pruned, question.tied);
    const limit = a.limits.ttft ?? Infinity;
    const firsts = fastest(reads, numbers, bits, false, (x, number) => {
      const latency = x.ttft + transferTime(question, a, Math.min(x.sends, number));
      return latency <= limit && latency * x.late <= limit ? latency : null;
    });
    const seconds = fastest(decodes, numbers, bits, true, (x, number) => (x.group === number ? x.latency : null));
    const groups = [...firsts].map(([group, ones]) => [sharing(ones, weights[0]), sharing(seconds.get(group) ?? [], weights[1])]);
    return ordered(question, groups.filter(([x, y]) => x.length && y.length), prices, most);
  }
  const sharing = (layouts, weight) => layouts
    .map((x) => [weight * (x.room.stage * x.room.stages / x.rate), x]).sort((x, y) => x[0] - y[0]);

  // Pairs in the order of what they could reach without whole numbers, until the best betters that;
  // a few at a time, since most are never looked at.
  function ordered(question, groups, prices, most) {
    const ends = (side) => groups.reduce((m, [x, y]) => Math[side](m, x.at(side === "min" ? 0 : -1)[0] + y.at(side === "min" ? 0 : -1)[0]), side === "min" ? Infinity : 0);
    const last = ends("max");
    const found = [];
    let least = most, low = -Infinity, high = Math.min(most, 1.02 * ends("min"));
    while (true) {
      for (const [, one, two] of between(groups, low, high)) {
        const pair = split(question, one, two, prices, least);
        if (pair) { found.push(pair); least = Math.min(least, pair.score * LEVEL); }
      }
      if (high >= last || (found.length && high >= least)) return plainest(question, found);
      low = high;
      high = found.length ? Math.max(least, 1.02 * high) : high * 1.1;
    }
  }

  // Of pairs those about as good as the best, the plainer first, then the faster.
  function plainest(question, pairs) {
    const least = pairs.reduce((m, x) => Math.min(m, x.score), Infinity);
    return sorted(pairs.filter((x) => x.score <= least * (1 + TIE)), (x) => [x.oddity, Math.floor(Math.log(x.score / least) / SAME), x.latency])
      .map((x) => ({ ...x, odd: () => x.oddity, paid: x.chips[0] + x.chips[1], read: question.read, decode: question.decode }));
  }

  function between(groups, low, high) {
    const pairs = [];
    for (const [firsts, seconds] of groups)
      for (const [x, one] of firsts) {
        if (x + seconds[0][0] > high) break;
        for (const [y, two] of seconds) {
          if (x + y > high) break;
          if (x + y > low) pairs.push([x + y, one, two]);
        }
      }
    return pairs.sort((x, y) => x[0] - y[0]);
  }
  // Chips that a layout needs in whole replicas, on so many chips in all, for `most` or less.
  function needed(question, x, prices, chips, most) {
    const served = (question.throughput ? 1 : Math.min(...prices) * chips) / most * (1 - SAME);
    return (Math.ceil(served / x.rate - SAME) + question.spare) * x.room.stage * x.room.stages;
  }

  // Layouts of one pool that leave room for some layout of the other.
  function fitting(question, layouts, others, prices, most) {
    if (most === Infinity) return layouts;
    const rest = question.paid.map((chips) => chips - others.reduce((m, x) => Math.min(m, needed(question, x, prices, chips, most)), Infinity));
    return layouts.filter((x) => question.paid.some((chips, k) => needed(question, x, prices, chips, most) <= rest[k]));
  }

  // A pair of a given batch, with the fastest layout that decodes no faster than prompts may come.
  function* supplied(question, a, b, chips, rest, end) {
    if (!b.count) { yield b; return; }
    const beside = first((n) => rest(n) < b.count, 0, end + 1) - 1;
    for (const reads of question.reads) {
      const enough = (reads <= beside ? reads || beside : 0) * a.rate * (1 + SAME);
      const one = [b, ...b.slower].find((x) => x.count * x.rate <= enough);
      if (one) yield one;
    }
  }

  function split(question, a, fastest, prices, most) {
    const spare = question.spare;
    let best = null;
    for (const chips of question.paid) {
      if (most < Infinity && needed(question, a, prices, chips, most) + needed(question, fastest, prices, chips, most) > chips) continue;
      const end = Math.max(replicasMost(chips, a.room), 1), rest = beside(question, a, fastest, chips, end);
      for (const [b, n, m] of [...supplied(question, a, fastest, chips, rest, end)].flatMap((x) => counts(question, a, x, chips).map((pair) => [x, ...pair]))) {
        if (!(n > spare && m > spare)) continue;
        if (b.count && !(n * a.rate * (1 + SAME) >= m * b.rate)) continue;
        const taken = chipsThatRead(question, a, b, n, m, chips, prices);
        const served = Math.min((n - spare) * a.rate, (m - spare) * b.rate);
        if (!(served > 0)) continue;
        const cost = (prices[0] * taken + prices[1] * Math.max(chips - taken, 0)) / served;
        const score = question.throughput ? 1 / served : cost;
        if (!best || score < best.score * (1 - SAME))
          best = { score, oddity: a.odd + b.odd, latency: a.latency + b.latency, rows: [a.row, b.row], replicas: [n, m],
                   chips: [taken, chips - taken], requests: served, batch: b.batch, reads: a.batch, slots: [a.slot, b.slot], fills: [a.fill, b.fill] };
      }
    }
    return best;
  }

  // Replicas that read beside those that decode; where chips of the two do not cost alike, either pool
  // may be the one that takes only what it needs. As planner/problems/serving/search/replica_counts.
  function counts(question, a, b, chips) {
    const direct = crossings(question, a, b, chips, 0);
    return b.count || question.together ? direct : [...crossings(question, b, a, chips, 1).map(([m, n]) => [n, m]), ...direct];
  }
  function crossings(question, a, b, chips, side) {
    const { spare, units } = question, wanted = [question.reads, question.decodes], made = [];
    const most = Math.max(replicasMost(chips, a.room), 1), rest = beside(question, a, b, chips, most, side);
    for (const own of wanted[side])
      for (const other of b.count ? [b.count] : wanted[1 - side]) {
        const enough = (n) => (n - spare) * a.rate >= (Math.min(rest(n), other || Infinity) - spare) * b.rate;
        const cross = own || Math.min(first(enough, 0, most), other ? first((n) => rest(n) < other, 0, most + 1) - 1 : Infinity);
        const short = rented(question, side, cross - 1, a.room) - 1;
        const blocks = question.together ? [] : [units[side], a.room.domain].map((block) => replicasMost(Math.floor(short / block) * block, a.room));
        for (const n of own ? [own] : [cross, cross - 1, ...blocks]) made.push([n, !other ? rest(n) : rest(n) >= other ? other : 0]);
      }
    return made;
  }

  // ---- a pair in full ----

  // The smallest batch whose slots carry so many requests of a replica.
  function carried(b, i, requests, up, free, most) {
    const slot = b.pool.scored.slot;
    return carrying(b.pool, i, (batch) => requests * b.score(i, batch, 1)[slot] / up <= 1 - free, most) || most;
  }

  function described(pair, state) {
    const question = data.questions[pair.question], spare = question.spare;
    const read = bind(pair.read, state), decode = bind(pair.decode, state), [i, j] = pair.rows;
    const up = pair.replicas.map((n) => n - spare);
    const shares = pair.slots.map((slot, k) => pair.requests * slot / pair.replicas[k]);
    const batch = decode.totals.length ? pair.batch : carried(decode, j, pair.requests, up[1], question.headroom, Math.floor(pair.batch));
    const slot = decode.score(j, batch)[decode.pool.scored.slot];
    const fill = pair.requests * slot / up[1] * up[1] / pair.replicas[1];
    const under = question.loaded ? underLoad.reads(question, read, pair) : null;
    const first = under ? under.values : read.resized(i, pair.replicas[0], pair.chips[0], pair.reads, shares[0]);
    const last = decode.resized(j, pair.replicas[1], pair.chips[1], batch, fill);
    const transfer = transferTime(question, read, Math.min(shards(read.pool, i), shards(decode.pool, j)));
    const symbols = {
      one_seq: 1, L_in: decode.values.L_in, L_out: decode.values.L_out, L_dec: decode.values.L_dec, T_move: transfer,
      T_ttft: first.first, T_wait: under ? first.T_wait : 0, X_arr: pair.requests, T_tpot: last.tpot, m_grid: decode.values.m_grid,
    };
    [[read, first], [decode, last]].forEach(([b, values], k) => {
      const name = ["pf", "dec"][k];
      Object.assign(symbols, { ["p_chip_" + name]: b.values.p_chip, ["p_power_" + name]: b.values.p_power,
        ["n_chips_" + name]: pair.chips[k], ["n_" + name]: up[k], ["X_" + name]: rateOf(pair.slots[k], question.headroom) * pair.fills[k],
        ["P_chip_" + name]: values.watts });
    });
    const names = signatures[question.kernel], kernel = kernels[question.kernel];
    const r = new Float64Array(names.functions.batch.length);
    kernel.batch(kernel.scenario(names.names[0].map((name) => symbols[name])), null, 0, [], r);
    const whole = Object.fromEntries(names.functions.batch.map((name, k) => [name, r[k]])), outputs = {};
    for (const output of data.outputs) {
      const value = output.word in whole ? whole[output.word] : ["tpot", "sequences"].includes(output.word) ? last[output.word] : undefined;
      if (value !== undefined && !Number.isNaN(value)) outputs[output.name] = value * output.scale;
    }
    outputs.tokens_per_s_per_user = last.tokens_per_s_per_user;
    outputs.batch = inFlight(last.sequences);
    const reads = under ? under.batch : pair.reads, late = { ttft: first.ttft + transfer, tpot: last.tpot };
    for (const tail of ["ttft_p95", "ttft_p99"]) late[tail] = first[tail] + transfer;
    const bands = { ttft: bandsAt(read, i, reads).ttft, tpot: bandsAt(decode, j, batch).tpot };
    const named = [laid(read.pool, i, pair.replicas[0]), laid(decode.pool, j, pair.replicas[1])];
    const counted = (pool, k) => `${pair.chips[k]} ${pool.words.chip}`;
    return {
      feasible: true, choice: pair, score: pair.score, outputs, symbols: { ...first, ...last, ...whole, ...symbols,
        C_pools: whole.usd_per_token, X_pools: whole.requests },
      values: { ...read.values, ...decode.values },
      layouts: [`prefill ${named[0]}`, `decode ${named[1]}`], busy: shares.map((x) => Math.round(100 * x)),
      chips: [counted(read.pool, 0), counted(decode.pool, 1)].join(" and "),
      batch: outputs.batch, per_replica: under ? batch : pair.batch, ...(under ? { breaks: [], breaks_at: "" } : broken(decode, j, pair.batch)),
      steps: decode.pool.bound ? [] : stepOf(last), outside: outsideWords([["prefill", outside(read, i, reads)], ["decode", outside(decode, j, batch)]], data.constants),
      promises: promisesOf(data, { ...decode.limits, ...read.limits }, late, bands),
      memories: [{ title: "memory of one prefill chip", lines: memory(read, i, reads, first) },
                 { title: "memory of one decode chip", lines: memory(decode, j, batch, last) }],
    };
  }

  return { searched, described };
}
