/* SPDX-License-Identifier: MIT */
/* packed_join.c - find the tensors of a folder that hold one weight */
#include "config.h"
#include "data/packed_int.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/block.h"
#include "gguf/dtype.h"

#include <string.h>

static const struct form {
    const char
        *end[GG_N_PACKED_PARTS]; /* suffix of each part; NULL: not used */
    const char *becomes;         /* suffix of the weight; NULL: the name of the
                                  * codes */
    bool need_zeros;
} forms[] = {
    [GG_PACKED_GPTQ] = { { ".qweight", ".qzeros", ".scales", ".g_idx", NULL },
                         ".weight",
                         true },
    [GG_PACKED_AWQ] = { { ".qweight", ".qzeros", ".scales", NULL, NULL },
                        ".weight",
                        true },
    [GG_PACKED_WORDS] = { { ".weight_packed", ".weight_zero_point",
                            ".weight_scale", ".weight_g_idx",
                            ".weight_shape" },
                          ".weight",
                          false },
    [GG_PACKED_INT] = { { ".weight", ".weight_zero_point", ".weight_scale",
                          NULL, NULL },
                        NULL,
                        false },
    [GG_PACKED_SCB] = { { ".weight", NULL, ".SCB", NULL, NULL }, NULL, false },
    [GG_PACKED_MXFP4] = { { "_blocks", NULL, "_scales", NULL, NULL },
                          NULL,
                          false },
    [GG_PACKED_E2M1] = { { ".weight", NULL, ".scale", NULL, NULL },
                         NULL,
                         false },
    [GG_PACKED_MXFP4_PACK] = { { ".weight_packed", NULL, ".weight_scale", NULL,
                                 NULL },
                               ".weight",
                               false },
};

static const struct gg_safetensors_type types[] = {
    { "packed", 4, GG_SAFETENSORS_NO_DTYPE, NULL, GGUF_DTYPE_F16 },
    { "packed", 4, GG_SAFETENSORS_NO_DTYPE, NULL, GGUF_DTYPE_BF16 },
    { "MXFP4", 4, GGUF_DTYPE_MXFP4, NULL, GGUF_DTYPE_MXFP4 },
};

struct join {
    struct gg_safetensors *s;
    const struct gg_packed_config *config;
    struct gguf_str name;             /* name of the weight */
    uint32_t part[GG_N_PACKED_PARTS]; /* GG_INDEX_NONE: not present */
    struct gg_str_esc codes;          /* escaped name for messages */
    struct gg_packed *p;
    struct gg_safetensors_tensor made;
};

static enum gguf_status fail_join(const struct join *j, const char *what,
                                  struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TENSOR,
                        j->s->tensor[j->part[GG_PACKED_CODES]].off,
                        "tensor '%s': %s", j->codes.s, what);
}

static const struct gg_safetensors_tensor *part_of(const struct join *j, int k)
{
    return j->part[k] == GG_INDEX_NONE ? NULL : &j->s->tensor[j->part[k]];
}

/* Does a tensor have this type and shape, slowest dimension first? */
static bool has_ne(const struct gg_safetensors_tensor *t, const char *type,
                   uint64_t slow, uint64_t fast)
{
    return !strcmp(t->type->name, type) && t->n_dims == 2 &&
           (uint64_t)t->ne[1] == slow && (uint64_t)t->ne[0] == fast;
}

static unsigned log_2(unsigned n)
{
    unsigned k = 0;
    while (n >>= 1)
        k++;
    return k;
}

/* Set scales of shape [slow, fast]: groups and rows, or rows and groups. The
 * size of a group follows from their number. */
static enum gguf_status use_scales(struct join *j, bool groups_first,
                                   struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = part_of(j, GG_PACKED_SCALES);
    struct gg_packed *p = j->p;
    struct gg_data_rows rows;
    const uint64_t n = t->n_elements;
    const bool plain = n && (n == 1 || (t->n_dims == 1 && n == p->rows));
    if (t->type->f8 || t->type->dtype == GG_SAFETENSORS_NO_DTYPE ||
        t->type->own == GG_SAFETENSORS_NO_DTYPE || t->n_dims > 2 ||
        !gg_safetensors_unscaled_rows(j->s, j->part[GG_PACKED_SCALES], &rows))
        return fail_join(j, "its scales are not numbers", err);
    p->scale = rows.stored;
    if (plain || groups_first) {
        p->n_groups = plain ? 1 : (uint64_t)t->ne[1];
        p->scale_r = n > 1;
        p->scale_g = p->rows;
    } else {
        p->n_groups = (uint64_t)t->ne[0];
        p->scale_r = p->n_groups;
        p->scale_g = 1;
    }
    if (!plain && (uint64_t)t->ne[!groups_first] != p->rows)
        return fail_join(j, "its rows do not fit its scales", err);
    p->group = j->config->group && p->n_groups > 1
                   ? j->config->group
                   : (p->cols + p->n_groups - 1) / p->n_groups;
    if ((p->cols + p->group - 1) / p->group != p->n_groups)
        return fail_join(j, "its scales do not fit its groups", err);
    return GGUF_OK;
}

