"""What writing, holding and reading a cache costs at three vendors, and what that implies.

Prices as listed in November 2026. What a write of an hour costs (2 x the input price at Anthropic),
and what an hour of storage does (Google), stand on the vendors' pages.
"""

import planner

VENDORS = {
    "Anthropic, Opus 4.6": {
        "input": "$5/Mtok", "output": "$25/Mtok", "cached": "$0.50/Mtok",
        "write": [
            {"hold": "5 min", "price": "$6.25/Mtok"}, {"hold": "1 hour", "price": "$10/Mtok"},
        ],
    },
    "OpenAI, GPT-5.6 Sol": {
        "input": "$4/Mtok", "output": "$20/Mtok", "cached": "$0.40/Mtok",
        "write": [{"hold": "5 min", "price": "$5/Mtok"}],
    },
    "Google, Gemini 2.5 Pro": {
        "input": "$1.25/Mtok", "output": "$10/Mtok", "cached": "$0.125/Mtok",
        "storage": "$4.50/Mtok/hour",
    },
}  # fmt: skip

print(f"{'':<24}{'holding, per hour':>19}{'reads that pay':>16}{'cache in HBM':>22}")
for vendor, sheet in VENDORS.items():
    scenario = {"problem": "prices", "sheet": sheet, "chips": "hgx-h100"}
    lines = planner.solve(scenario).answer.plan.inferences
    readings = {line.name: line for line in lines if line.reading is not None}
    if "hold_over_input" not in readings:
        print(f"{vendor:<24}{'one hold time is listed: nothing follows':>57}")
        continue
    over = f"{readings['hold_over_input'].mid * 3600:.3g} of input"
    reads = f"{readings['break_even_reads'].mid * 3600:.3g} an hour"
    cache = readings["kv_bytes_per_token"]
    room = f"{cache.low / 1e3:.0f} to {cache.high / 1e3:.0f} kB/token"
    print(f"{vendor:<24}{over:>19}{reads:>16}{room:>22}")
