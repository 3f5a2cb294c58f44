/* SPDX-License-Identifier: MIT */
/* packed.c - weights of few bits that several tensors of a folder hold */
#include "config.h"
#include "data/packed.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/block.h"
#include "gguf/dtype.h"

#include <string.h>

enum { CODES, ZEROS, SCALES, INDEX, SHAPE, N_PARTS };

/* How small numbers lie: that of row r and group or column c is in unit
 * r / per_r * step_r + c / per_c * step_c, of 4 bytes or of one. */
struct lie {
    const uint8_t *data;
    uint64_t step_r, step_c;
    unsigned log_r, log_c; /* per_r and per_c are powers of two */
    unsigned bits;
    const uint8_t *order; /* of those in a unit; NULL: as they come */
    bool bytes;           /* signed ones */
};

/* Where a part is, for its pages. */
struct place {
    uint64_t off, size;
    uint32_t file_no;
    bool by_rows; /* it lies as the weight's rows do */
};

struct gg_packed {
    uint64_t rows, cols, group, n_groups;
    struct lie code, zero; /* zero.data is NULL: mid */
    unsigned mid, plus;    /* zero points are plus more than they say */
    float times;           /* of scales */
    struct gg_stored scale;
    uint64_t scale_r, scale_g; /* steps */
    const uint8_t *index;      /* the group of each column; or NULL */
    const uint8_t *exponent;   /* MXFP4 */
    gg_kern_decode_fn *decode;
    struct place place[N_PARTS];
};

static const struct form {
    const char *end[N_PARTS]; /* after the name; NULL: there is none */
    const char *becomes;      /* NULL: the name of the codes */
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
};

static const struct gg_safetensors_type types[] = {
    { "packed", 4, UINT32_MAX, NULL, GGUF_DTYPE_F16 },
    { "packed", 4, UINT32_MAX, NULL, GGUF_DTYPE_BF16 },
    { "MXFP4", 4, GGUF_DTYPE_MXFP4, NULL, GGUF_DTYPE_MXFP4 },
};

/* Of 3 bits: 32 in three words, of which the second and third begin within a
 * number. Either dimension is packed; the step is from word to word. */
static unsigned number_3(const struct lie *l, uint64_t r, uint64_t c)
{
    const uint64_t bit = 3 * (l->log_r ? r : c),
                   step = l->log_r ? l->step_r : l->step_c;
    const uint8_t *p =
        l->data +
        4 * (bit / 32 * step + (l->log_r ? c * l->step_c : r * l->step_r));
    const unsigned at = bit % 32;
    uint32_t v = gg_bytes_load32le(p) >> at;
    if (at > 29)
        v |= gg_bytes_load32le(p + 4 * step) << (32 - at);
    return v & 7;
}

static unsigned code_at(const struct lie *l, uint64_t r, uint64_t c)
{
    const uint64_t unit =
        (r >> l->log_r) * l->step_r + (c >> l->log_c) * l->step_c;
    if (l->bytes)
        return l->data[unit] ^ 0x80u;
    if (l->bits == 3)
        return number_3(l, r, c);
    unsigned at = l->log_r ? (unsigned)r & ((1u << l->log_r) - 1)
                           : (unsigned)c & ((1u << l->log_c) - 1);
    if (l->order)
        at = l->order[at];
    return gg_bytes_load32le(l->data + 4 * unit) >> (l->bits * at) &
           ((1u << l->bits) - 1);
}

/* Scales of one row that were read. */
enum { CACHE = 64 };
struct group {
    uint64_t no; /* and 1 */
    float scale;
    int zero;
};

static const struct group *get_group(const struct gg_packed *p,
                                     struct group cache[CACHE], uint64_t r,
                                     uint64_t g)
{
    struct group *x = &cache[g % CACHE];
    if (x->no == g + 1)
        return x;
    x->no = g + 1;
    gg_stored_read(&p->scale, r * p->scale_r + g * p->scale_g, 1, &x->scale);
    x->scale *= p->times;
    x->zero = (int)(p->zero.data ? code_at(&p->zero, r, g) + p->plus : p->mid);
    return x;
}

static uint64_t group_of(const struct gg_packed *p, uint64_t c)
{
    if (!p->index)
        return c / p->group;
    /* checked when it was opened; the file may have changed */
    return GG_MIN(gg_bytes_load32le(p->index + 4 * c), p->n_groups - 1);
}

