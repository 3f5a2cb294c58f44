/* SPDX-License-Identifier: MIT */
/* fix_bad_meta.c - one defect in the head or the metadata each */
#include "config.h"
#include "tests/fix.h"

/* ---------------------------------------------------------------- head --- */

static void empty(struct fix *f)
{
    fix_mark(f);
}

static void short_magic(struct fix *f)
{
    fix_mark(f);
    fix_bytes(f, "GGU", 3);
}

static void magic(struct fix *f)
{
    fix_mark(f);
    fix_bytes(f, "lmgg", 4);
    fix_fill(f, 0, 20);
}

static void lfs_pointer(struct fix *f)
{
    fix_mark(f);
    fix_bytes(f, "version https://git-lfs.github.com/spec/v1\noid", 46);
}

static void no_version(struct fix *f)
{
    fix_bytes(f, "GGUF", 4);
    fix_mark(f);
}

static void version(struct fix *f, uint32_t v)
{
    fix_bytes(f, "GGUF", 4);
    fix_mark(f);
    fix_u32(f, v);
    fix_fill(f, 0, 16);
}

static void version_0(struct fix *f)
{
    version(f, 0);
}

static void version_1(struct fix *f)
{
    version(f, 1);
}

static void version_4(struct fix *f)
{
    version(f, 4);
}

static void version_2_be(struct fix *f)
{
    f->big_endian = true;
    version(f, 2);
}

static void counts(struct fix *f, uint64_t n_tensors, uint64_t n_kv,
                   bool tensors_wrong)
{
    fix_bytes(f, "GGUF", 4);
    fix_u32(f, 3);
    if (tensors_wrong)
        fix_mark(f);
    fix_u64(f, n_tensors);
    if (!tensors_wrong)
        fix_mark(f);
    fix_u64(f, n_kv);
    fix_fill(f, 0, 40);
}

static void tensors_huge(struct fix *f)
{
    counts(f, UINT64_MAX, 0, true);
}

/* n * 24 wraps to a small number */
static void tensors_wrap(struct fix *f)
{
    counts(f, UINT64_MAX / 24 + 1, 0, true);
}

static void keys_huge(struct fix *f)
{
    counts(f, 0, UINT64_MAX, false);
}

static void keys_few_bytes(struct fix *f)
{
    counts(f, 0, 4, false);
}

/* ---------------------------------------------------------------- keys --- */

static void key_empty(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_mark(f);
    fix_key(f, "", GGUF_VAL_U32);
    fix_u32(f, 1);
}

static void key_length_huge(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_mark(f);
    fix_u64(f, UINT64_MAX);
    fix_fill(f, 'k', 40);
}

static void key_too_long(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_mark(f);
    fix_u64(f, 65536);
    fix_fill(f, 'k', 65536 + 40);
}

static void key_bytes(struct fix *f, const char *bytes, size_t n)
{
    fix_head(f, 3, 0, 1);
    fix_mark(f);
    fix_u64(f, n);
    fix_bytes(f, bytes, n);
    fix_u32(f, GGUF_VAL_U32);
    fix_u32(f, 1);
}

static void key_nul(struct fix *f)
{
    key_bytes(f, "a\0b", 3);
}

static void key_escape(struct fix *f)
{
    key_bytes(f, "a\033[2J", 5);
}

static void key_c1(struct fix *f)
{
    key_bytes(f, "a\xc2\x9b", 3);
}

static void key_not_utf8(struct fix *f)
{
    key_bytes(f, "a\xff", 2);
}

static void key_twice(struct fix *f)
{
    fix_head(f, 3, 0, 3);
    fix_kv_u32(f, "a", 1);
    fix_kv_u32(f, "b", 1);
    fix_mark(f);
    fix_kv_u32(f, "a", 2);
}

static void value_type(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_str(f, "k");
    fix_mark(f);
    fix_u32(f, GGUF_N_VAL_TYPES);
    fix_fill(f, 0, 32);
}

static void value_short(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "k", GGUF_VAL_U64);
    fix_mark(f);
    fix_u32(f, 1);
}

static void bool_2(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "k", GGUF_VAL_BOOL);
    fix_mark(f);
    fix_u8(f, 2);
}

static void string_length(struct fix *f, uint64_t n)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "k", GGUF_VAL_STR);
    fix_mark(f);
    fix_u64(f, n);
    fix_bytes(f, "abc", 3);
}

static void string_one_more(struct fix *f)
{
    string_length(f, 4);
}

/* length + 8 wraps */
static void string_wrap(struct fix *f)
{
    string_length(f, UINT64_MAX - 7);
}

/* -------------------------------------------------------------- arrays --- */

static void array_elem(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "k", GGUF_VAL_ARR);
    fix_mark(f);
    fix_u32(f, 13);
    fix_u64(f, 0);
}

static void array_count(struct fix *f, uint32_t elem, uint64_t n)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "k", GGUF_VAL_ARR);
    fix_u32(f, elem);
    fix_mark(f);
    fix_u64(f, n);
    fix_fill(f, 0, 16);
}

/* n * 8 wraps to 8 */
static void array_wrap(struct fix *f)
{
    array_count(f, GGUF_VAL_U64, (UINT64_C(1) << 61) + 1);
}

static void array_one_more(struct fix *f)
{
    array_count(f, GGUF_VAL_U64, 3);
}

static void array_strings(struct fix *f)
{
    array_count(f, GGUF_VAL_STR, UINT64_C(1) << 63);
}

static void array_arrays(struct fix *f)
{
    array_count(f, GGUF_VAL_ARR, UINT64_C(1) << 62);
}

static void array_string_cut(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_array(f, "k", GGUF_VAL_STR, 2);
    fix_str(f, "one");
    fix_mark(f);
    fix_u64(f, 4);
    fix_bytes(f, "two", 3);
}

