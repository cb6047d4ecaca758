"use strict";
// Two pools under a load: readers as busy as their promises let them be, replicas that carry it, and
// the fewest chips. As planner/problems/serving/deployment: pool_matching, pool_pairs, candidate.
function loadedPairs({ data, bind, loaded, packed, worth, passSizes, room, shards, transferTime, fastest, engineBits, inGroup, named, oddOf, sorted, remember, winning, largest, SAME, TIE, LEVEL }) {
  const { chipsThatRead, beside, replicasMost } = packed, DELAYED = ["ttft", "ttft_p95", "ttft_p99"];
  const rateOf = (slot, busy, free) => busy * (1 - free) / slot;

  // ---- layouts of either pool ----

  function decoder(question, b, i, batch) {
    if (!b.keeps(i, batch)) return null;
    const r = b.pool.results.scored, slot = r[b.pool.scored.slot], latency = r[b.pool.scored.latency];
    if (!loaded.roomy(b, i, batch)) return null;
    return { odd: oddOf(b, i, batch), row: i, batch, slot, latency, rate: rateOf(slot, 1, question.headroom), room: room(b.pool, i),
             group: shards(b.pool, i), engines: b.pool.way("engines")[i] };
  }
  // Layouts that decode, but for those that no batch lets take `most` or less, `taken` of a slot.
  function decoding(question, b, only, taken, most) {
    const made = [], { pool } = b;
    for (let i = only ?? 0; i < (only ?? pool.size - 1) + 1; i++) {
      if (!b.allowed(i) || (only === null && beyond(b, i, taken, most))) continue;
      for (const batch of worth(pool, i, loaded.largest(b, i), true)) {
        const one = decoder(question, b, i, batch);
        if (one) made.push(one);
      }
      remember(b, i, pool.last[i]);
    }
    return made;
  }

  // As `beyond` of pools without a load, at a full group that breaks a promise or has no room; the
  // fewest replicas may take too much whatever they do.
  function beyond(b, i, taken, most) {
    const { pool } = b, batch = pool.trial[i];
    if (taken(i, 0) > most) return true;
    if (!batch || most === Infinity) return false;
    const kept = b.holds(i, batch);
    return taken(i, pool.results.scored[pool.scored.slot]) > most && !(kept && loaded.roomy(b, i, batch));
  }

  // Whether a row that reads keeps its promises while it is busy for such a share, the cache's way added.
  function judged(question, b) {
    const names = b.pool.promised, late = names.map((name) => DELAYED.includes(name));
    return (i, batch, busy, transfer) => {
      b.counted({ r_busy: busy });
      const r = b.promises(i, batch), times = (k) => (late[k] ? r[k] + transfer : r[k]);
      for (let k = 0; k < r.length; k++) if (!(times(k) <= b.most[k])) return false;
      return !b.chancy || b.late(i, batch).every((factor, k) => times(k) * factor <= b.most[k]);
    };
  }
  // The largest such share, by the halvings of `busiest`; at `busy` it keeps them.
  function busiest(question, keeps, i, batch, transfer, busy) {
    const [turns, idle] = question.busiest;
    if (keeps(i, batch, 1, transfer)) return 1;
    let low = idle, high = 1;
    for (let turn = 0; turn < turns; turn++) {
      const middle = (low + high) / 2;
      if (middle <= busy || keeps(i, batch, middle, transfer)) low = middle; else high = middle;
      if (low === high) break;
    }
    return low;
  }

  // Rows that read, on each size of a pass, with the most that any share of use lets them serve, and
  // what they take at least; without those whose fewest replicas take more than `most`.
  function readable(question, a, only, taken, most = Infinity) {
    const { pool } = a, made = [], load = a.limits.readers;
    for (let i = only ?? 0; i < (only ?? pool.size - 1) + 1; i++) {
      const replicas = pool.way("replicas")[i];
      if (!a.allowed(i) || replicas <= question.spare || taken(i, Infinity) > most) continue;
      const sizes = passSizes(a, i);
      for (let k = 0; k < sizes.length; k++) {
        const r = a.at("occupied", i, sizes[k]), slot = r[0], ranks = pool.way("dp_attention")[i];
        const rate = Math.min(rateOf(slot, 1, question.headroom), load * ranks / r[1] * (1 + SAME));
        const place = room(pool, i), engines = pool.way("engines")[i], odd = oddOf(a, i);
        made.push({ row: i, batch: sizes[k], slot, rate, odd, least: taken(i, rate), order: i * 64 + k, room: place, engines, alike: `${place.id}/${engines}/${odd}` });
      }
    }
    return made;
  }

  // Of every number of receivers, room, engines and oddness the row that reads fastest, and when it does.
  // One that does not keep its promises at the best rate so far is no better: the fastest come first.
  function reading(question, a, rows, numbers) {
    const { pool } = a, keeps = judged(question, a), [, idle] = question.busiest;
    const places = new Map(numbers.map((number) => [number, new Map()]));
    for (const x of [...rows].sort((x, y) => y.rate - x.rate)) {
      const sends = shards(pool, x.row), sized = new Map();
      counted(question, a, x.row);
      for (const number of numbers) {
        const fewer = Math.min(sends, number), transfer = transferTime(question, a, fewer), best = places.get(number).get(x.alike);
        if (!sized.has(fewer)) {
          const least = best ? best.rate * (1 - SAME) * x.slot / (1 - question.headroom) : idle;
          if ((best && x.rate < best.rate * (1 - SAME)) || least > 1 || !keeps(x.row, x.batch, least, transfer)) continue;
          sized.set(fewer, busiest(question, keeps, x.row, x.batch, transfer, least));
        }
        const busy = sized.get(fewer), rate = rateOf(x.slot, busy, question.headroom);
        if (!best || 1 / rate < 1 / best.rate || (rate === best.rate && x.order < best.order)) places.get(number).set(x.alike, { ...x, busy, rate, transfer });
      }
    }
    return places;
  }
  const counted = (question, a, i) => {
    const replicas = a.pool.way("replicas")[i];
    a.counted({ n_rep: replicas, n_up: replicas - question.spare, n_chips: a.pool.way("chips")[i] });
  };
  const byRoom = (x, y) => x.room.stage - y.room.stage || x.room.stages - y.room.stages || x.odd - y.odd;

  // Of each number of receivers and engine the readers, one of each room and oddness, with their latency.
  function firsts(question, a, places, bits) {
    const groups = new Map();
    for (const [number, all] of places)
      for (const bit of bits) {
        const rooms = new Map();
        for (const x of [...all.values()].sort((x, y) => 1 / x.rate - 1 / y.rate || x.order - y.order))
          if (inGroup(x, bit, false) && !rooms.has(`${x.room.id}/${x.odd}`)) rooms.set(`${x.room.id}/${x.odd}`, x);
        groups.set(`${number}/${named(bit)}`, [...rooms.values()].sort(byRoom).map((x) => timed(question, a, x)));
      }
    return groups;
  }
  function timed(question, a, x) {
    if (x.latency === undefined) {
      counted(question, a, x.row);
      a.counted({ r_busy: x.busy });
      x.latency = a.score(x.row, x.batch)[a.pool.scored.ttft] + x.transfer;
    }
    return x;
  }

  // ---- pairs and splits ----

  const FEWEST = 12; // rows that read, by what they take at least, from which the first pair is made

  function searched(question, state, held, most) {
    const a = bind(question.read, state), b = bind(question.decode, state), [i, j] = held ? held.rows : [null, null];
    const ask = { question, demand: a.values.X_arr, prices: [a.values.p_chip, b.values.p_chip] };
    const taken = [a, b].map(({ pool }, k) => (row, rate) => (question.throughput ? 0 : ask.prices[k] * needed(ask, rate) * pool.replica[row]));
    const slotted = (row, slot) => taken[1](row, rateOf(slot, 1, question.headroom));
    const least = (rows, k) => rows.reduce((m, x) => Math.min(m, taken[k](x.row, x.rate)), Infinity);
    const bounded = (pairs) => { limit = pairs.reduce((m, x) => Math.min(m, x.score * ask.demand * LEVEL), limit); };
    const paired = (reads, decodes, pruned = []) => matched(ask, pairsOf(question, a, reads, decodes, engineBits(reads, decodes, pruned, question.tied)));
    let limit = most * ask.demand;
    if (!held && question.recent.length) {
      const [reads, decodes] = [0, 1].map((k) => [...new Set(question.recent.map((pair) => pair[k]))]);
      bounded(paired(reads.flatMap((row) => readable(question, a, row, taken[0])), decodes.flatMap((row) => decoding(question, b, row, slotted, Infinity))));
    }
    const fewest = b.pool.replica.reduce((m, _, row) => Math.min(m, slotted(row, 0)), Infinity);
    const every = readable(question, a, i, taken[0], limit - fewest), quickest = every.reduce((m, x) => Math.min(m, x.least), Infinity);
    const decodes = decoding(question, b, j, slotted, limit < Infinity ? limit - quickest : Infinity);
    if (!decodes.length) return [];
    const rest = least(decodes, 1);
    if (!held && limit === Infinity) {
      const first = [...every].sort((x, y) => x.least - y.least), near = decodes.filter((x) => slotted(x.row, x.slot) <= 1.1 * rest);
      for (let number = FEWEST; limit === Infinity && number < first.length; number *= 4) bounded(paired(first.slice(0, number), near));
    }
    const ends = [quickest, rest], farthest = decodes.reduce((m, x) => Math.max(m, x.group), 0), [, idle] = question.busiest;
    const keeps = judged(question, a), begins = (k) => {
      counted(question, a, k);
      return a.pool.way("replicas")[k] > question.spare && keeps(k, passSizes(a, k)[0], idle, transferTime(question, a, Math.min(shards(a.pool, k), farthest)));
    };
    const pruned = held ? [] : [[a, begins], [b, (k) => b.keeps(k, 1) && loaded.roomy(b, k, 1)]];
    const best = paired(every.filter((x) => x.least + ends[1] <= limit), decodes.filter((x) => taken[1](x.row, x.rate) + ends[0] <= limit), pruned);
    if (best.length && !held) winning(question.recent, best[0].rows);
    return best.map((x) => ({ ...x, odd: () => x.oddity, paid: x.chips[0] + x.chips[1], read: question.read, decode: question.decode }));
  }

  // Readers and layouts that decode in groups by receivers and engine, one of each room, as pairs.
  function pairsOf(question, a, rows, decodes, bits) {
    const numbers = [...new Set(decodes.map((x) => x.group))].sort((x, y) => x - y);
    const ones = firsts(question, a, reading(question, a, rows, numbers), bits);
    const others = fastest(decodes, numbers, bits, true, (x, number) => (x.group === number ? x.latency : null));
    for (const rooms of others.values()) rooms.sort(byRoom);
    return [...ones].flatMap(([group, firsts]) => firsts.flatMap((x) => (others.get(group) ?? []).map((y) => [x, y])));
  }

  const needed = ({ question, demand }, rate) => Math.max(Math.ceil(demand / rate - 1e-12), 1) + question.spare;
  const chipsOf = (x) => x.room.stage * x.room.stages;
  const cost = ({ prices, demand }, taken, rest) => (prices[0] * taken + prices[1] * rest) / demand;

  // What a pair costs at least: its replicas packed without a gap.
  function least(ask, [x, y]) {
    const { question, prices, demand } = ask;
    if (question.throughput) return 1 / demand;
    const taken = needed(ask, x.rate) * chipsOf(x), total = taken + needed(ask, y.rate) * chipsOf(y);
    const chips = question.paid.find((paid) => paid >= total) ?? Infinity;
    return (taken * prices[0] + (total - taken) * prices[1] + (chips - total) * Math.min(...prices)) / demand;
  }

  // Pairs, or what they cost at least: within a tie of the least the plainer, then the faster.
  function promising(every, score, odd, latency) {
    const least = every.reduce((m, x) => Math.min(m, score(x)), Infinity);
    return sorted(every, (x) => [score(x) <= least * (1 + TIE) ? odd(x) : Infinity, Math.floor(Math.log(score(x) / least) / SAME), odd(x), latency(x)]);
  }
  const bestFirst = (pairs) => promising(pairs, (x) => x.score, (x) => x.oddity, (x) => x.latency);

  // Pairs in the order of what they cost at least, some at a time, until none can be cheaper, or as cheap and plainer.
  function matched(ask, pairs) {
    const [KEPT, FEW, POINTS] = ask.question.first, { paid } = ask.question, looks = paid.length.toString(2).length;
    const bound = new Map(pairs.map((pair) => [pair, least(ask, pair)])), odd = ([x, y]) => x.odd + y.odd;
    const order = promising(pairs.filter((pair) => bound.get(pair) < Infinity), (pair) => bound.get(pair), odd, ([x, y]) => x.latency + y.latency);
    const rest = Float64Array.from(order, (pair) => bound.get(pair)), plainest = Float64Array.from(order, odd);
    for (let k = order.length - 2; k >= 0; k--) { rest[k] = Math.min(rest[k], rest[k + 1]); plainest[k] = Math.min(plainest[k], plainest[k + 1]); }
    let best = [], start = 0, size = FEW;
    while (start < order.length) {
      const scores = best.map((x) => x.score), tied = rest[start] < Math.min(...scores) * (1 + TIE);
      if (best.length === KEPT && rest[start] >= Math.max(...scores) && !(tied && plainest[start] < best[0].oddity)) break;
      const part = order.slice(start, start + Math.max(1, Math.floor(size / looks)));
      best = merged(best, split(ask, part), KEPT);
      start += part.length; size = Math.min(2 * size, POINTS);
    }
    return best;
  }

  // The best few of both, one of each layout that decodes; of a tie the plainer, the faster.
  function merged(best, pairs, most) {
    const leading = new Map();
    for (const pair of bestFirst([...best, ...pairs]))
      if (!leading.has(pair.rows[1])) leading.set(pair.rows[1], pair);
    return [...leading.values()].slice(0, most);
  }

  // Replicas of a pair that the load asks for, or as the question says; 0 where those are too few.
  function* counts(ask, x, y) {
    const n = needed(ask, x.rate), m = needed(ask, y.rate);
    for (const reads of ask.question.reads)
      for (const decodes of ask.question.decodes)
        yield [reads ? (n <= reads ? reads : 0) : n, decodes ? (m <= decodes ? decodes : 0) : m];
  }

  // The pairs on the fewest chips that hold them; of each layout that decodes those about as good as its best.
  function split(ask, pairs) {
    const { question, demand } = ask, { spare, paid } = question, [, , , TIED] = question.first, made = [];
    for (const [x, y] of pairs)
      for (const [n, m] of counts(ask, x, y)) {
        const left = (chips) => beside(question, x, y, chips, Math.max(replicasMost(chips, x.room), n))(n);
        if (!(n > spare && m > spare) || left(paid[paid.length - 1]) < m) continue;
        const chips = paid[first((k) => left(paid[k]) >= m, -1, paid.length - 1)];
        const taken = chipsThatRead(question, x, y, n, m, chips, ask.prices);
        const score = question.throughput ? 1 / demand : cost(ask, taken, Math.max(chips - taken, 0));
        made.push({ score, oddity: x.odd + y.odd, latency: x.latency + y.latency, rows: [x.row, y.row], replicas: [n, m], chips: [taken, chips - taken],
                    requests: demand, batch: y.batch, reads: x.batch, slots: [x.slot, y.slot], fills: [x.busy, 1] });
      }
    const seen = new Set(), leading = bestFirst(made).filter(({ rows }) => { const key = rows.join(); return !seen.has(key) && seen.add(key); }).slice(0, TIED), bests = new Map();
    for (const pair of leading) if (!bests.has(pair.rows[1])) bests.set(pair.rows[1], pair.score);
    return leading.filter((pair) => pair.score <= bests.get(pair.rows[1]) * (1 + 4 * SAME));
  }

  // ---- a pair in full ----

  // The pool that reads under the load: the pass whose first token is earliest, and what it gives.
  function reads(question, a, pair) {
    const i = pair.rows[0], [replicas] = pair.replicas, up = replicas - question.spare, { pool } = a;
    const loads = (batch) => {
      const slot = a.score(i, batch)[pool.scored.slot];
      a.counted({ n_rep: replicas, n_up: up, n_chips: pair.chips[0], r_busy: pair.requests * slot / up / (1 - question.headroom) });
    };
    const batch = loaded.quickest(a, i, loads) || pair.reads;
    loads(batch);
    return { batch, values: a.outputs(i, batch) };
  }

  return { searched, reads, rateOf };
}
