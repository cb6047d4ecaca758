"""Symbols of an engine's memory: what it profiles, holds beside weights, and leaves to the cache.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

M_vis      = _symbol("M_vis",      "byte",        "memory of a chip that the runtime sees")
M_ctx      = _symbol("M_ctx",      "byte",        "context of the driver and first buffers of the ranks, outside the engine's share")
M_smp      = _symbol("M_smp",      "byte",        "peak of the sampler, as the engine profiles it")
M_fwd      = _symbol("M_fwd",      "byte",        "peak of a forward pass of a full step")
M_moe      = _symbol("M_moe",      "byte",        "workspace of the experts of a full step")
M_else     = _symbol("M_else",     "byte",        "memory of libraries and links, within the share")
M_more     = _symbol("M_more",     "byte",        "memory for images, drafts, or a host that shares the chip's")
M_graph    = _symbol("M_graph",    "byte",        "captured graphs")
M_room     = _symbol("M_room",     "byte",        "memory that the engine leaves for the cache of one chip")
M_static   = _symbol("M_static",   "byte",        "memory kept out of the pool by default")
M_base_gr  = _symbol("M_base_gr",  "byte",        "the part of it that no setting moves")
M_rank     = _symbol("M_rank",     "byte",        "the part of it that each rank adds")
M_group    = _symbol("M_group",    "byte",        "one block of one group of layers in the cache")
f_format   = _symbol("f_format",   "1",           "bytes of weights as kernels lay them out, over those of the checkpoint")
k_smp      = _symbol("k_smp",      "1",           "copies of the logits, in 32 bits, that a sampler holds")
k_resid    = _symbol("k_resid",    "1",           "vectors of the model's width alive at the peak of a pass")
k_ffn      = _symbol("k_ffn",      "1",           "vectors of the feed-forward width alive then")
k_moe      = _symbol("k_moe",      "1",           "workspaces of experts alive at once")
k_graph    = _symbol("k_graph",    "byte",        "memory of one captured graph of one layer")
n_graph    = _symbol("n_graph",    "1",           "graphs that are captured")
n_deep     = _symbol("n_deep",     "1",           "layers of one stage")
n_seats    = _symbol("n_seats",    "seq",         "most sequences of a step, of one copy")
n_budget   = _symbol("n_budget",   "token",       "most tokens of a step, of one copy")
n_pick     = _symbol("n_pick",     "1",           "experts that a token visits")
h_hid      = _symbol("h_hid",      "1/token",     "width of the model, per token")
h_ffn      = _symbol("h_ffn",      "1/token",     "width of the widest dense feed-forward part, per token")
h_one      = _symbol("h_one",      "1/token",     "width of one expert, on one chip, per token")
b_val      = _symbol("b_val",      "byte",        "bytes of one value that the engine computes with")
b_chunk    = _symbol("b_chunk",    "byte/token",  "memory kept free per token of a chunk")
b_run      = _symbol("b_run",      "byte/seq",    "memory kept free per sequence of the largest graph")
x_default  = _symbol("x_default",  "1",           "share of a chip's memory that the engine takes unasked")
x_start    = _symbol("x_start",    "1",           "largest share with which the engine starts")
n_block    = _symbol("n_block",    "1",           "blocks of the cache")
h_peak     = _symbol("h_peak",     "1/token",     "further elements alive per token where a pass takes more than its sampler")
h_work     = _symbol("h_work",     "1/token",     "elements per token of the workspace of experts")
x_pass     = _symbol("x_pass",     "1",           "1 where memory must hold a chunk of a prompt beside what decodes, else 0")
M_hold     = _symbol("M_hold",     "byte",        "libraries, links and graphs of an engine within its share")
