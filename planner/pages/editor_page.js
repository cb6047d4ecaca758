"use strict";
const at = id => document.getElementById(id);
const START = {problem: "serving", model: "gpt-oss-120b", system: "hgx-h200", chips: [1, 2, 4, 8],
  workload: {input_tokens: 1500, output_tokens: 800}, promises: {tpot: "20 ms"}};
at("before").value = at("after").value = JSON.stringify(START, null, 2);
function scenario(id) {
  try { return JSON.parse(at(id).value); }
  catch (error) { throw new Error(id + ": " + error.message); }
}
async function ask(path, body, form) {
  at("mistakes").textContent = "";
  at("answer").textContent = "";
  at("state").textContent = "computing";
  const started = performance.now();
  try {
    const response = await fetch(path + form, {method: "POST",
      headers: {"content-type": "application/json"}, body: JSON.stringify(body())});
    const text = await response.text();
    if (response.ok) { return text; }
    const refusal = JSON.parse(text);
    const lines = refusal.mistakes.map(x => (x.path ? x.path + ": " : "") + x.message);
    at("mistakes").textContent = lines.join("\n") || refusal.message;
  } catch (error) {
    at("mistakes").textContent = error.message;
  } finally {
    at("state").textContent = ((performance.now() - started) / 1000).toFixed(1) + " s";
  }
  return null;
}
async function show(path, body) {
  const text = await ask(path, body, "?form=text");
  if (text !== null) { at("answer").textContent = text; }
}
const both = () => ({before: scenario("before"), after: scenario("after")});
at("check").onclick = () => show("/check", () => scenario("before"));
at("solve").onclick = () => show("/solve", () => scenario("before"));
at("why").onclick = () => show("/why", () => scenario("before"));
at("compare").onclick = () => show("/compare", both);
at("report").onclick = async () => {
  const page = await ask("/report", () => scenario("before"), "");
  if (page === null) { return; }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([page], {type: "text/html"}));
  link.download = "report.html";
  link.click();
};
