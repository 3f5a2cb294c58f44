/* SPDX-License-Identifier: MIT */
/* collect_file.c - files of importance data that are being collected
 *
 * A GGUF file with general.type "imatrix-part", the keys of keys[] below, and
 * tensors: "chunks" I8 [chunks of the text], state of each (enum
 * gguf_collect_state); for each matrix NAME.high and NAME.low, I64 [columns,
 * matrices], NAME.place, I8 of the same shape, and NAME.counts, I64
 * [matrices]. A sum is (high * 2^32 + low) * 2^(32 * (place - 1)), or 0 if
 * place is -128; high and low are not negative. eval/part_file.h describes the
 * rest. */
#include "config.h"
#include "eval/collect_int.h"
#include "eval/part_file.h"

#include "base/str.h"
#include "file/file_int.h"

#include <string.h>

enum { NAME_SIZE = 256 };

static const struct gguf_str state_name = { "chunks", 6 };

#define KEY "imatrix.part."
static const struct gg_part_kind part = { "imatrix-part", KEY, 3 };

/* Tensors of a matrix, in the order of the file. */
enum { HIGH, LOW, PLACE, COUNTS, N_KINDS };
static const struct kind {
    const char *suffix;
    uint32_t dtype;
} kinds[N_KINDS] = {
    [HIGH] = { ".high", GGUF_DTYPE_I64 },
    [LOW] = { ".low", GGUF_DTYPE_I64 },
    [PLACE] = { ".place", GGUF_DTYPE_I8 },
    [COUNTS] = { ".counts", GGUF_DTYPE_I64 },
};

static void *array_of(const struct gg_collect_entry *e, unsigned kind)
{
    void *const all[N_KINDS] = { e->total.high, e->total.low, e->total.place,
                                 e->count };
    return all[kind];
}

static uint64_t n_of(const struct gg_collect_entry *e, unsigned kind)
{
    return kind == COUNTS ? e->n_mats : e->n_cols * e->n_mats;
}

/* ---- writing ---- */

static enum gguf_status make_meta(const struct gguf_collect *c,
                                  struct gguf_meta *m, struct gguf_error *err)
{
    const size_t n = c->n_datasets;
    struct gguf_str *texts = gg_mem_alloc_zero(c->allocator, n, sizeof *texts);
    if (!texts)
        return gg_error_set_nomem(err, n * sizeof *texts);
    for (size_t i = 0; i < n; i++)
        texts[i] = gg_str_z(c->datasets[i]);
    enum gguf_status st =
        gguf_meta_set_str_array(m, "imatrix.datasets", texts, n, err);
    gg_mem_free(c->allocator, texts);
    GG_TRY(st);
    GG_TRY(gguf_meta_set_u32(m, KEY "chunk_size", c->n_ctx, err));
    GG_TRY(gguf_meta_set_bool(m, KEY "output", c->output, err));
    GG_TRY(gguf_meta_set_strz(m, KEY "filter", c->filter, err));
    GG_TRY(gguf_meta_set_strz(m, KEY "precision", c->precision, err));
    GG_TRY(gguf_meta_set_strz(m, KEY "model", c->of.model, err));
    GG_TRY(gguf_meta_set_strz(m, KEY "text", c->of.text, err));
    GG_TRY(gguf_meta_set_strz(m, KEY "cache", c->of.cache, err));
    return gguf_meta_set_u64(m, KEY "n_tokens", c->of.n_tokens, err);
}

static enum gguf_status plan_tensors(const struct gguf_collect *c,
                                     struct gg_part_out *o,
                                     struct gguf_error *err)
{
    char name[NAME_SIZE];
    GG_TRY(gg_part_add(o, state_name, GGUF_DTYPE_I8, c->n_chunks, 1, err));
    for (size_t i = 0; i < c->n_entries * N_KINDS; i++) {
        const struct gg_collect_entry *e = c->entries[i / N_KINDS];
        const struct kind *k = &kinds[i % N_KINDS];
        const bool counts = i % N_KINDS == COUNTS;
        if (!gg_str_join(name, sizeof name, gg_str_z(e->name), k->suffix))
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "a name of %zu bytes, limit is %d",
                                strlen(e->name), NAME_SIZE - 8);
        GG_TRY(gg_part_add(o, gg_str_z(name), k->dtype,
                           counts ? e->n_mats : e->n_cols,
                           counts ? 1 : e->n_mats, err));
    }
    return GGUF_OK;
}

