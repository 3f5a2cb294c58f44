/* SPDX-License-Identifier: MIT */
/* fuzz_split.c - a split set: opened, merged, split again, merged again
 *
 * The input has the form of shards_open(). The rest of the bytes before the
 * shards chooses how the set is split again.
 */
#include "config.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SHARDS = 40 };

/* Names, types and data of a and b must be equal. */
static void same_tensors(const struct gguf_file *a, const struct gguf_file *b)
{
    MUST(gguf_file_n_tensors(a) == gguf_file_n_tensors(b));
    for (size_t i = 0; i < gguf_file_n_tensors(a); i++) {
        const struct gguf_tensor_info *x = gguf_file_tensor(a, i);
        const struct gguf_tensor_info *y = gguf_file_tensor(b, i);
        char name[65];
        MUST(x->name.size == y->name.size && x->name.size < sizeof name);
        memcpy(name, x->name.data, x->name.size);
        name[x->name.size] = '\0';
        MUST(!memcmp(name, y->name.data, x->name.size));
        MUST(gguf_file_tensor_find(a, name) == x);
        MUST(x->dtype == y->dtype && x->size <= y->size);
        MUST(!memcmp(gguf_file_tensor_data(a, i), gguf_file_tensor_data(b, i),
                     x->size));
    }
}

/* Merge a set into a file, which must have the same tensors. false: its
 * alignment cannot be written. */
static bool merge_set(const struct gguf_file *s, const char *name)
{
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *one;
    uint64_t size;
    job.no_sync = 1;
    if (gguf_file_alignment(gguf_file_shard(s, 0)) >
        GGUF_WRITER_MAX_ALIGNMENT) {
        MUST(gguf_split_merge(s, scratch_path(name), &job, NULL) ==
             GGUF_E_LIMIT);
        return false;
    }
    MUST(gguf_split_merge(s, scratch_path(name), &job, NULL) == GGUF_OK);
    MUST(gguf_split_merge_size(s, &size, NULL) == GGUF_OK);
    MUST(gguf_file_open(&one, scratch_path(name), NULL, NULL) == GGUF_OK);
    MUST(!gguf_file_is_split(one) && gguf_file_size(one) == size);
    same_tensors(s, one);
    gguf_file_close(one);
    return true;
}

static void same_bytes(const char *name, const char *other)
{
    size_t n, m;
    uint8_t *a = scratch_read(scratch_path(name), &n);
    uint8_t *b = scratch_read(scratch_path(other), &m);
    MUST(n == m && !memcmp(a, b, n));
    free(a);
    free(b);
}

static void split_again(const struct gguf_file *s, struct bytes *how)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_split_plan *plan;
    struct gguf_file *set;
    struct gguf_error err;
    unsigned v = take(how);
    p.max_tensors = v & 7;
    p.by_layer = (v & 8) != 0;
    p.no_tensor_first = (v & 16) != 0;
    p.max_size = 64 * (uint64_t)take(how);
    job.no_sync = 1;
    if (gguf_split_plan_create(&plan, s, &p, &err) != GGUF_OK) {
        MUST(!plan && err.message[0]);
        return;
    }
    size_t n = gguf_split_plan_n_shards(plan);
    MUST(n > 0);
    if (n <= MAX_SHARDS) {
        MUST(gguf_split_plan_write(plan, scratch_path("again"), &job, NULL) ==
             GGUF_OK);
        MUST(gguf_file_open(&set, scratch_path("again"), NULL, NULL) ==
             GGUF_OK);
        MUST(gguf_file_n_shards(set) == n);
        for (size_t i = 0; i < n; i++) {
            uint64_t size = gguf_file_size(gguf_file_shard(set, i));
            MUST(size == gguf_split_plan_shard(plan, i)->file_size);
            MUST(!p.max_size || size <= p.max_size);
        }
        same_tensors(s, set);
        if (merge_set(set, "back.gguf") && gguf_file_is_split(s))
            same_bytes("back.gguf", "one.gguf");
        gguf_file_close(set);
    }
    gguf_split_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes how = { data, size };
    struct gguf_file *s = shards_open(&how);
    if (s) {
        if (!gguf_file_is_split(s) || merge_set(s, "one.gguf"))
            split_again(s, &how);
        gguf_file_close(s);
    }
    scratch_clean();
    return 0;
}