/* Columns c to c + n of row r. */
static void read_row(const struct gg_packed *p, uint64_t r, uint64_t c,
                     uint64_t n, float *dst)
{
    struct group cache[CACHE] = { { 0, 0, 0 } };
    for (uint64_t end = c + n, run; c < end; c += run) {
        const struct group *x = get_group(p, cache, r, group_of(p, c));
        run = p->index ? 1 : GG_MIN(end - c, p->group - c % p->group);
        for (uint64_t i = 0; i < run; i++)
            *dst++ =
                x->scale * (float)((int)code_at(&p->code, r, c + i) - x->zero);
    }
}

static void read_codes(const struct gg_data_rows *rows, uint64_t first,
                       uint64_t n, float *dst)
{
    const struct gg_packed *p = rows->source;
    for (uint64_t k; n; first += k, dst += k, n -= k) {
        const uint64_t c = first % p->cols;
        k = GG_MIN(n, p->cols - c);
        read_row(p, first / p->cols, c, k, dst);
    }
}

/* Byte i of a folder's block has numbers 2 i and 2 i + 1, of GGUF's i and
 * i + 16. */
static void store_blocks(const struct gg_data_rows *rows, uint64_t first,
                         uint64_t n, uint8_t *dst)
{
    const struct gg_packed *p = rows->source;
    for (uint64_t b = first / 32, end = b + n / 32; b < end; b++, dst += 17) {
        const uint8_t *q = p->code.data + 16 * b;
        dst[0] = p->exponent[b];
        for (unsigned i = 0; i < 8; i++) {
            const uint8_t low = q[i], high = q[i + 8];
            dst[1 + 2 * i] = (uint8_t)((low & 15) | (high & 15) << 4);
            dst[2 + 2 * i] = (uint8_t)(low >> 4 | (high & 0xf0));
        }
    }
}

static void read_blocks(const struct gg_data_rows *rows, uint64_t first,
                        uint64_t n, float *dst)
{
    const struct gg_packed *p = rows->source;
    struct gg_block_mxfp4 buf[16];
    for (uint64_t k; n; first += k, dst += k, n -= k) {
        k = GG_MIN(n, 32 * GG_LEN(buf));
        store_blocks(rows, first, k, (uint8_t *)buf);
        p->decode(buf, dst, (size_t)k);
    }
}

enum gguf_status gg_packed_rows(const struct gg_safetensors *s, size_t i,
                                struct gg_data_rows *out,
                                struct gguf_error *err)
{
    const struct gg_packed *p = s->tensor[i].packed;
    (void)err;
    *out = (struct gg_data_rows){ .read = read_codes, .source = p };
    if (p->exponent) {
        out->read = read_blocks;
        out->blocks = store_blocks;
    }
    return GGUF_OK;
}

void gg_packed_advise(const struct gg_safetensors *s, size_t i, uint64_t first,
                      uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_safetensors_tensor *t = &s->tensor[i];
    for (size_t k = 0; k < N_PARTS; k++) {
        const struct place *x = &t->packed->place[k];
        const uint64_t unit = t->n_elements / GG_MAX(x->size, 1);
        if (!x->size)
            continue;
        if (x->by_rows && unit)
            gg_safetensors_advise(s, x->file_no, x->off + first / unit,
                                  n / unit, how);
        else if (how == GG_ADVISE_DONTNEED && first + n >= t->n_elements)
            gg_safetensors_advise(s, x->file_no, x->off, x->size, how);
    }
}

enum gguf_status gg_packed_hold(const struct gg_safetensors *s, size_t i,
                                uint64_t first, uint64_t n, bool begin,
                                struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = &s->tensor[i];
    const uint64_t cols = (uint64_t)t->ne[0], rows = t->n_elements / cols;
    for (size_t k = 0; k < N_PARTS; k++) {
        const struct place *x = &t->packed->place[k];
        uint64_t from = 0, size = x->size;
        if (x->by_rows) {
            from = first / cols * (size / rows);
            size = (first + n + cols - 1) / cols * (size / rows) - from;
        }
        GG_TRY(gg_safetensors_hold(s, x->file_no, x->off + from, size, begin,
                                   err));
    }
    return GGUF_OK;
}

struct join {
    struct gg_safetensors *s;
    const struct gg_packed_config *config;
    struct gguf_str name;    /* of the weight */
    uint32_t part[N_PARTS];  /* GG_INDEX_NONE: there is none */
    struct gg_str_esc codes; /* for messages */
    struct gg_packed *p;
    struct gg_safetensors_tensor made;
};

