"use strict";
// How often requests in flight find no room, as planner/problems/serving/step/occupancy: tails of the
// negative binomial and of the Poisson, by continued fractions.
const Crowding = (() => {
  const EVEN = 1e-6, TINY = 1e-300, DIGITS = 1e-15, TURNS = 100000;
  const SERIES = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

  // ln of the gamma function: Stirling's series, and Lanczos's for what is small.
  function lnGamma(x) {
    if (x > 30) return (x - 0.5) * Math.log(x) - x + 0.91893853320467274178 + (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x * x)) / (x * x)) / (x * x)) / x;
    if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lnGamma(1 - x);
    const at = x - 1, t = at + 7.5;
    let sum = SERIES[0];
    for (let k = 1; k < SERIES.length; k++) sum += SERIES[k] / (at + k);
    return 0.91893853320467274178 + (at + 0.5) * Math.log(t) - t + Math.log(sum);
  }

  // 1/(1 + a2/(1 + a3/(1 + ...))) of the incomplete beta function, by Lentz's rule.
  function betaFraction(a, b, x) {
    let value = 1, c = 1 / TINY, d = 1;
    for (let k = 2; k < TURNS; k++) {
      const m = (k - 1) >> 1;
      const over = x * ((k & 1) ? m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m)) : -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1)));
      d = 1 / (1 + over * d || TINY);
      c = 1 + over / c || TINY;
      value *= c * d;
      if (Math.abs(c * d - 1) < DIGITS) break;
    }
    return value;
  }

  // The regularised incomplete beta function I_x(a, b).
  function beta(a, b, x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(b, a, 1 - x);
    const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
    return front === 0 ? 0 : front / a * betaFraction(a, b, x);
  }

  // The regularised lower incomplete gamma function P(a, x).
  function gamma(a, x) {
    if (x <= 0) return 0;
    const front = Math.exp(a * Math.log(x) - x - lnGamma(a));
    if (front === 0) return x < a ? 0 : 1;
    if (x < a + 1) {
      let sum = 1 / a, term = sum;
      for (let k = 1; term > sum * DIGITS && k < TURNS; k++) sum += term *= x / (a + k);
      return front * sum;
    }
    let b = x + 1 - a, c = 1 / TINY, d = 1 / (b || TINY), value = d;
    for (let k = 1; k < TURNS; k++) {
      const over = k * (a - k);
      b += 2;
      d = 1 / (b + over * d || TINY);
      c = b + over / c || TINY;
      value *= c * d;
      if (Math.abs(c * d - 1) < DIGITS) break;
    }
    return 1 - front * value;
  }

  // Share of time in which more than `room` are in flight, `mean` on average, of a variance `spread` times it.
  function exceeding(mean, spread, room) {
    if (!(spread - 1 > EVEN)) return gamma(room + 1, mean);
    const more = spread - 1;
    return beta(room + 1, Math.max(mean, 2.2250738585072014e-308) / more, 1 - 1 / (1 + more));
  }

  return { exceeding, beta, gamma };
})();
