/* SPDX-License-Identifier: MIT */
/* fix_good.c - files that open, from the plainest to the oddest */
#include "config.h"
#include "tests/fix.h"

static void nothing(struct fix *f)
{
    fix_head(f, 3, 0, 0);
}

static void only_padding(struct fix *f)
{
    fix_head(f, 3, 0, 0);
    fix_pad(f, 32);
}

static void plain(struct fix *f)
{
    fix_head(f, 3, 2, 2);
    fix_kv_str(f, "general.architecture", "llama");
    fix_kv_u32(f, "llama.block_count", 1);
    fix_info(f, "token_embd.weight", FIX_NE(4, 2), GGUF_DTYPE_F32, 0);
    fix_info(f, "output_norm.weight", FIX_NE(4), GGUF_DTYPE_F32, 32);
    fix_pad(f, 32);
    for (int i = 0; i < 12; i++)
        fix_f32(f, (float)i);
    fix_pad(f, 32);
}

static void version_2(struct fix *f)
{
    fix_head(f, 2, 1, 1);
    fix_kv_str(f, "general.architecture", "llama");
    fix_info(f, "a", FIX_NE(8), GGUF_DTYPE_F32, 0);
    fix_pad(f, 32);
    fix_fill(f, 1, 32);
}

static void scalars(struct fix *f)
{
    fix_head(f, 3, 0, 12);
    fix_key(f, "u8", GGUF_VAL_U8);
    fix_u8(f, 255);
    fix_key(f, "i8", GGUF_VAL_I8);
    fix_u8(f, 0x80);
    fix_key(f, "u16", GGUF_VAL_U16);
    fix_u16(f, 65535);
    fix_key(f, "i16", GGUF_VAL_I16);
    fix_u16(f, 0x8000);
    fix_key(f, "u32", GGUF_VAL_U32);
    fix_u32(f, UINT32_MAX);
    fix_key(f, "i32", GGUF_VAL_I32);
    fix_u32(f, (uint32_t)INT32_MIN);
    fix_key(f, "f32", GGUF_VAL_F32);
    fix_f32(f, 1.5f);
    fix_key(f, "bool", GGUF_VAL_BOOL);
    fix_u8(f, 1);
    fix_kv_str(f, "str", "text");
    fix_key(f, "u64", GGUF_VAL_U64);
    fix_u64(f, UINT64_MAX);
    fix_key(f, "i64", GGUF_VAL_I64);
    fix_u64(f, (uint64_t)INT64_MIN);
    fix_key(f, "f64", GGUF_VAL_F64);
    fix_u64(f, UINT64_C(0x3ff8000000000000)); /* 1.5 */
}

static void scalars_be(struct fix *f)
{
    f->big_endian = true;
    scalars(f);
}

static void arrays(struct fix *f)
{
    fix_head(f, 3, 0, 5);
    fix_array(f, "i16s", GGUF_VAL_I16, 3);
    fix_u16(f, 1);
    fix_u16(f, 0xffff);
    fix_u16(f, 300);
    fix_array(f, "f32s", GGUF_VAL_F32, 2);
    fix_f32(f, 0.25f);
    fix_f32(f, -2);
    fix_array(f, "bools", GGUF_VAL_BOOL, 2);
    fix_u8(f, 1);
    fix_u8(f, 0);
    fix_array(f, "strs", GGUF_VAL_STR, 3);
    fix_str(f, "one");
    fix_str(f, "");
    fix_str(f, "three");
    fix_array(f, "none", GGUF_VAL_STR, 0);
}

static void arrays_be(struct fix *f)
{
    f->big_endian = true;
    arrays(f);
}

/* [[1, 2], [], ["x", ["deep"]]] as far as types allow */
static void nested(struct fix *f)
{
    fix_head(f, 3, 0, 2);
    fix_array(f, "nest", GGUF_VAL_ARR, 3);
    fix_u32(f, GGUF_VAL_U8);
    fix_u64(f, 2);
    fix_u8(f, 1);
    fix_u8(f, 2);
    fix_u32(f, GGUF_VAL_F64);
    fix_u64(f, 0);
    fix_u32(f, GGUF_VAL_ARR);
    fix_u64(f, 1);
    fix_u32(f, GGUF_VAL_STR);
    fix_u64(f, 2);
    fix_str(f, "x");
    fix_str(f, "deep");
    fix_kv_u32(f, "after", 7);
}

static void nested_be(struct fix *f)
{
    f->big_endian = true;
    nested(f);
}