static enum gguf_status fault(const struct join *j, const char *what,
                              struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_TENSOR, j->s->tensor[j->part[CODES]].off,
                        "tensor '%s': %s", j->codes.s, what);
}

static const struct gg_safetensors_tensor *part_of(const struct join *j, int k)
{
    return j->part[k] == GG_INDEX_NONE ? NULL : &j->s->tensor[j->part[k]];
}

/* Is it of this type, and this shape, the slowest dimension first? */
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

/* Scales of [slow, fast] groups and rows, or the other way round; the rest
 * follows from their number. */
static enum gguf_status use_scales(struct join *j, bool groups_first,
                                   struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = part_of(j, SCALES);
    struct gg_packed *p = j->p;
    struct gg_data_rows rows;
    const uint64_t n = t->n_elements;
    const bool plain = n && (n == 1 || (t->n_dims == 1 && n == p->rows));
    if (t->type->f8 || t->type->dtype == UINT32_MAX ||
        t->type->own == UINT32_MAX || t->n_dims > 2 ||
        !gg_safetensors_plain(j->s, j->part[SCALES], &rows))
        return fault(j, "its scales are no numbers", err);
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
        return fault(j, "it has not as many rows as its scales", err);
    p->group = j->config->group && p->n_groups > 1
                   ? j->config->group
                   : (p->cols + p->n_groups - 1) / p->n_groups;
    if ((p->cols + p->group - 1) / p->group != p->n_groups)
        return fault(j, "its scales are not those of its groups", err);
    return GGUF_OK;
}

/* The group of each column. */
static enum gguf_status use_index(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t = part_of(j, INDEX);
    if (!t)
        return GGUF_OK;
    if (strcmp(t->type->name, "I32") != 0 || t->n_elements != j->p->cols)
        return fault(j, "its list of groups is not one for each column", err);
    uint64_t i = 0;
    GG_TRY(gg_safetensors_hold_all(j->s, j->part[INDEX], true, err));
    while (i < t->n_elements &&
           gg_bytes_load32le(t->data + 4 * i) < j->p->n_groups)
        i++;
    (void)gg_safetensors_hold_all(j->s, j->part[INDEX], false, NULL);
    if (i < t->n_elements)
        return fault(j, "a column is of a group that has no scale", err);
    j->p->index = t->data;
    return GGUF_OK;
}

/* GPTQ, AWQ: codes [a, b], zeros [groups, rows / n]. */
static enum gguf_status use_columns(struct join *j, bool awq,
                                    struct gguf_error *err)
{
    static const uint8_t order[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    const struct gg_safetensors_tensor *q = part_of(j, CODES), *z;
    const unsigned bits = j->config->bits;
    const unsigned per = bits == 3 ? 32 : 32 / bits, words = bits == 3 ? 3 : 1;
    const unsigned k = log_2(per);
    struct gg_packed *p = j->p;
    if (strcmp(q->type->name, "I32") != 0 || q->n_dims != 2)
        return fault(j, "not a matrix of 32-bit words", err);
    if (q->ne[1] % words)
        return fault(j, "its words are not whole numbers", err);
    p->cols = (uint64_t)q->ne[1] / words * (awq ? 1 : per);
    p->rows = (uint64_t)q->ne[0] * (awq ? per : 1);
    p->code = (struct lie){ .data = q->data, .bits = bits };
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
    z = part_of(j, ZEROS);
    if (!has_ne(z, "I32", p->n_groups, p->rows / per * words) || p->rows % per)
        return fault(j, "its zero points are not those of its groups", err);
    p->zero = (struct lie){ .data = z->data,
                            .step_r = 1,
                            .step_c = p->rows / per * words,
                            .log_r = k,
                            .bits = bits,
                            .order = awq ? order : NULL };
    p->plus = j->config->zero_plus_1;
    return use_index(j, err);
}

/* compressed-tensors: [rows, columns / n], zeros [rows / n, groups]. */
static enum gguf_status use_words(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, CODES), *z,
                                       *shape = part_of(j, SHAPE);
    struct gg_packed *p = j->p;
    unsigned bits = 2;
    if (!shape || shape->n_elements != 2 || shape->type->bits < 32 ||
        (strcmp(shape->type->name, "I64") != 0 &&
         strcmp(shape->type->name, "I32") != 0))
        return fault(j, "its shape is not there", err);
    GG_TRY(gg_safetensors_hold_all(j->s, j->part[SHAPE], true, err));
    p->rows = gg_bytes_load32le(shape->data);
    p->cols = gg_bytes_load32le(shape->data + shape->type->bits / 8);
    (void)gg_safetensors_hold_all(j->s, j->part[SHAPE], false, NULL);
    while (bits < 8 &&
           (p->cols + 32 / bits - 1) / (32 / bits) != (uint64_t)q->ne[0])
        bits *= 2;
    const unsigned per = 32 / bits;
    if (!p->rows || !p->cols ||
        !has_ne(q, "I32", p->rows, (p->cols + per - 1) / per))
        return fault(j, "its words are not those of its shape", err);
    p->code = (struct lie){ .data = q->data,
                            .step_r = (uint64_t)q->ne[0],
                            .step_c = 1,
                            .log_c = log_2(per),
                            .bits = bits };
    p->mid = 1u << (bits - 1);
    GG_TRY(use_scales(j, false, err));
    z = part_of(j, ZEROS);
    if (z && !has_ne(z, "I32", (p->rows + per - 1) / per, p->n_groups))
        return fault(j, "its zero points are not those of its groups", err);
    if (z)
        p->zero = (struct lie){ .data = z->data,
                                .step_r = p->n_groups,
                                .step_c = 1,
                                .log_r = log_2(per),
                                .bits = bits };
    return use_index(j, err);
}