/* Set the group of each column. */
static enum gguf_status use_index(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = part_of(j, GG_PACKED_INDEX);
    if (!t)
        return GGUF_OK;
    if (strcmp(t->type->name, "I32") != 0 || t->n_elements != j->p->cols)
        return fail_join(j, "its list of groups does not fit its columns",
                         err);
    uint64_t i = 0;
    GG_TRY(gg_safetensors_hold_all(j->s, j->part[GG_PACKED_INDEX], true, err));
    while (i < t->n_elements &&
           gg_bytes_load32le(t->data + 4 * i) < j->p->n_groups)
        i++;
    (void)gg_safetensors_hold_all(j->s, j->part[GG_PACKED_INDEX], false, NULL);
    if (i < t->n_elements)
        return fail_join(j, "a column belongs to a group without a scale",
                         err);
    j->p->index = t->data;
    return GGUF_OK;
}

/* Set codes [a, b] and zeros [groups, rows / n] of GPTQ or AWQ. */
static enum gguf_status use_columns(struct join *j, bool awq,
                                    struct gguf_error *err)
{
    static const uint8_t order[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    const struct gg_safetensors_tensor *q = part_of(j, GG_PACKED_CODES), *z;
    const unsigned bits = j->config->bits;
    const unsigned per = bits == 3 ? 32 : 32 / bits, words = bits == 3 ? 3 : 1;
    const unsigned k = log_2(per);
    struct gg_packed *p = j->p;
    if (strcmp(q->type->name, "I32") != 0 || q->n_dims != 2)
        return fail_join(j, "not a matrix of 32-bit words", err);
    if (q->ne[1] % words)
        return fail_join(j, "its words are not a multiple of 3", err);
    p->cols = (uint64_t)q->ne[1] / words * (awq ? 1 : per);
    p->rows = (uint64_t)q->ne[0] * (awq ? per : 1);
    p->code = (struct gg_packed_bits){ .data = q->data, .bits = bits };
    if (awq) {
        p->code.log_r = k;
        p->code.step_r = 1;
        p->code.step_c = p->rows / per;
        p->code.order = order;
    } else {
        p->code.log_c = k;
        p->code.step_r = 1;
        p->code.step_c = p->rows;
    }
    GG_TRY(use_scales(j, true, err));
    z = part_of(j, GG_PACKED_ZEROS);
    if (!has_ne(z, "I32", p->n_groups, p->rows / per * words) || p->rows % per)
        return fail_join(j, "its zero points do not fit its groups", err);
    p->zero = (struct gg_packed_bits){ .data = z->data,
                                       .step_r = 1,
                                       .step_c = p->rows / per * words,
                                       .log_r = k,
                                       .bits = bits,
                                       .order = awq ? order : NULL };
    p->plus = j->config->zero_plus_1;
    return use_index(j, err);
}

/* Set codes [rows, columns / n] and zeros [rows / n, groups] of
 * compressed-tensors. */
static enum gguf_status use_words(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, GG_PACKED_CODES), *z,
                                       *shape = part_of(j, GG_PACKED_SHAPE);
    struct gg_packed *p = j->p;
    unsigned bits = 2;
    if (!shape || shape->n_elements != 2 || shape->type->bits < 32 ||
        (strcmp(shape->type->name, "I64") != 0 &&
         strcmp(shape->type->name, "I32") != 0))
        return fail_join(j, "its shape is missing", err);
    GG_TRY(gg_safetensors_hold_all(j->s, j->part[GG_PACKED_SHAPE], true, err));
    p->rows = gg_bytes_load32le(shape->data);
    p->cols = gg_bytes_load32le(shape->data + shape->type->bits / 8);
    (void)gg_safetensors_hold_all(j->s, j->part[GG_PACKED_SHAPE], false, NULL);
    while (bits < 8 &&
           (p->cols + 32 / bits - 1) / (32 / bits) != (uint64_t)q->ne[0])
        bits *= 2;
    const unsigned per = 32 / bits;
    if (!p->rows || !p->cols ||
        !has_ne(q, "I32", p->rows, (p->cols + per - 1) / per))
        return fail_join(j, "its words do not fit its shape", err);
    p->code = (struct gg_packed_bits){ .data = q->data,
                                       .step_r = (uint64_t)q->ne[0],
                                       .step_c = 1,
                                       .log_c = log_2(per),
                                       .bits = bits };
    p->mid = 1u << (bits - 1);
    GG_TRY(use_scales(j, false, err));
    z = part_of(j, GG_PACKED_ZEROS);
    if (z && !has_ne(z, "I32", (p->rows + per - 1) / per, p->n_groups))
        return fail_join(j, "its zero points do not fit its groups", err);
    if (z)
        p->zero = (struct gg_packed_bits){ .data = z->data,
                                           .step_r = p->n_groups,
                                           .step_c = 1,
                                           .log_r = log_2(per),
                                           .bits = bits };
    return use_index(j, err);
}

