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
    /* File whose types count for "int" and "float": if it has the key and the
     * value fits, its type is used. Otherwise, or if this is NULL, int becomes
     * the first of u32, i32, u64 and i64 that holds the value, and float
     * becomes f32. */
    const struct gguf_file *like;
    bool as_llama; /* drop the sign of int, as llama-quantize does */
};

/* Set the key that text, KEY=TYPE:VALUE, names. An error ends the program with
 * a usage error. */
void override_add(const struct override *o, const char *text);

/* Check g->file with the keys of meta added, as gguf-edit does
 * (guard_check()). g->before and g->after are set during the call. Returns
 * false after a message. */
bool override_guard(struct guard *g, const struct gguf_meta *meta);

#endif
