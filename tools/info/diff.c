/* SPDX-License-Identifier: MIT */
/* diff.c - comparing two models */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"

#include <gguf/edit.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct diff {
    const struct load *a, *b;
    const struct info_options *o;
    struct json *j; /* NULL: text */
    size_t n;       /* number of differences */
};

/* ---- metadata ---- */

static const struct gguf_kv *find_kv(const struct load *l, struct gguf_str key)
{
    struct text z = { NULL, 0, 0 };
    text_add(&z, key.data, key.size);
    const struct gguf_kv *kv = gguf_file_kv_find(l->file, z.s);
    text_fini(&z);
    return kv;
}

/* Is this a key that does not belong to the model? Padding that an edit left,
 * and for whole models the keys of splitting. */
static bool is_ignored_key(const struct diff *d, const struct gguf_kv *kv)
{
    static const struct {
        const char *key;
        bool begins, split;
    } rows[] = {
        { GGUF_EDIT_PADDING_KEY, false, false },
        { "split.no", false, true },
        { "split.count", false, true },
        { "split.tensors.count", false, true },
        { "libgguf.split.", true, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t n = strlen(rows[i].key);
        if (rows[i].split && d->o->alone)
            continue;
        if ((rows[i].begins ? kv->key.size >= n : kv->key.size == n) &&
            !memcmp(kv->key.data, rows[i].key, n))
            return true;
    }
    return false;
}

static void put_kv(struct diff *d, char mark, const struct gguf_kv *kv)
{
    struct text s = { NULL, 0, 0 };
    text_addf(&s, "%c %-4s ", mark, gguf_val_type_name(kv->type));
    text_add_esc(&s, kv->key, UINT64_MAX);
    text_addz(&s, " = ");
    text_add_kv(&s, kv, &d->o->limits);
    puts(s.s);
    text_fini(&s);
}

/* Report a key that differs; a or b may be NULL. */
static void key_differs(struct diff *d, const struct gguf_kv *a,
                        const struct gguf_kv *b)
{
    uint64_t max =
        d->o->limits_given & INFO_ARRAYS ? d->o->limits.elems : UINT64_MAX;
    d->n++;
    if (!d->j) {
        if (a)
            put_kv(d, '-', a);
        if (b)
            put_kv(d, '+', b);
        return;
    }
    json_open(d->j, NULL, '{');
    json_str(d->j, "key", a ? a->key : b->key);
    for (int i = 0; i < 2; i++) {
        const struct gguf_kv *kv = i ? b : a;
        if (!kv)
            continue;
        json_open(d->j, i ? "b" : "a", '{');
        json_strz(d->j, "type", gguf_val_type_name(kv->type));
        json_key(d->j, (struct gguf_str){ "value", 5 });
        info_json_value(d->j, kv, max);
        json_close(d->j);
    }
    json_close(d->j);
}

static void compare_metadata(struct diff *d)
{
    const struct gguf_file *f = d->a->file, *g = d->b->file;
    if (d->j)
        json_open(d->j, "metadata", '[');
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *a = gguf_file_kv(f, i);
        const struct gguf_kv *b = find_kv(d->b, a->key);
        if (!gguf_kv_equal(a, b) && !is_ignored_key(d, a))
            key_differs(d, a, b);
    }
    for (size_t i = 0; i < gguf_file_n_kv(g); i++) {
        const struct gguf_kv *b = gguf_file_kv(g, i);
        if (!find_kv(d->a, b->key) && !is_ignored_key(d, b))
            key_differs(d, NULL, b);
    }
    if (d->j)
        json_close(d->j);
}

/* ---- tensors ---- */

static int compare_names(const struct gguf_tensor_info *x,
                         const struct gguf_tensor_info *y)
{
    const struct gguf_str a = x->name, b = y->name;
    size_t n = a.size < b.size ? a.size : b.size;
    int c = memcmp(a.data, b.data, n);
    return c ? c : a.size < b.size ? -1 : a.size > b.size;
}