static enum gguf_status use_bytes(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, GG_PACKED_CODES),
                                       *z = part_of(j, GG_PACKED_ZEROS);
    struct gg_packed *p = j->p;
    if (q->n_dims != 2)
        return fail_join(j, "not a matrix", err);
    p->cols = (uint64_t)q->ne[0];
    p->rows = (uint64_t)q->ne[1];
    p->code = (struct gg_packed_bits){
        .data = q->data, .step_r = p->cols, .step_c = 1, .bytes = true
    };
    p->mid = 0x80;
    GG_TRY(use_scales(j, false, err));
    if (z && (strcmp(z->type->name, "I8") != 0 ||
              z->n_elements != part_of(j, GG_PACKED_SCALES)->n_elements))
        return fail_join(j, "its zero points do not fit its groups", err);
    if (z)
        p->zero = (struct gg_packed_bits){ .data = z->data,
                                           .step_r = p->scale_r,
                                           .step_c = p->scale_g,
                                           .bytes = true };
    return GGUF_OK;
}

/* Are the shapes [..., blocks, 16] and [..., blocks], in U8? */
static bool are_blocks(const struct gg_safetensors_tensor *q,
                       const struct gg_safetensors_tensor *e)
{
    bool good = !strcmp(q->type->name, "U8") && !strcmp(e->type->name, "U8") &&
                q->n_dims == e->n_dims + 1 && q->ne[0] == 16 && e->n_dims;
    for (unsigned d = 0; good && d < e->n_dims; d++)
        good = q->ne[d + 1] == e->ne[d];
    return good;
}

/* Are the shapes [rows, 16 blocks] and [rows, blocks], which have the same
 * layout? */
static bool are_rows(const struct gg_safetensors_tensor *q,
                     const struct gg_safetensors_tensor *e)
{
    const bool plain =
        !strcmp(q->type->name, "U8") && !strcmp(e->type->name, "U8");
    return (plain || !strcmp(e->type->name, "F8_E8M0")) && q->n_dims == 2 &&
           e->n_dims == 2 && q->ne[1] == e->ne[1] && q->ne[0] % 16 == 0 &&
           q->ne[0] / 16 == e->ne[0];
}

static enum gguf_status use_mxfp4(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, GG_PACKED_CODES),
                                       *e = part_of(j, GG_PACKED_SCALES);
    if (!(j->config->form == GG_PACKED_MXFP4 ? are_blocks : are_rows)(q, e))
        return fail_join(j, "its exponents do not fit its blocks", err);
    j->p->code.data = q->data;
    j->p->exponent = e->data;
    j->p->decode = j->s->codec[gg_dtype_index(GGUF_DTYPE_MXFP4)].decode;
    j->made.n_dims = e->n_dims;
    memcpy(j->made.ne, e->ne, sizeof j->made.ne);
    j->made.ne[0] *= 32; /* cannot overflow: less than twice the bytes of the
                          * blocks */
    j->made.n_elements = 2 * q->n_elements;
    j->made.size = q->n_elements + e->n_elements;
    j->made.type = &types[2];
    return GGUF_OK;
}

static enum gguf_status use_parts(struct join *j, struct gguf_error *err)
{
    const enum gg_packed_form form = j->config->form;
    if (form == GG_PACKED_MXFP4 || form == GG_PACKED_E2M1 ||
        form == GG_PACKED_MXFP4_PACK)
        return use_mxfp4(j, err);
    GG_TRY(form == GG_PACKED_WORDS ? use_words(j, err)
           : form == GG_PACKED_INT || form == GG_PACKED_SCB
               ? use_bytes(j, err)
               : use_columns(j, form == GG_PACKED_AWQ, err));
    const struct gg_safetensors_tensor *scales = part_of(j, GG_PACKED_SCALES);
    j->made.type = &types[scales->type->dtype != GGUF_DTYPE_F16];
    j->made.n_dims = 2;
    j->made.ne[0] = (int64_t)j->p->cols;
    j->made.ne[1] = (int64_t)j->p->rows;
    if (gg_ckd_mul(&j->made.n_elements, j->p->cols, j->p->rows) ||
        gg_ckd_exceeds_cap(j->made.n_elements))
        return fail_join(j, "element count overflows", err);
    j->made.size = j->made.n_elements / 2;
    return GGUF_OK;
}