static enum gguf_status use_bytes(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, CODES),
                                       *z = part_of(j, ZEROS);
    struct gg_packed *p = j->p;
    if (q->n_dims != 2)
        return fault(j, "not a matrix", err);
    p->cols = (uint64_t)q->ne[0];
    p->rows = (uint64_t)q->ne[1];
    p->code = (struct lie){
        .data = q->data, .step_r = p->cols, .step_c = 1, .bytes = true
    };
    p->mid = 0x80;
    GG_TRY(use_scales(j, false, err));
    if (z && (strcmp(z->type->name, "I8") != 0 ||
              z->n_elements != part_of(j, SCALES)->n_elements))
        return fault(j, "its zero points are not those of its groups", err);
    if (z)
        p->zero = (struct lie){ .data = z->data,
                                .step_r = p->scale_r,
                                .step_c = p->scale_g,
                                .bytes = true };
    return GGUF_OK;
}

/* [..., blocks, 16] and [..., blocks], U8. */
static bool are_blocks(const struct gg_safetensors_tensor *q,
                       const struct gg_safetensors_tensor *e)
{
    bool good = !strcmp(q->type->name, "U8") && !strcmp(e->type->name, "U8") &&
                q->n_dims == e->n_dims + 1 && q->ne[0] == 16 && e->n_dims;
    for (unsigned d = 0; good && d < e->n_dims; d++)
        good = q->ne[d + 1] == e->ne[d];
    return good;
}

/* [rows, 16 blocks] and [rows, blocks], which lie as those do. */
static bool are_rows(const struct gg_safetensors_tensor *q,
                     const struct gg_safetensors_tensor *e)
{
    return !strcmp(e->type->name, "F8_E8M0") && q->n_dims == 2 &&
           e->n_dims == 2 && q->ne[1] == e->ne[1] && q->ne[0] % 16 == 0 &&
           q->ne[0] / 16 == e->ne[0];
}

static enum gguf_status use_mxfp4(struct join *j, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *q = part_of(j, CODES),
                                       *e = part_of(j, SCALES);
    if (!(j->config->form == GG_PACKED_MXFP4 ? are_blocks : are_rows)(q, e))
        return fault(j, "its exponents are not those of its blocks", err);
    j->p->code.data = q->data;
    j->p->exponent = e->data;
    j->p->decode = j->s->codec[gg_dtype_index(GGUF_DTYPE_MXFP4)].decode;
    j->made.n_dims = e->n_dims;
    memcpy(j->made.ne, e->ne, sizeof j->made.ne);
    j->made.ne[0] *= 32; /* the blocks are there: it is no more than twice
                          * their bytes */
    j->made.n_elements = 2 * q->n_elements;
    j->made.size = q->n_elements + e->n_elements;
    j->made.type = &types[2];
    return GGUF_OK;
}

