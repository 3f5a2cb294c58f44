/* op_attn.h - the operation GGUF_OP_ATTENTION of the CPU backend */
#ifndef GG_CPU_OP_ATTN_H
#define GG_CPU_OP_ATTN_H

#include "cpu/task.h"

gg_cpu_op_fn gg_cpu_attention;
gg_cpu_work_fn gg_cpu_attention_work;
gg_cpu_supports_fn gg_cpu_attention_supports;

#endif