static void array_bool(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_array(f, "k", GGUF_VAL_BOOL, 3);
    fix_u8(f, 1);
    fix_u8(f, 0);
    fix_mark(f);
    fix_u8(f, 3);
}

static void depth_9(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_array(f, "deep", GGUF_VAL_ARR, 1);
    for (int depth = 2; depth < 9; depth++) {
        fix_u32(f, GGUF_VAL_ARR);
        fix_u64(f, 1);
    }
    fix_mark(f);
    fix_u32(f, GGUF_VAL_U8);
    fix_u64(f, 0);
}

static void nested_elem(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_array(f, "k", GGUF_VAL_ARR, 2);
    fix_u32(f, GGUF_VAL_U8);
    fix_u64(f, 1);
    fix_u8(f, 1);
    fix_mark(f);
    fix_u32(f, 77);
    fix_u64(f, 0);
}

/* ----------------------------------------------------------- alignment --- */

static void alignment(struct fix *f, uint32_t v)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "general.alignment", GGUF_VAL_U32);
    fix_mark(f);
    fix_u32(f, v);
}

static void alignment_0(struct fix *f)
{
    alignment(f, 0);
}

static void alignment_4(struct fix *f)
{
    alignment(f, 4);
}

static void alignment_24(struct fix *f)
{
    alignment(f, 24);
}

static void alignment_max(struct fix *f)
{
    alignment(f, UINT32_MAX);
}

static void alignment_type(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "general.alignment", GGUF_VAL_U64);
    fix_mark(f);
    fix_u64(f, 32);
}

static void alignment_array(struct fix *f)
{
    fix_head(f, 3, 0, 1);
    fix_key(f, "general.alignment", GGUF_VAL_ARR);
    fix_mark(f);
    fix_u32(f, GGUF_VAL_U32);
    fix_u64(f, 1);
    fix_u32(f, 32);
}

/* Legal, but the data would begin two gigabytes on. */
static void alignment_far(struct fix *f)
{
    fix_head(f, 3, 1, 1);
    fix_kv_u32(f, "general.alignment", UINT32_C(1) << 31);
    fix_info(f, "a", FIX_NE(1), GGUF_DTYPE_F32, 0);
    fix_mark(f);
    fix_fill(f, 0, 64);
}

const struct fixture fix_bad_meta[] = {
    { "bad-empty", empty, GGUF_E_TRUNCATED },
    { "bad-short-magic", short_magic, GGUF_E_TRUNCATED },
    { "bad-magic", magic, GGUF_E_FORMAT },
    { "bad-lfs-pointer", lfs_pointer, GGUF_E_FORMAT },
    { "bad-no-version", no_version, GGUF_E_TRUNCATED },
    { "bad-version-0", version_0, GGUF_E_VERSION },
    { "unsupported-version-1", version_1, GGUF_E_VERSION },
    { "unsupported-version-4", version_4, GGUF_E_VERSION },
    { "bad-version-2-be", version_2_be, GGUF_E_VERSION },
    { "bad-tensors-huge", tensors_huge, GGUF_E_TRUNCATED },
    { "bad-tensors-wrap", tensors_wrap, GGUF_E_TRUNCATED },
    { "bad-keys-huge", keys_huge, GGUF_E_TRUNCATED },
    { "bad-keys-few-bytes", keys_few_bytes, GGUF_E_TRUNCATED },
    { "bad-key-empty", key_empty, GGUF_E_FORMAT },
    { "bad-key-length-huge", key_length_huge, GGUF_E_TRUNCATED },
    { "bad-key-too-long", key_too_long, GGUF_E_LIMIT },
    { "bad-key-nul", key_nul, GGUF_E_FORMAT },
    { "bad-key-escape", key_escape, GGUF_E_FORMAT },
    { "bad-key-c1", key_c1, GGUF_E_FORMAT },
    { "bad-key-not-utf8", key_not_utf8, GGUF_E_FORMAT },
    { "bad-key-twice", key_twice, GGUF_E_DUPLICATE },
    { "bad-value-type", value_type, GGUF_E_FORMAT },
    { "bad-value-short", value_short, GGUF_E_TRUNCATED },
    { "bad-bool-2", bool_2, GGUF_E_FORMAT },
    { "bad-string-one-more", string_one_more, GGUF_E_TRUNCATED },
    { "bad-string-wrap", string_wrap, GGUF_E_TRUNCATED },
    { "bad-array-elem", array_elem, GGUF_E_FORMAT },
    { "bad-array-wrap", array_wrap, GGUF_E_TRUNCATED },
    { "bad-array-one-more", array_one_more, GGUF_E_TRUNCATED },
    { "bad-array-strings", array_strings, GGUF_E_TRUNCATED },
    { "bad-array-arrays", array_arrays, GGUF_E_TRUNCATED },
    { "bad-array-string-cut", array_string_cut, GGUF_E_TRUNCATED },
    { "bad-array-bool", array_bool, GGUF_E_FORMAT },
    { "bad-depth-9", depth_9, GGUF_E_LIMIT },
    { "bad-nested-elem", nested_elem, GGUF_E_FORMAT },
    { "bad-alignment-0", alignment_0, GGUF_E_FORMAT },
    { "bad-alignment-4", alignment_4, GGUF_E_FORMAT },
    { "bad-alignment-24", alignment_24, GGUF_E_FORMAT },
    { "bad-alignment-max", alignment_max, GGUF_E_FORMAT },
    { "bad-alignment-type", alignment_type, GGUF_E_FORMAT },
    { "bad-alignment-array", alignment_array, GGUF_E_FORMAT },
    { "bad-alignment-far", alignment_far, GGUF_E_TRUNCATED },
    { NULL, NULL, GGUF_OK },
};