/* Arrays in arrays, as deep as the default allows. */
static void depth_8(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_array(f, "deep", GGUF_VAL_ARR, 1);
    for (int depth = 2; depth < 8; depth++) {
        fix_u32(f, GGUF_VAL_ARR);
        fix_u64(f, 1);
    }
    fix_u32(f, GGUF_VAL_U8);
    fix_u64(f, 1);
    fix_u8(f, 42);
}

static void alignment_64(struct fix *f)
{
    fix_head(f, 3, 2, 1);
    fix_kv_u32(f, "general.alignment", 64);
    fix_info(f, "a", FIX_NE(3), GGUF_DTYPE_F32, 0);
    fix_info(f, "b", FIX_NE(3), GGUF_DTYPE_F32, 64);
    fix_pad(f, 64);
    fix_fill(f, 0, 64 + 12);
}

static void types(struct fix *f)
{
    fix_head(f, 3, 6, 0);
    fix_info(f, "q4_k", FIX_NE(256), GGUF_DTYPE_Q4_K, 0); /* 144 bytes */
    fix_info(f, "removed", FIX_NE(32), 4, 160);           /* Q4_2 */
    fix_info(f, "unknown", FIX_NE(7), 999, 192);
    fix_info(f, "i8", FIX_NE(1), GGUF_DTYPE_I8, 256);
    fix_info(f, "fork", FIX_NE(256), 137, 288);          /* IQ2_K, 76 */
    fix_info(f, "not-that-fork", FIX_NE(256), 137, 384); /* 10 bytes */
    fix_pad(f, 32);
    fix_fill(f, 0x3c, 384 + 10);
}

static void no_dims(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_str(f, "scalar");
    fix_u32(f, 0);
    fix_u32(f, GGUF_DTYPE_F32);
    fix_u64(f, 0);
    fix_pad(f, 32);
    fix_f32(f, 1);
}

static void four_dims(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_info(f, "t", FIX_NE(2, 3, 4, 5), GGUF_DTYPE_F16, 0);
    fix_pad(f, 32);
    fix_fill(f, 0, 240);
}

static void name_64(struct fix *f)
{
    fix_head(f, 3, 1, 0);
    fix_info(f,
             "0123456789abcdef0123456789abcdef"
             "0123456789abcdef0123456789abcdef",
             FIX_NE(1), GGUF_DTYPE_F32, 0);
    fix_pad(f, 32);
    fix_fill(f, 0, 4);
}

static void gap_and_order(struct fix *f)
{
    fix_head(f, 3, 2, 0);
    fix_info(f, "second", FIX_NE(8), GGUF_DTYPE_F32, 128);
    fix_info(f, "first", FIX_NE(8), GGUF_DTYPE_F32, 32);
    fix_pad(f, 32);
    fix_fill(f, 7, 160);
}

static void trailing(struct fix *f)
{
    plain(f);
    fix_bytes(f, "what is this?", 13);
}

static void odd_names(struct fix *f)
{
    fix_head(f, 3, 1, 3);
    fix_kv_u32(f, "gpt-oss.Block_Count", 1);
    fix_kv_u32(f, "\xc3\xa9t\xc3\xa9", 2);
    fix_kv_str(f, "odd.text", "\x1b[31m\xff%s%n\n");
    fix_info(f, "../../etc/passwd", FIX_NE(1), GGUF_DTYPE_F32, 0);
    fix_pad(f, 32);
    fix_fill(f, 0, 4);
}

static void long_key(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_u64(f, 65535);
    fix_fill(f, 'k', 65535);
    fix_u32(f, GGUF_VAL_U8);
    fix_u8(f, 1);
}

const struct fixture fix_good[] = {
    { "good-nothing", nothing, GGUF_OK },
    { "good-only-padding", only_padding, GGUF_OK },
    { "good-plain", plain, GGUF_OK },
    { "good-version-2", version_2, GGUF_OK },
    { "good-scalars", scalars, GGUF_OK },
    { "good-scalars-be", scalars_be, GGUF_OK },
    { "good-arrays", arrays, GGUF_OK },
    { "good-arrays-be", arrays_be, GGUF_OK },
    { "good-nested", nested, GGUF_OK },
    { "good-nested-be", nested_be, GGUF_OK },
    { "good-depth-8", depth_8, GGUF_OK },
    { "good-alignment-64", alignment_64, GGUF_OK },
    { "good-types", types, GGUF_OK },
    { "good-no-dims", no_dims, GGUF_OK },
    { "good-four-dims", four_dims, GGUF_OK },
    { "good-name-64", name_64, GGUF_OK },
    { "good-gap-and-order", gap_and_order, GGUF_OK },
    { "good-trailing", trailing, GGUF_OK },
    { "good-odd-names", odd_names, GGUF_OK },
    { "good-long-key", long_key, GGUF_OK },
    { NULL, NULL, GGUF_OK },
};