static int by_name(const void *x, const void *y)
{
    const struct gguf_tensor_info *const *a = x, *const *b = y;
    return compare_names(*a, *b);
}

/* List all tensors that match glob, by name. */
static const struct gguf_tensor_info **
list_by_name(const struct load *l, const char *glob, size_t *n)
{
    const size_t n_all = gguf_file_n_tensors(l->file);
    const struct gguf_tensor_info **list =
        msg_must(calloc(n_all ? n_all : 1, sizeof *list));
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        list[*n] = gguf_file_tensor(l->file, i);
        *n += !glob || text_glob(glob, list[*n]->name);
    }
    qsort(list, *n, sizeof *list, by_name);
    return list;
}

static bool same_bytes(const struct diff *d, const struct gguf_tensor_info *a,
                       const struct gguf_tensor_info *b)
{
    return a->dtype == b->dtype && a->size == b->size &&
           !memcmp(gguf_file_tensor_data(d->a->file, a->index),
                   gguf_file_tensor_data(d->b->file, b->index),
                   (size_t)a->size);
}

/* May a and b be the same tensor in two byte orders? Comparing the values
 * decides, except if decoding rounds. */
static bool may_be_byte_swapped(const struct diff *d,
                                const struct gguf_tensor_info *a,
                                const struct gguf_tensor_info *b)
{
    const struct gguf_dtype_info *type = gguf_dtype_find(a->dtype);
    return a->dtype == b->dtype && type && type->family != GGUF_FAMILY_INT &&
           type->id != GGUF_DTYPE_F64 &&
           !gguf_file_is_big_endian(d->a->file) !=
               !gguf_file_is_big_endian(d->b->file);
}

/* Report a tensor that is in one model only, or has another shape there. */
static void put_shapes(struct diff *d, const struct gguf_tensor_info *a,
                       const struct gguf_tensor_info *b)
{
    d->n++;
    if (d->j) {
        json_open(d->j, NULL, '{');
        json_str(d->j, "name", a ? a->name : b->name);
    }
    for (int i = 0; i < 2; i++) {
        const struct gguf_tensor_info *t = i ? b : a;
        struct text s = { NULL, 0, 0 };
        char type[32];
        if (!t)
            continue;
        if (d->j) {
            json_open(d->j, i ? "b" : "a", '{');
            json_strz(d->j, "type", info_type_name(t->dtype, type));
            json_i64s(d->j, "shape", t->n_dims, t->ne);
            json_close(d->j);
            continue;
        }
        text_addf(&s, "%c ", i ? '+' : '-');
        text_add_esc(&s, t->name, UINT64_MAX);
        text_addf(&s, " %s ", info_type_name(t->dtype, type));
        text_add_shape(&s, t->n_dims, t->ne);
        puts(s.s);
        text_fini(&s);
    }
    if (d->j)
        json_close(d->j);
}

static void json_diff(struct json *j, const struct gguf_tensor_info *a,
                      const struct gguf_tensor_info *b,
                      const struct gguf_stats_diff *x)
{
    char type[32];
    json_open(j, NULL, '{');
    json_str(j, "name", a->name);
    json_open(j, "a", '{');
    json_strz(j, "type", info_type_name(a->dtype, type));
    json_f64(j, "rms", x->rms_a);
    json_close(j);
    json_open(j, "b", '{');
    json_strz(j, "type", info_type_name(b->dtype, type));
    json_f64(j, "rms", x->rms_b);
    json_close(j);
    json_u64(j, "elements", x->n);
    json_u64(j, "differ", x->n_differ);
    json_u64(j, "not_finite", x->n_nan);
    json_f64(j, "max", x->max_abs);
    json_f64(j, "rms", x->rms);
    json_f64(j, "cosine", x->cosine);
    json_close(j);
}

