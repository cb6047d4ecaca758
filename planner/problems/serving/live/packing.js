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

  function left(question, a, b, count, chips) {
    if (question.together) {
      const stages = stagesLeft(chips, a.room.stage, count * a.room.stages, b.room.stage, a.room.domain);
      return stages < 0 ? -1 : Math.floor(stages / b.room.stages);
    }
    const rest = chips - chipsLeast(count, a.room);
    return replicasMost(Math.max(rest, 0), b.room) - (rest < 0 ? 1 : 0);
  }

  // The same as a table by the number of replicas that read, filled as it is asked for.
  const tables = new Map();
  function beside(question, a, b, chips, most) {
    const key = ((Number(question.together) * 1024 + a.room.id) * 1024 + b.room.id) * 65536 + chips;
    if (!tables.has(key)) tables.set(key, new Int32Array(most + 2).fill(-2));
    const table = tables.get(key);
    return (count) => (table[count] === -2 ? (table[count] = left(question, a, b, count, chips)) : table[count]);
  }

  return { replicasMost, chipsLeast, beside };
}
if (typeof module !== "undefined") module.exports = { packing };