static enum gguf_status use_parts(struct join *j, struct gguf_error *err)
{
    const enum gg_packed_form form = j->config->form;
    if (form == GG_PACKED_MXFP4 || form == GG_PACKED_E2M1)
        return use_mxfp4(j, err);
    GG_TRY(form == GG_PACKED_WORDS ? use_words(j, err)
           : form == GG_PACKED_INT || form == GG_PACKED_SCB
               ? use_bytes(j, err)
               : use_columns(j, form == GG_PACKED_AWQ, err));
    const struct gg_safetensors_tensor *scales = part_of(j, SCALES);
    j->made.type = &types[scales->type->dtype != GGUF_DTYPE_F16];
    j->made.n_dims = 2;
    j->made.ne[0] = (int64_t)j->p->cols;
    j->made.ne[1] = (int64_t)j->p->rows;
    if (gg_ckd_mul(&j->made.n_elements, j->p->cols, j->p->rows) ||
        gg_ckd_cap(j->made.n_elements))
        return fault(j, "element count overflows", err);
    j->made.size = j->made.n_elements / 2;
    return GGUF_OK;
}

/* The parts of a weight whose codes are tensor i; false: it is none. */
static enum gguf_status find_parts(struct join *j, uint32_t i, bool *found,
                                   struct gguf_error *err)
{
    const struct form *f = &forms[j->config->form];
    const struct gguf_str name = j->s->tensor[i].name;
    const size_t end = strlen(f->end[CODES]);
    const bool own = f->becomes || j->config->form == GG_PACKED_MXFP4;
    char text[512];
    *found =
        gg_str_ends(name, f->end[CODES]) &&
        (own || !strcmp(j->s->tensor[i].type->name, "I8")); /* not only codes
                                                             * end so */
    if (!*found)
        return GGUF_OK;
    j->name = (struct gguf_str){ name.data, name.size - end };
    gg_str_esc(&j->codes, name);
    for (int k = 0; k < N_PARTS; k++) {
        j->part[k] = i;
        if (k == CODES)
            continue;
        j->part[k] =
            f->end[k] && gg_str_join(text, sizeof text, j->name, f->end[k])
                ? gg_safetensors_find(j->s, gg_str_z(text))
                : GG_INDEX_NONE;
    }
    const struct gg_safetensors_tensor *scales = part_of(j, SCALES);
    if (j->config->form == GG_PACKED_SCB && !scales) {
        *found = false; /* bytes of another kind */
        return GGUF_OK;
    }
    if (!j->s->tensor[i].n_elements || !scales || !scales->n_elements ||
        (f->need_zeros && !part_of(j, ZEROS)))
        return fault(j, "its scales or zero points are not there", err);
    return GGUF_OK;
}

/* A tensor of the list for it: a new one, or the codes'. */
static enum gguf_status add_join(struct join *j, struct gguf_error *err)
{
    const struct form *f = &forms[j->config->form];
    struct gg_safetensors *s = j->s;
    char text[512];
    uint32_t to = j->part[CODES];
    for (int k = 0; k < N_PARTS; k++) {
        struct gg_safetensors_tensor *t =
            j->part[k] == GG_INDEX_NONE ? NULL : &s->tensor[j->part[k]];
        if (!t)
            continue;
        t->is_part = k != CODES || f->becomes;
        const bool by_rows = k == CODES && j->config->form >= GG_PACKED_WORDS;
        j->p->place[k] =
            (struct place){ t->off, t->size, t->file_no, by_rows };
    }
    if (f->becomes) {
        if (!gg_str_join(text, sizeof text, j->name, f->becomes))
            return fault(j, "the name is too long", err);
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

enum gguf_status gg_packed_join(struct gg_safetensors *s,
                                const struct gg_packed_config *config,
                                struct gguf_error *err)
{
    const size_t n = s->n_tensors;
    for (uint32_t i = 0; i < n; i++) {
        struct join j = { .s = s, .config = config };
        bool found;
        GG_TRY(find_parts(&j, i, &found, err));
        if (!found)
            continue;
        for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
            j.made.ne[d] = 1;
        j.p = gg_mem_arena_alloc(&s->arena, sizeof *j.p);
        if (!j.p)
            return gg_error_set_nomem(err, sizeof *j.p);
        *j.p = (struct gg_packed){ .times = config->form == GG_PACKED_SCB
                                                ? 1.0f / 127
                                                : 1 };
        GG_TRY(use_parts(&j, err));
        GG_TRY(add_join(&j, err));
    }
    return GGUF_OK;
}