/* Find the parts of a weight with tensor i as its codes. *found is false if it
 * is not such a tensor. */
static enum gguf_status find_parts(struct join *j, uint32_t i, bool *found,
                                   struct gguf_error *err)
{
    const struct form *f = &forms[j->config->form];
    const struct gguf_str name = j->s->tensor[i].name;
    const size_t end = strlen(f->end[GG_PACKED_CODES]);
    const bool own = f->becomes || j->config->form == GG_PACKED_MXFP4;
    char text[512];
    /* Other tensors have the suffix of signed bytes, too. */
    *found = gg_str_ends(name, f->end[GG_PACKED_CODES]) &&
             (own || !strcmp(j->s->tensor[i].type->name, "I8"));
    if (!*found)
        return GGUF_OK;
    j->name = (struct gguf_str){ name.data, name.size - end };
    gg_str_esc(&j->codes, name);
    for (int k = 0; k < GG_N_PACKED_PARTS; k++) {
        j->part[k] = i;
        if (k == GG_PACKED_CODES)
            continue;
        j->part[k] =
            f->end[k] && gg_str_join(text, sizeof text, j->name, f->end[k])
                ? gg_safetensors_find(j->s, gg_str_z(text))
                : GG_INDEX_NONE;
    }
    const struct gg_safetensors_tensor *scales = part_of(j, GG_PACKED_SCALES);
    if (j->config->form == GG_PACKED_SCB && !scales) {
        *found = false; /* other bytes */
        return GGUF_OK;
    }
    if (!j->s->tensor[i].n_elements || !scales || !scales->n_elements ||
        (f->need_zeros && !part_of(j, GG_PACKED_ZEROS)))
        return fail_join(j, "its scales or zero points are missing", err);
    return GGUF_OK;
}

/* Add the weight to the list, as a new tensor or in place of the codes. */
static enum gguf_status add_join(struct join *j, struct gguf_error *err)
{
    const struct form *f = &forms[j->config->form];
    struct gg_safetensors *s = j->s;
    char text[512];
    uint32_t to = j->part[GG_PACKED_CODES];
    for (int k = 0; k < GG_N_PACKED_PARTS; k++) {
        struct gg_safetensors_tensor *t =
            j->part[k] == GG_INDEX_NONE ? NULL : &s->tensor[j->part[k]];
        if (!t)
            continue;
        t->is_part = k != GG_PACKED_CODES || f->becomes;
        const bool by_rows =
            k == GG_PACKED_CODES && j->config->form >= GG_PACKED_WORDS;
        j->p->place[k] =
            (struct gg_packed_place){ t->off, t->size, t->file_no, by_rows };
    }
    if (f->becomes) {
        if (!gg_str_join(text, sizeof text, j->name, f->becomes))
            return fail_join(j, "the name is too long", err);
        to = (uint32_t)s->n_tensors;
        GG_TRY(gg_safetensors_add(s, gg_str_z(text), NULL, 1, err));
    }
    struct gg_safetensors_tensor *t = &s->tensor[to];
    t->type = j->made.type;
    t->n_dims = j->made.n_dims;
    memcpy(t->ne, j->made.ne, sizeof t->ne);
    t->n_elements = j->made.n_elements;
    t->size = j->made.size;
    t->packed = j->p;
    return GGUF_OK;
}

enum gguf_status gg_packed_join_one(struct gg_safetensors *s, uint32_t i,
                                    const struct gg_packed_config *config,
                                    struct gguf_error *err)
{
    struct join j = { .s = s, .config = config };
    bool found;
    GG_TRY(find_parts(&j, i, &found, err));
    if (!found)
        return GGUF_OK;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        j.made.ne[d] = 1;
    j.p = gg_mem_arena_alloc(&s->arena, sizeof *j.p);
    if (!j.p)
        return gg_error_set_nomem(err, sizeof *j.p);
    *j.p =
        (struct gg_packed){ .times = config->form == GG_PACKED_SCB ? 1.0f / 127
                                                                   : 1 };
    GG_TRY(use_parts(&j, err));
    return add_join(&j, err);
}

enum gguf_status gg_packed_join(struct gg_safetensors *s,
                                const struct gg_packed_config *config,
                                struct gguf_error *err)
{
    const size_t n = s->n_tensors;
    for (uint32_t i = 0; i < n; i++)
        GG_TRY(gg_packed_join_one(s, i, config, err));
    return GGUF_OK;
}
