/* SPDX-License-Identifier: MIT */
/* fix_bad_tensor.c - one defect in the tensors' list or data each */
#include "config.h"
#include "tests/fix.h"

/* ------------------------------------------------------------- tensors --- */

/* A list of one tensor with this name. */
static void name(struct fix *f, const char *bytes, size_t n)
{
    fix_head(f, 3, 1, 0);
    fix_mark(f);
    fix_u64(f, n);
    fix_bytes(f, bytes, n);
    fix_u32(f, 1);
    fix_u64(f, 1);
    fix_u32(f, GGUF_DTYPE_F32);
    fix_u64(f, 0);
    fix_pad(f, 32);
    fix_fill(f, 0, 32);
}

static void name_empty(struct fix *f)
{
    name(f, "", 0);
}

static void name_65(struct fix *f)
{
    name(f,
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
         65);
}

static void name_newline(struct fix *f)
{
    name(f, "a\nb", 3);
}

static void name_not_utf8(struct fix *f)
{
    name(f, "\xed\xa0\x80", 3);
}

static void name_length_huge(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_mark(f);
    fix_u64(f, UINT64_C(1) << 63);
    fix_fill(f, 'a', 64);
}

static void name_twice(struct fix *f)
{
    fix_head(f, 3, 2, 0);
    fix_info(f, "a", FIX_NE(1), GGUF_DTYPE_F32, 0);
    fix_mark(f);
    fix_info(f, "a", FIX_NE(1), GGUF_DTYPE_F32, 32);
    fix_pad(f, 32);
    fix_fill(f, 0, 64);
}

/* One tensor "t": these dimensions, this type, at this offset, 64 bytes of
 * data. The mark is at the dimensions. */
static void shape(struct fix *f, const uint64_t *ne, unsigned n_dims,
                  uint32_t type, uint64_t off)
{
    fix_head(f, 3, 1, 0);
    fix_str(f, "t");
    fix_mark(f);
    fix_u32(f, n_dims);
    for (unsigned d = 0; d < n_dims; d++)
        fix_u64(f, ne[d]);
    fix_u32(f, type);
    fix_u64(f, off);
    fix_pad(f, 32);
    fix_fill(f, 0, 64);
}

static void dims_5(struct fix *f)
{
    static const uint64_t ne[] = { 1, 1, 1, 1, 1 };
    shape(f, ne, 5, GGUF_DTYPE_F32, 0);
}

static void dims_huge(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_str(f, "t");
    fix_mark(f);
    fix_u32(f, UINT32_MAX);
    fix_fill(f, 1, 64);
}

static void dim_0(struct fix *f)
{
    static const uint64_t ne[] = { 4, 0 };
    shape(f, ne, 2, GGUF_DTYPE_F32, 0);
}

static void dim_negative(struct fix *f)
{
    static const uint64_t ne[] = { UINT64_C(1) << 63 };
    shape(f, ne, 1, GGUF_DTYPE_F32, 0);
}

static void elements_wrap(struct fix *f)
{
    static const uint64_t ne[] = { UINT64_C(1) << 32, UINT64_C(1) << 32 };
    shape(f, ne, 2, GGUF_DTYPE_F32, 0);
}

static void bytes_wrap(struct fix *f)
{
    static const uint64_t ne[] = { UINT64_C(1) << 62 };
    shape(f, ne, 1, GGUF_DTYPE_F32, 0);
}

/* Fits 63 bits, but not with the padding after it. */
static void padding_wrap(struct fix *f)
{
    static const uint64_t ne[] = { INT64_MAX };
    shape(f, ne, 1, GGUF_DTYPE_I8, 0);
    f->mark = 24; /* where the entry begins */
}

static void part_of_block(struct fix *f)
{
    static const uint64_t ne[] = { 48, 2 }; /* 96 elements: three blocks */
    shape(f, ne, 2, GGUF_DTYPE_Q4_0, 0);
}

static void type_negative(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_str(f, "t");
    fix_u32(f, 1);
    fix_u64(f, 1);
    fix_mark(f);
    fix_u32(f, UINT32_MAX);
    fix_u64(f, 0);
    fix_pad(f, 32);
    fix_fill(f, 0, 32);
}

/* ---------------------------------------------------------------- data --- */

/* Two tensors of 32 bytes, with these offsets, and so many bytes of data.
 * The mark is at the entry of the second. */
static void two(struct fix *f, uint64_t off_a, uint64_t off_b, size_t data)
{
    fix_head(f, 3, 2, 0);
    fix_info(f, "a", FIX_NE(8), GGUF_DTYPE_F32, off_a);
    fix_mark(f);
    fix_info(f, "b", FIX_NE(8), GGUF_DTYPE_F32, off_b);
    fix_pad(f, 32);
    fix_fill(f, 0, data);
}

static void offset_unaligned(struct fix *f)
{
    two(f, 0, 33, 128);
}

static void offset_outside(struct fix *f)
{
    two(f, 0, 1 << 20, 128);
}

/* data_off + offset wraps into the header */
static void offset_wrap(struct fix *f)
{
    two(f, 0, UINT64_MAX - 31, 128);
}

static void overlap(struct fix *f)
{
    two(f, 0, 0, 128);
}

static void one_byte_missing(struct fix *f)
{
    two(f, 0, 32, 63);
}

static void no_data(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_info(f, "a", FIX_NE(8), GGUF_DTYPE_F32, 0);
    fix_mark(f);
}

static void unknown_no_room(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_mark(f);
    fix_info(f, "a", FIX_NE(8), 999, 0);
    fix_pad(f, 32);
}

const struct fixture fix_bad_tensor[] = {
    { "bad-name-empty", name_empty, GGUF_E_FORMAT },
    { "bad-name-65", name_65, GGUF_E_LIMIT },
    { "bad-name-newline", name_newline, GGUF_E_FORMAT },
    { "bad-name-not-utf8", name_not_utf8, GGUF_E_FORMAT },
    { "bad-name-length-huge", name_length_huge, GGUF_E_TRUNCATED },
    { "bad-name-twice", name_twice, GGUF_E_DUPLICATE },
    { "bad-dims-5", dims_5, GGUF_E_LIMIT },
    { "bad-dims-huge", dims_huge, GGUF_E_LIMIT },
    { "bad-dim-0", dim_0, GGUF_E_FORMAT },
    { "bad-dim-negative", dim_negative, GGUF_E_OVERFLOW },
    { "bad-elements-wrap", elements_wrap, GGUF_E_OVERFLOW },
    { "bad-bytes-wrap", bytes_wrap, GGUF_E_OVERFLOW },
    { "bad-padding-wrap", padding_wrap, GGUF_E_TRUNCATED },
    { "bad-part-of-block", part_of_block, GGUF_E_SHAPE },
    { "bad-type-negative", type_negative, GGUF_E_FORMAT },
    { "bad-offset-unaligned", offset_unaligned, GGUF_E_FORMAT },
    { "bad-offset-outside", offset_outside, GGUF_E_TRUNCATED },
    { "bad-offset-wrap", offset_wrap, GGUF_E_TRUNCATED },
    { "bad-overlap", overlap, GGUF_E_FORMAT },
    { "bad-one-byte-missing", one_byte_missing, GGUF_E_TRUNCATED },
    { "bad-no-data", no_data, GGUF_E_TRUNCATED },
    { "bad-unknown-no-room", unknown_no_room, GGUF_E_TRUNCATED },
    { NULL, NULL, GGUF_OK },
};
