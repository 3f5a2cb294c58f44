/* SPDX-License-Identifier: MIT */
/* cache_type.c - names of types for the key/value cache */
#include "config.h"
#include "tools/common/cache_type.h"

#include <gguf/gguf.h>

const struct opt_word cache_type_words[] = {
    { "f32", GGUF_DTYPE_F32 },       { "f16", GGUF_DTYPE_F16 },
    { "bf16", GGUF_DTYPE_BF16 },     { "q8_0", GGUF_DTYPE_Q8_0 },
    { "q4_0", GGUF_DTYPE_Q4_0 },     { "q4_1", GGUF_DTYPE_Q4_1 },
    { "q5_0", GGUF_DTYPE_Q5_0 },     { "q5_1", GGUF_DTYPE_Q5_1 },
    { "iq4_nl", GGUF_DTYPE_IQ4_NL }, { NULL, 0 },
};
