/* verify.c - hyperparameters against tensors, and the whole model
 *
 * Every tensor is found in the table of shapes (shape.h) and compared; then
 * what the architecture needs and no tensor was found for is missing.
 */
#include "config.h"
#include "gguf/verify.h"
#include "file/file.h"
#include "file/split.h"
#include "model/shape.h"
#include "data/source.h"
#include "vocab/vocab.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Rows of the table of shapes that were found in a layer. */
struct found {
    uint64_t bits[2];
};
_Static_assert(GG_N_WEIGHTS <= 128, "a bit for each row");

static void set_bit(struct found *f, unsigned i)
{
    f->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool has_bit(const struct found *f, unsigned i)
{
    return f->bits[i / 64] >> i % 64 & 1;
}

struct verify {
    struct gg_checker c; /* of the file that is looked at */
    struct gg_source src;
    const struct gg_arch *arch;
    struct gg_hparams hp;
    struct found top, *layer; /* hp.n_layer of them */
};

/* ------------------------------------------------------- tensor names --- */

/* Cut "blk.N." off name: true, and *il is N. */
static bool cut_block(struct gguf_str *name, uint64_t *il)
{
    size_t i = 4;
    uint64_t n = 0;
    if (!gg_str_starts(*name, "blk."))
        return false;
    for (; i < name->size && i < 14; i++) {
        unsigned digit = (unsigned char)name->data[i] - '0';
        if (digit > 9)
            break;
        n = 10 * n + digit;
    }
    if (i == 4 || i >= name->size || name->data[i] != '.' ||
        (name->data[4] == '0' && i > 5))
        return false;
    name->data += i + 1;
    name->size -= i + 1;
    *il = n;
    return true;
}

/* Layers that tensors speak of, as far as there can be so many. */
static uint32_t count_layers(const struct gg_source *s)
{
    uint64_t most = 0, il, n = gg_source_n_tensors(s);
    for (size_t i = 0; i < n; i++) {
        struct gguf_str name = gg_source_tensor(s, i).info->name;
        if (cut_block(&name, &il) && il < n && il + 1 > most)
            most = il + 1;
    }
    return (uint32_t)most;
}

/* X.scale and X.input_scale go with X.weight: factors for all of it. */
static bool is_scale(const struct gg_source *s, struct gguf_str name)
{
    char weight[256];
    static const char *const ends[] = { ".scale", ".input_scale" };
    for (size_t i = 0; i < GG_LEN(ends); i++) {
        if (!gg_str_ends(name, ends[i]) || name.size > 200)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight",
                 (int)(name.size - strlen(ends[i])), name.data);
        if (gg_source_find(s, weight, NULL))
            return true;
    }
    return false;
}

/* ------------------------------------------------------ tensor by tensor --- */

/* Unknown types have findings of their own. */
static enum gguf_status check_type(const struct verify *v,
                                   const struct gg_shape *shape,
                                   const struct gguf_tensor_info *t,
                                   struct gguf_error *err)
{
    const struct gguf_dtype_info *d = gguf_dtype_find(t->dtype);
    struct gg_esc e;
    if (!d || t->size_inferred)
        return GGUF_OK;
    if (shape->role == GG_VECTOR ? t->dtype == GGUF_DTYPE_F32
                                 : d->family != GGUF_FAMILY_INT)
        return GGUF_OK;
    return gg_finding(&v->c, GG_CHECK_TENSOR_TYPE, t->name, t->info_off, err,
                      "tensor '%s' is of type %s, %s", gg_esc(&e, t->name),
                      d->name,
                      shape->role == GG_VECTOR ? "must be F32"
                                               : "which cannot be multiplied");
}

