/* SPDX-License-Identifier: MIT */
/* groups.c - files with tensors of interleaved types as seeds */
#include "config.h"
#include "tests/fuzz/groups.h"
#include "dtype/interleave.h"

/* A file with a tensor of a type, of rows of one block of the interleaved
 * type. */
static void put_file(struct fix *f, int type, int group)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const uint64_t ne0 = gg_interleave_unit(group);
    const uint64_t n = 2 * gg_interleave_rows(group);
    const uint64_t row = t->row_header + ne0 / t->block_len * t->block_size;
    struct fix m;
    fix_init(&m);
    fix_head(&m, 3, 1, 2);
    fix_kv_str(&m, "general.architecture", "llama");
    fix_kv_u32(&m, "general.file_type", 0);
    fix_info(&m, "blk.0.attn_v.weight", FIX_NE(ne0, n), t->id, 0);
    fix_pad(&m, 32);
    for (uint64_t i = 0; i < n * row; i++)
        fix_u8(&m, i % 4 == 3 ? 0x3c : (unsigned)(i * 37 & 0x3f));
    fix_pad(&m, 32);
    fix_bytes(f, m.data, m.size);
    fix_fini(&m);
}

bool put_groups(struct fix *f, int no)
{
    for (int type = 0; type < GG_N_DTYPES; type++)
        if (gg_interleave_rows(type) > 1 && no-- == 0) {
            put_file(f, type, type);
            return true;
        }
    return false;
}

bool put_rows(struct fix *f, int no)
{
    for (int type = 0; type < GG_N_DTYPES; type++)
        if (gg_interleave_of(type) >= 0 && no-- == 0) {
            put_file(f, type, gg_interleave_of(type));
            return true;
        }
    return false;
}