static enum gguf_status write_all(const struct gguf_collect *c,
                                  struct gg_part_out *o,
                                  struct gguf_error *err)
{
    GG_TRY(gg_part_next(o, err));
    GG_TRY(gg_part_put(o, c->state, c->n_chunks, err));
    for (size_t i = 0; i < c->n_entries * N_KINDS; i++) {
        const struct gg_collect_entry *e = c->entries[i / N_KINDS];
        const unsigned kind = i % N_KINDS;
        GG_TRY(gg_part_next(o, err));
        if (kind == PLACE)
            GG_TRY(gg_part_put(o, e->total.place, n_of(e, kind), err));
        else
            GG_TRY(gg_part_put64(o, array_of(e, kind), n_of(e, kind), err));
    }
    return gg_part_commit(o, err);
}

enum gguf_status gguf_collect_save(const struct gguf_collect *c,
                                   const char *path, bool force,
                                   struct gguf_error *err)
{
    struct gg_part_out o = { .w = NULL };
    struct gguf_meta *m;
    if (!c->n_chunks)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "nothing was collected yet");
    GG_TRY(gguf_meta_create(&m, c->allocator, err));
    enum gguf_status st = make_meta(c, m, err);
    if (st == GGUF_OK)
        st = gg_part_begin(&o, &part, m, c->allocator, err);
    if (st == GGUF_OK)
        st = plan_tensors(c, &o, err);
    if (st == GGUF_OK)
        st = gg_part_open(&o, path, force, err);
    if (st == GGUF_OK)
        st = write_all(c, &o, err);
    gg_part_fini(&o);
    gguf_meta_destroy(m);
    return st;
}

/* ---- reading ---- */

/* Read the filter: lines that begin with + or -. */
static enum gguf_status get_filter(struct gguf_collect *c,
                                   const struct gguf_file *f,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_str s;
    GG_TRY(gguf_file_kv_get(f, KEY "filter", &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &s, err));
    bool good = !s.size || s.data[s.size - 1] == '\n';
    for (size_t i = 0; i < s.size && good; i++)
        good = s.data[i] &&
               ((i && s.data[i - 1] != '\n') || strchr("+-", s.data[i]));
    if (!good)
        return gg_error_set(err, GGUF_E_FORMAT, kv->off,
                            KEY "filter is not lines that begin with + or -");
    c->filter = gg_mem_arena_strndup(&c->arena, s.data, s.size);
    return c->filter ? GGUF_OK : gg_error_set_nomem(err, s.size + 1);
}

static enum gguf_status get_meta(struct gguf_collect *c,
                                 const struct gguf_file *f,
                                 struct gguf_error *err)
{
    uint64_t v;
    bool output;
    const struct gguf_kv *kv;
    struct gguf_kv_iter it;
    struct gguf_str s;
    GG_TRY(gg_part_read_uint(f, KEY "chunk_size", 1, UINT32_MAX, &v, err));
    c->n_ctx = (uint32_t)v;
    GG_TRY(gg_part_read_uint(f, KEY "n_tokens", c->n_ctx, INT64_MAX,
                             &c->of.n_tokens, err));
    GG_TRY(gguf_file_kv_get(f, KEY "output", &kv, err));
    GG_TRY(gguf_kv_get_bool(kv, &output, err));
    c->output = output;
    GG_TRY(gg_part_read_text(f, KEY "model", c->of.model, sizeof c->of.model,
                             err));
    GG_TRY(
        gg_part_read_text(f, KEY "text", c->of.text, sizeof c->of.text, err));
    GG_TRY(gg_part_read_text(f, KEY "cache", c->of.cache, sizeof c->of.cache,
                             err));
    GG_TRY(gg_part_read_text(f, KEY "precision", c->precision,
                             sizeof c->precision, err));
    GG_TRY(get_filter(c, f, err));
    kv = gguf_file_kv_find(f, "imatrix.datasets");
    if (kv)
        GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_STR, err));
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next_str(&it, &s))
        if (s.size && !memchr(s.data, 0, s.size))
            GG_TRY(gg_collect_add_dataset(c, s, err));
    return GGUF_OK;
}

static enum gguf_status get_states(struct gguf_collect *c,
                                   const struct gguf_file *f,
                                   struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, "chunks");
    const uint64_t n = c->of.n_tokens / c->n_ctx;
    if (!t || t->dtype != GGUF_DTYPE_I8 || t->n_elements != n)
        return gg_error_set(err, GGUF_E_MISMATCH,
                            t ? t->info_off : GGUF_NO_OFFSET,
                            "no list of %" PRIu64 " chunks", n);
    const uint8_t *p = gguf_file_tensor_data(f, t->index);
    c->state = gg_mem_alloc_zero(c->allocator, n, 1);
    if (!c->state)
        return gg_error_set_nomem(err, (size_t)n);
    for (uint64_t i = 0; i < n; i++)
        if (p[i] > GGUF_COLLECT_SKIPPED)
            return gg_error_set(err, GGUF_E_FORMAT, gg_part_off(f, t, i, 1),
                                "chunk %" PRIu64 " has state %u, must be 0 "
                                "to 2",
                                i, p[i]);
    memcpy(c->state, p, (size_t)n);
    c->n_chunks = (size_t)n;
    return GGUF_OK;
}