static void add_row(struct table *t, const struct gguf_tensor_info *a,
                    const struct gguf_tensor_info *b,
                    const struct gguf_stats_diff *x)
{
    struct text s = { NULL, 0, 0 };
    char type[32];
    table_add_str(t, a->name);
    text_addz(&s, info_type_name(a->dtype, type));
    if (a->dtype != b->dtype)
        text_addf(&s, " -> %s", info_type_name(b->dtype, type));
    table_add(t, s.s);
    table_addf(t, "%.1f%%",
               x->n ? 100 * (double)x->n_differ / (double)x->n : 0);
    table_addf(t, "%.4g", x->max_abs);
    table_addf(t, "%.4g", x->rms);
    table_addf(t, "%.3f%%", x->rms_a > 0 ? 100 * x->rms / x->rms_a : 0);
    table_addf(t, "%.7f", x->cosine);
    table_addf(t, "%" PRIu64, x->n_nan);
    text_fini(&s);
}

/* Compare two tensors of the same name. */
static bool compare_tensor(struct diff *d, const struct gguf_tensor_info *a,
                           const struct gguf_tensor_info *b, struct table *t)
{
    struct gguf_stats_params p = GGUF_INIT(struct gguf_stats_params);
    struct gguf_stats_diff x = GGUF_INIT(struct gguf_stats_diff);
    struct gguf_error err;
    p.rows = d->o->rows;
    p.pool = d->o->pool;
    if (memcmp(a->ne, b->ne, sizeof a->ne) != 0) {
        put_shapes(d, a, b);
        return true;
    }
    if (same_bytes(d, a, b))
        return true;
    bool good = gguf_stats_compare(d->a->file, a->index, d->b->file, b->index,
                                   &p, &x, &err) == GGUF_OK;
    if (good && may_be_byte_swapped(d, a, b) && !x.n_differ && !x.n_nan)
        return true;
    d->n++;
    if (!good)
        return msg_fail(d->b->path, &err);
    if (d->j)
        json_diff(d->j, a, b, &x);
    else
        add_row(t, a, b, &x);
    return true;
}

static bool compare_tensors(struct diff *d)
{
    static const char *const heads[] = { "tensor", "type",      "differ",
                                         "max",    "rms",       "of a",
                                         "cosine", "not finite" };
    size_t n, m;
    const struct gguf_tensor_info **a = list_by_name(d->a, d->o->glob, &n);
    const struct gguf_tensor_info **b = list_by_name(d->b, d->o->glob, &m);
    struct progress bar;
    struct table t;
    bool good = n || m || !d->o->glob;
    if (!good)
        msg_error(d->a->path, "no tensor's name matches '%s'", d->o->glob);
    progress_init(&bar, "comparing", "tensors", d->o->quiet);
    table_init(&t, "llrrrrrr", 0);
    table_add_row(&t, heads);
    if (d->j)
        json_open(d->j, "tensors", '[');
    for (size_t i = 0, k = 0; (i < n || k < m) && !progress_stopped();) {
        int c = i == n ? 1 : k == m ? -1 : compare_names(a[i], b[k]);
        progress_report(&bar, i, n);
        if (c < 0)
            put_shapes(d, a[i++], NULL);
        else if (c > 0)
            put_shapes(d, NULL, b[k++]);
        else
            good &= compare_tensor(d, a[i++], b[k++], &t);
    }
    progress_clear(&bar);
    if (d->j)
        json_close(d->j);
    else if (t.n_cells > t.n_cols)
        table_show(&t, "73/6142");
    table_fini(&t);
    free(a);
    free(b);
    return good;
}

bool info_diff(const struct load *a, const struct load *b,
               const struct info_options *o, bool *same)
{
    struct diff d = { .a = a, .b = b, .o = o };
    struct json j;
    json_begin(&j, stdout);
    if (o->json) {
        d.j = &j;
        json_open(&j, NULL, '{');
        json_strz(&j, "a", a->path);
        json_strz(&j, "b", b->path);
    }
    bool good = true;
    if (o->show & SHOW_METADATA)
        compare_metadata(&d);
    if (o->show & SHOW_TENSORS)
        good = compare_tensors(&d);
    if (o->json) {
        json_bool(&j, "same", d.n == 0);
        json_end(&j);
    }
    *same = d.n == 0;
    return good;
}