/* ---- seeds ---- */

struct shard {
    const char *name; /* general.name; NULL: no key */
    const char *tensor[3];
    uint16_t no, count;
    uint32_t total, type; /* total: number of the set's tensors; type of that
                           * key */
};

static void put_shard(struct fix *f, const struct shard *s)
{
    unsigned n = 0;
    struct fix head = { .data = NULL };
    while (n < 3 && s->tensor[n])
        n++;
    head.big_endian = f->big_endian;
    fix_head(&head, 3, n, 3 + (s->name != NULL));
    if (s->name)
        fix_kv_str(&head, "general.name", s->name);
    fix_key(&head, "split.no", GGUF_VAL_U16);
    fix_u16(&head, s->no);
    fix_key(&head, "split.count", GGUF_VAL_U16);
    fix_u16(&head, s->count);
    fix_key(&head, "split.tensors.count", GGUF_VAL_I32);
    fix_u32(&head, s->total);
    for (unsigned i = 0; i < n; i++)
        fix_info(&head, s->tensor[i], FIX_NE(32, 2), s->type, 128 * i);
    fix_pad(&head, 32);
    for (unsigned i = 0; i < n; i++)
        fix_fill(&head, s->no * 16 + i, 128); /* 68 or 128 of them count */
    fix_bytes(f, head.data, head.size);
    fix_fini(&head);
}

static void seed_set(const char *how, bool big_endian, const struct shard *s,
                     size_t n)
{
    struct fix *f = new_seed();
    f->big_endian = big_endian;
    fix_bytes(f, how, strlen(how));
    while (n--)
        put_shard(f, s++);
}

void fuzz_make_seeds(void)
{
    static const struct shard two[] = {
        { "x", { "a", "b" }, 0, 2, 3, GGUF_DTYPE_Q8_0 },
        { NULL, { "c" }, 1, 2, 3, GGUF_DTYPE_F16 },
    };
    static const struct shard alone[] = {
        { "x", { "a" }, 0, 1, 1, GGUF_DTYPE_F16 },
    };
    static const struct shard three[] = {
        { "layers", { NULL }, 0, 3, 5, 0 },
        { "layers", { "blk.0.w", "blk.0.b", "blk.1.w" }, 1, 3, 5, 1 },
        { "layers", { "blk.1.b", "output" }, 2, 3, 5, 1 },
    };
    static const struct shard wrong[] = {
        { "x", { "a", "a" }, 0, 2, 3, GGUF_DTYPE_Q8_0 },
        { "y", { "a" }, 0, 3, 2, 4242 },
    };
    seed_set("0 \001", false, two, 2); /* the first shard; one tensor each */
    seed_set("1 \002\100", false, two, 2);
    seed_set("p \010", true, two, 2);    /* the prefix; by layer */
    seed_set("d \031", false, three, 3); /* the folder */
    seed_set("0m", false, two, 2);       /* a shard is missing */
    seed_set("0m", false, alone, 1);     /* one whose keys say that it is a
                                          * whole model */
    seed_set("0 ", false, wrong, 2);
    seed_set("0 ", false, wrong + 1, 1);
    seed_files("0 \001", 3, "", 0);
    /* 59 bytes; a copy would have a GiB of padding */
    struct fix *f = new_seed();
    fix_bytes(f, "0 \001", 3);
    fix_head(f, 3, 0, 1);
    fix_kv_u32(f, "general.alignment", UINT32_C(1) << 30);
}