/* Read numbers that are not negative, so that sums cannot overflow soon. */
static enum gguf_status get_numbers(const struct gguf_file *f,
                                    const struct gguf_tensor_info *t,
                                    uint64_t *out, struct gguf_error *err)
{
    struct gg_str_esc esc;
    for (uint64_t i = 0; i < t->n_elements; i++) {
        out[i] = gg_part_get64(f, t, i);
        if (out[i] > INT64_MAX)
            return gg_error_set(err, GGUF_E_FORMAT, gg_part_off(f, t, i, 8),
                                "'%s': number %" PRIu64 " is negative",
                                gg_str_esc(&esc, t->name), i);
    }
    return GGUF_OK;
}

/* Read places; those of doubles only. */
static enum gguf_status get_places(const struct gguf_file *f,
                                   const struct gguf_tensor_info *t,
                                   int8_t *out, struct gguf_error *err)
{
    const uint8_t *p = gguf_file_tensor_data(f, t->index);
    struct gg_str_esc esc;
    memcpy(out, p, (size_t)t->n_elements);
    for (uint64_t i = 0; i < t->n_elements; i++)
        if (out[i] != GG_COLLECT_NO_PLACE && (out[i] < -34 || out[i] > 31))
            return gg_error_set(err, GGUF_E_FORMAT, gg_part_off(f, t, i, 1),
                                "'%s': place %" PRIu64 " is %d, must be -34 "
                                "to 31, or -128",
                                gg_str_esc(&esc, t->name), i, out[i]);
    return GGUF_OK;
}

/* Read the entry whose first tensor is t. */
static enum gguf_status get_entry(struct gguf_collect *c,
                                  const struct gguf_file *f,
                                  const struct gguf_tensor_info *t,
                                  struct gguf_error *err)
{
    const struct gguf_str name = { t->name.data,
                                   t->name.size - strlen(kinds[HIGH].suffix) };
    struct gg_collect_entry *e;
    struct gg_str_esc esc;
    char full[NAME_SIZE];
    if (!t->n_elements)
        return gg_error_set(err, GGUF_E_SHAPE, t->info_off,
                            "tensor '%s' has no elements",
                            gg_str_esc(&esc, t->name));
    GG_TRY(gg_collect_add_entry(c, name, (uint64_t)t->ne[0],
                                t->n_elements / (uint64_t)t->ne[0], &e, err));
    for (unsigned k = 0; k < N_KINDS; k++) {
        const struct gguf_tensor_info *of =
            gg_str_join(full, sizeof full, name, kinds[k].suffix)
                ? gguf_file_tensor_find(f, full)
                : NULL;
        if (!of || of->dtype != kinds[k].dtype || of->n_elements != n_of(e, k))
            return gg_error_set(err, GGUF_E_MISMATCH, t->info_off,
                                "'%s' has no '%s' of its shape",
                                gg_str_esc(&esc, t->name), kinds[k].suffix);
        GG_TRY(k == PLACE ? get_places(f, of, e->total.place, err)
                          : get_numbers(f, of, array_of(e, k), err));
    }
    return GGUF_OK;
}

static enum gguf_status read_part(struct gguf_collect *c,
                                  const struct gguf_file *f,
                                  struct gguf_error *err)
{
    GG_TRY(get_meta(c, f, err));
    GG_TRY(get_states(c, f, err));
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        if (gg_str_ends(t->name, kinds[HIGH].suffix) && t->n_elements)
            GG_TRY(get_entry(c, f, t, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_collect_load(struct gguf_collect **out, const char *path,
                                   const struct gguf_file_params *params,
                                   struct gguf_error *err)
{
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *f = NULL;
    *out = NULL;
    GG_TRY(gg_file_params_take(&fp, params, err));
    cp.allocator = fp.allocator;
    GG_TRY(gguf_collect_create(out, &cp, err));
    enum gguf_status st = gg_part_read(&f, &part, path, &fp, err);
    if (st == GGUF_OK)
        st = read_part(*out, f, err);
    gguf_file_close(f);
    if (st != GGUF_OK) {
        gguf_collect_destroy(*out);
        *out = NULL;
    }
    return st;
}