static enum gguf_status check_tensor(struct verify *v,
                                     const struct gguf_tensor_info *t,
                                     struct gguf_error *err)
{
    struct gguf_str name = t->name;
    struct gg_shape_text text;
    struct gg_esc e;
    uint64_t il = 0;
    int64_t want[3];
    bool block = cut_block(&name, &il);
    if (block && il >= v->hp.n_layer)
        return gg_finding(&v->c, GG_CHECK_TENSOR_EXTRA, t->name, t->info_off,
                          err, "tensor '%s' is of layer %" PRIu64
                          ", there are %" PRIu32, gg_esc(&e, t->name), il,
                          v->hp.n_layer);
    const struct gg_layer_hp *l = &v->hp.layer[il];
    const struct gg_shape *shape = gg_shape_find(
        name, block, gg_shape_parts(v->arch, &v->hp, block ? l : NULL));
    struct found *found = block ? &v->layer[il] : &v->top;
    set_bit(found, shape ? (unsigned)(shape - gg_shapes) : GG_W_NONE);
    if (!shape && is_scale(&v->src, t->name))
        return GGUF_OK;
    if (!shape)
        return gg_finding(&v->c, GG_CHECK_TENSOR_EXTRA, t->name, t->info_off,
                          err, "tensor '%s' is not used by models of "
                          "architecture '%s'", gg_esc(&e, t->name),
                          v->arch->name);
    gg_shape_want(shape, &v->hp, l, want);
    if (!gg_shape_fits(t, want))
        GG_TRY(gg_finding(&v->c, GG_CHECK_TENSOR_SHAPE, t->name, t->info_off,
                          err, "%s", gg_shape_text(&text, t, shape, want)));
    return check_type(v, shape, t, err);
}

/* ------------------------------------------------------------- missing --- */

static bool lacks(const struct found *f, unsigned id, uint32_t parts)
{
    const struct gg_shape *s = &gg_shapes[id];
    return (s->need & parts) && !has_bit(f, id) &&
           !(s->instead != GG_W_NONE && has_bit(f, s->instead));
}

static enum gguf_status missing(const struct verify *v, const char *name,
                                uint32_t n, struct gguf_error *err)
{
    char more[64] = "";
    if (n > 1)
        snprintf(more, sizeof more, ", and of %" PRIu32 " more layers", n - 1);
    return gg_finding(&v->c, GG_CHECK_TENSOR_MISSING, gg_strz(name),
                      GGUF_NO_OFFSET, err, "tensor '%s' is missing%s", name,
                      more);
}

/* Layers without any tensor: one finding. */
static enum gguf_status check_empty(const struct verify *v,
                                    struct gguf_error *err)
{
    uint32_t n = 0, first = 0;
    for (uint32_t il = 0; il < v->hp.n_layer; il++)
        if (!v->layer[il].bits[0] && !v->layer[il].bits[1])
            first = n++ ? first : il;
    if (!n)
        return GGUF_OK;
    return gg_finding(&v->c, GG_CHECK_BLOCK_MISSING, GG_STR(""),
                      GGUF_NO_OFFSET, err,
                      "%" PRIu32 " of %" PRIu32 " layers have no tensors, "
                      "first %" PRIu32, n, v->hp.n_layer, first);
}

/* One finding for each row, however many layers it is missing in. */
static enum gguf_status check_missing(const struct verify *v,
                                      struct gguf_error *err)
{
    uint32_t parts = gg_shape_parts(v->arch, &v->hp, NULL);
    char name[96];
    GG_TRY(check_empty(v, err));
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++) {
        const struct gg_shape *s = &gg_shapes[id];
        uint32_t n = 0, first = 0;
        if (!s->block && lacks(&v->top, id, parts))
            GG_TRY(missing(v, s->name, 1, err));
        for (uint32_t il = 0; s->block && il < v->hp.n_layer; il++) {
            const struct found *f = &v->layer[il];
            if ((f->bits[0] || f->bits[1]) &&
                lacks(f, id,
                      gg_shape_parts(v->arch, &v->hp, &v->hp.layer[il])))
                first = n++ ? first : il;
        }
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", first, s->name);
        if (n)
            GG_TRY(missing(v, name, n, err));
    }
    return GGUF_OK;
}

/* --------------------------------------------------------------- model --- */

static enum gguf_status check_tensors(struct verify *v, struct gguf_error *err)
{
    const struct gguf_allocator *a = v->c.params.allocator;
    enum gguf_status st = GGUF_OK;
    v->layer = gg_alloc_zero(a, v->hp.n_layer, sizeof *v->layer);
    if (!v->layer)
        return gg_fail_nomem(err, v->hp.n_layer * sizeof *v->layer);
    for (size_t i = 0; i < gg_source_n_tensors(&v->src) && st == GGUF_OK; i++) {
        struct gguf_split_tensor t = gg_source_tensor(&v->src, i);
        v->c.file = t.file;
        st = check_tensor(v, t.info, err);
    }
    v->c.file = v->src.file;
    if (st == GGUF_OK)
        st = check_missing(v, err);
    gg_free(a, v->layer);
    return st;
}

/* Is the file something else than a model: an adapter, importance data ...? */
static bool is_no_model(const struct gguf_file *file)
{
    struct gguf_str type;
    return gguf_kv_get_str(gguf_file_kv_find(file, "general.type"), &type,
                           NULL) == GGUF_OK &&
           !gg_str_eqz(type, "model");
}

