/* SPDX-License-Identifier: MIT */
/* override.h - values of --override-kv: KEY=TYPE:VALUE
 *
 * TYPE is int, float, bool or str, as llama.cpp's tools have them, or a type of
 * GGUF: u8, i64, f32, uint16, string ...
 */
#ifndef TOOLS_OVERRIDE_H
#define TOOLS_OVERRIDE_H

#include "tools/common/guard.h"

struct override {
    struct gguf_meta *meta;
    /* int and float become the type that the key has here, if the value fits
     * into it; NULL, or no such key: int the narrowest of u32, i32, u64 and i64
     * that holds the value, float f32. */
    const struct gguf_file *like;
    bool as_llama; /* int loses its sign, as llama-quantize has it */
};

/* Set the key that text names. What is wrong with text ends the program, with a
 * usage error that names it. */
void override_add(const struct override *o, const char *text);

/* The guard of gguf-edit between the metadata of g->file and these with meta:
 * before and after are filled meanwhile. false: a message was printed. */
bool override_guard(struct guard *g, const struct gguf_meta *meta);

#endif
