"""Small tables of every kind that `planner validate` reads, and a way to run the command."""

from __future__ import annotations

from pathlib import Path

RUN_HEAD = (
    "model_path,system,backend,backend_version,precision,mode,isl,osl,concurrency,ttft_ms,tpot_ms,"
    "gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,"
    "moe_ep_size,measured_on,wip,image"
)
STEADY_HEAD = (
    "id,source,url,model,phase,chip,n_chips,layout,weight_dtype,kv_dtype,batch,context_or_isl,osl,"
    "metric,value,notes,quality"
)
COLLECTIVE_HEAD = (
    "system,accelerator,ranks,nodes,operation,size_bytes,time_us,algbw_GBps,busbw_GBps,note,"
    "source,kind"
)
EXCHANGE_HEAD = (
    "source,url,op,topology,chip,nic,ep,tokens_per_gpu,hidden,topk,dtype,latency_us,"
    "bandwidth_GBps,bw_kind,notes"
)
TRAINING_HEAD = (
    "id,model,hidden,layers,heads,ffn_hidden,seq_len,vocab,gpu,gpu_peak_tflops_bf16,gpus,tp,pp,dp,"
    "global_batch,recompute,measured_iter_time_s,iter_time_derived_s,source,notes"
)


def run_row(
    ttft: object = 120.0,
    tpot: object = 12.0,
    *,
    model: str = "meta-llama/Llama-3.1-70B",
    system: str = "h200_sxm",
    concurrency: int = 16,
    tp: int = 4,
    version: str = "1.0",
    date: str = "2026-01-01",
) -> str:
    """One aggregated run as a line."""
    return (
        f"{model},{system},vllm,{version},fp8,agg,1024,1024,{concurrency},{ttft},{tpot},fp8,fp8,"
        f"{concurrency},{tp},1,1,1,1,{date},,"
    )


def steady_row(name: str, metric: str, value: float, phase: str = "decode") -> str:
    """One clean steady batch as a line."""
    return (
        f"{name},s,u,Llama-3-8B,{phase},H100-SXM,1,TP1,fp8,fp8,8,1000,100,{metric},{value},,clean"
    )


def written(path: Path, *lines: str) -> Path:
    """A file of these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