static enum gguf_status check_model(struct verify *v, struct gguf_error *err)
{
    const struct gguf_file *file = v->c.file = v->src.file;
    const struct gguf_kv *kv = gguf_file_kv_find(file, "general.architecture");
    const struct gguf_kv *tokens =
        gguf_file_kv_find(file, "tokenizer.ggml.tokens");
    struct gguf_str name;
    struct gg_esc e;
    if (gguf_kv_get_str(kv, &name, NULL) != GGUF_OK || !name.size ||
        !gg_source_n_tensors(&v->src) || is_no_model(file))
        return GGUF_OK;
    v->arch = gg_arch_find(name);
    if (!v->arch)
        return gg_finding(&v->c, GG_CHECK_ARCH_UNKNOWN, kv->key, kv->off, err,
                          "tensors of architecture '%s' are not known",
                          gg_esc(&e, name));
    v->hp.n_layer = count_layers(&v->src);
    size_t n_tokens =
        tokens && tokens->type == GGUF_VAL_ARR && tokens->n <= INT32_MAX
            ? (size_t)tokens->n
            : 0;
    enum gguf_status st =
        gg_hparams_load(&v->hp, &v->src, v->arch, n_tokens,
                        v->c.params.allocator, &v->c, err);
    if (st == GGUF_OK && v->hp.n_layer)
        st = check_tensors(v, err);
    gg_free(v->c.params.allocator, v->hp.layer);
    return st;
}

/* A file that is one shard of several, looked at alone. */
static enum gguf_status check_shard(const struct verify *v, bool *is_shard,
                                    struct gguf_error *err)
{
    const struct gguf_file *file = v->c.file;
    const char *key = gg_split_keys[GG_SPLIT_COUNT];
    const struct gguf_kv *kv = gguf_file_kv_find(file, key);
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    struct gguf_split *set;
    struct gguf_error why;
    uint64_t count = 0;
    bool known = gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK;
    *is_shard = known && count > 1;
    if (!kv || (known && count <= 1)) /* 0: it was merged */
        return GGUF_OK;
    fp.allocator = v->c.params.allocator;
    if (file->path && file->map.off == 0) {
        enum gguf_status st = gguf_split_open(&set, file->path, &fp, &why);
        gguf_split_close(set);
        if (st == GGUF_E_NOMEM)
            return gg_fail(err, st, GGUF_NO_OFFSET, "%s", why.message);
        if (st != GGUF_OK)
            GG_TRY(gg_finding(&v->c, GG_CHECK_SET, kv->key, kv->off, err, "%s",
                              why.message));
    }
    if (!*is_shard)
        return GGUF_OK;
    return gg_finding(&v->c, GG_CHECK_SHARD, kv->key, kv->off, err,
                      "the file is one of %" PRIu64 " shards: its tensors are "
                      "not all of the model", count);
}

static enum gguf_status verify(struct verify *v, struct gguf_error *err)
{
    bool is_shard = false;
    for (size_t i = 0; i < gg_source_n_files(&v->src); i++) {
        v->c.file = gg_source_file(&v->src, i);
        GG_TRY(gg_check_header(&v->c, err));
    }
    v->c.file = v->src.file;
    GG_TRY(gg_vocab_check(&v->c, err));
    if (!v->src.set)
        GG_TRY(check_shard(v, &is_shard, err));
    if (!is_shard)
        GG_TRY(check_model(v, err));
    if (!v->c.params.payload)
        return GGUF_OK;
    for (size_t i = 0; i < gg_source_n_files(&v->src); i++) {
        v->c.file = gg_source_file(&v->src, i);
        GG_TRY(gg_check_payload(&v->c, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_split_verify(const struct gguf_split *set,
                                   const struct gguf_check_params *params,
                                   gguf_finding_fn *report, void *user,
                                   struct gguf_error *err)
{
    struct verify v = { .src = { set, gguf_split_file(set, 0) } };
    GG_TRY(gg_checker_init(&v.c, params, report, user, err));
    return verify(&v, err);
}

enum gguf_status gguf_file_verify(const struct gguf_file *file,
                                  const struct gguf_check_params *params,
                                  gguf_finding_fn *report, void *user,
                                  struct gguf_error *err)
{
    struct verify v = { .src = { NULL, file } };
    GG_TRY(gg_checker_init(&v.c, params, report, user, err));
    return verify(&v, err);
}
