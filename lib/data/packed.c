/* SPDX-License-Identifier: MIT */
/* packed.c - read the elements of a weight that several tensors hold */
#include "config.h"
#include "data/packed_int.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/block.h"
#include "gguf/dtype.h"

#include <string.h>

/* Get a number of 3 bits. 32 of them lie in three words; the second and third
 * word begin within a number. Numbers are packed along one dimension, whose
 * step leads from word to word. */
static unsigned number_3(const struct gg_packed_bits *l, uint64_t r,
                         uint64_t c)
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

static unsigned code_at(const struct gg_packed_bits *l, uint64_t r, uint64_t c)
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
    uint64_t no; /* number of the group, plus 1 */
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
    /* checked on opening, but the file may have changed */
    return GG_MIN(gg_bytes_load32le(p->index + 4 * c), p->n_groups - 1);
}

/* Read columns c to c + n of row r. */
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

/* Rearrange blocks: byte i of a folder's block has numbers 2 i and 2 i + 1,
 * byte i of GGUF's has numbers i and i + 16. */
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
    for (size_t k = 0; k < GG_N_PACKED_PARTS; k++) {
        const struct gg_packed_place *x = &t->packed->place[k];
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
    for (size_t k = 0; k < GG_N_PACKED_PARTS; k++) {
        const struct gg_packed_place *x = &t->packed->place[k];
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
