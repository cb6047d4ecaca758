"use strict";
// How many replicas a number of chips holds, and how many of another pool fit beside them. As
// planner/problems/serving/step/packing.
function packing() {
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
    const key = (first * 65536 + second) * 65536 + domain;
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

  // Fewest chips of a pool's own system, in whole units of what is rented, that hold its replicas.
  const rented = (question, side, count, room) => Math.ceil(chipsLeast(Math.max(count, 0), room) / question.units[side]) * question.units[side];

  // Chips paid for n replicas that read beside m that decode; of two systems what no replica needs is
  // of the cheaper.
  function chipsThatRead(question, a, b, n, m, chips, prices) {
    if (question.together) return n * a.room.stage * a.room.stages;
    const [first, last] = question.units, least = rented(question, 0, n, a.room), taken = least + (chips - least) % last;
    return prices[0] < prices[1] ? Math.max(Math.floor((chips - rented(question, 1, m, b.room)) / first) * first, taken) : taken;
  }

  function left(question, a, b, count, chips, side) {
    if (question.together) {
      const stages = stagesLeft(chips, a.room.stage, count * a.room.stages, b.room.stage, a.room.domain);
      return stages < 0 ? -1 : Math.floor(stages / b.room.stages);
    }
    const rest = chips - rented(question, side, count, a.room), unit = question.units[1 - side];
    return replicasMost(Math.floor(Math.max(rest, 0) / unit) * unit, b.room) - (rest < 0 ? 1 : 0);
  }

  // The same as a table by the number of replicas of the pool on a side, which reads or, as the second,
  // decodes; filled as it is asked for.
  function beside(question, a, b, chips, most, side = 0) {
    const key = ((side * 1024 + a.room.id) * 1024 + b.room.id) * 65536 + chips, tables = (question.tables ??= new Map());
    if (!tables.has(key)) tables.set(key, new Int32Array(most + 2).fill(-2));
    const table = tables.get(key);
    return (count) => (table[count] === -2 ? (table[count] = left(question, a, b, count, chips, side)) : table[count]);
  }

  return { replicasMost, chipsThatRead, rented, beside };
}
