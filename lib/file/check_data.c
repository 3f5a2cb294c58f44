/* SPDX-License-Identifier: MIT */
/* check_data.c - check that all floats and block scales of a file are finite
 *
 * Tensors are cut into pieces, which the threads take one by one. The counts
 * and first places that are reported do not depend on which thread found them.
 */
#include "config.h"
#include "file/file_check.h"
#include "file/file_int.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "dtype/byte_order.h"
#include "dtype/interleave.h"

#include <stdatomic.h>
#include <string.h>

/* Format of a number that must be finite. */
enum form { NONE, F16, BF16, F32, F64, E8M0, UE4M3, IQ1M };

/* Numbers that must be finite in a unit: n numbers from byte off, one after
 * another. A unit is a block; for types with row headers, a row; for
 * interleaved types, a group of these. */
struct scales {
    enum form form;
    uint8_t n;
    size_t off;
};

/* A row for each type with such numbers. For plain floats it is the one number
 * of a block. Layout of blocks: dtype/block.h. */
static const struct scales table[GG_N_DTYPES] = {
#define ROW(NAME, FORM, N, TYPE, MEMBER)                                      \
    [GG_DT_##NAME] = { FORM, N, offsetof(struct gg_block_##TYPE, MEMBER) }
    [GG_DT_F32] = { F32, 1, 0 },
    [GG_DT_F16] = { F16, 1, 0 },
    [GG_DT_BF16] = { BF16, 1, 0 },
    [GG_DT_F64] = { F64, 1, 0 },
    [GG_DT_F8_E4M3] = { UE4M3, 1, 0 },
    ROW(Q4_0, F16, 1, q4_0, d),
    ROW(Q4_1, F16, 2, q4_1, d),
    ROW(Q5_0, F16, 1, q5_0, d),
    ROW(Q5_1, F16, 2, q5_1, d),
    ROW(Q8_0, F16, 1, q8_0, d),
    ROW(Q8_1, F16, 2, q8_1, d),
    ROW(Q2_K, F16, 2, q2_k, d),
    ROW(Q3_K, F16, 1, q3_k, d),
    ROW(Q4_K, F16, 2, q4_k, d),
    ROW(Q5_K, F16, 2, q5_k, d),
    ROW(Q6_K, F16, 1, q6_k, d),
    ROW(Q8_K, F32, 1, q8_k, d),
    ROW(IQ2_XXS, F16, 1, iq2_xxs, d),
    ROW(IQ2_XS, F16, 1, iq2_xs, d),
    ROW(IQ2_S, F16, 1, iq2_s, d),
    ROW(IQ3_XXS, F16, 1, iq3_xxs, d),
    ROW(IQ3_S, F16, 1, iq3_s, d),
    ROW(IQ1_S, F16, 1, iq1_s, d),
    ROW(IQ1_M, IQ1M, 1, iq1_m, scales),
    ROW(IQ4_NL, F16, 1, iq4_nl, d),
    ROW(IQ4_XS, F16, 1, iq4_xs, d),
    ROW(TQ1_0, F16, 1, tq1_0, d),
    ROW(TQ2_0, F16, 1, tq2_0, d),
    ROW(MXFP4, E8M0, 1, mxfp4, e),
    ROW(NVFP4, UE4M3, 4, nvfp4, d),
    ROW(Q1_0, F16, 1, q1_0, d),
    ROW(Q2_0, F16, 1, q2_0, d),
    ROW(Q6_0, F16, 1, q6_0, d),
    ROW(IQ2_K, F16, 1, iq2_k, d),
    ROW(IQ3_K, F16, 1, iq3_k, d),
    ROW(IQ4_K, F16, 1, iq4_k, d),
    ROW(IQ5_K, F16, 1, iq5_k, d),
    ROW(IQ6_K, F16, 1, iq6_k, d),
#undef ROW
    /* scales in row headers (ik_llama.cpp, iqk_quantize.cpp) */
    [GG_DT_IQ1_BN] = { F16, 1, 0 },
    [GG_DT_IQ2_BN] = { F32, 1, 0 },
    [GG_DT_IQ4_KS] = { F32, 1, 0 },
    [GG_DT_IQ2_KS] = { F16, 1, 0 },
    [GG_DT_IQ4_KSS] = { F32, 1, 0 },
    [GG_DT_Q8_KV] = { F32, 1, 0 },
    [GG_DT_IQ5_KS] = { F32, 1, 0 },
    [GG_DT_IQ2_KT] = { F32, 1, 0 },
    [GG_DT_IQ3_KT] = { F32, 1, 0 },
    [GG_DT_IQ4_KT] = { F32, 1, 0 },
    [GG_DT_IQ3_KS] = { F16, 1, 0 },
    [GG_DT_IQ2_KL] = { F16, 1, 0 },
    [GG_DT_IQ1_KT] = { F32, 1, 0 },
    /* interleaved types: first in a group of rows or of blocks */
    [GG_DT_Q4_0_R8] = { F16, 8, 0 },
    [GG_DT_Q5_0_R4] = { F16, 4, 0 },
    [GG_DT_Q8_0_R8] = { F16, 8, 0 },
    [GG_DT_Q6_0_R4] = { F16, 4, 0 },
    [GG_DT_MXFP4_R8] = { E8M0, 8, 0 },
    [GG_DT_IQ4_NL_R4] = { F16, 4, 0 },
    [GG_DT_IQ4_XS_R8] = { F16, 8, 0 },
    [GG_DT_Q2_K_R4] = { F16, 8, 0 }, /* scales and minima */
    [GG_DT_Q3_K_R4] = { F16, 4, 0 },
    [GG_DT_Q4_K_R4] = { F16, 8, 0 },
    [GG_DT_Q5_K_R4] = { F16, 8, 0 },
    [GG_DT_Q6_K_R4] = { F16, 4, 0 },
    [GG_DT_IQ2_K_R4] = { F16, 4, 0 },
    [GG_DT_IQ3_K_R4] = { F16, 4, 0 },
    [GG_DT_IQ4_K_R4] = { F16, 4, 0 },
    [GG_DT_IQ5_K_R4] = { F16, 4, 0 },
    [GG_DT_IQ4_KS_R4] = { F32, 4, 0 },
    [GG_DT_IQ5_KS_R4] = { F32, 4, 0 },
    [GG_DT_IQ2_BN_R4] = { F32, 4, 0 },
    [GG_DT_IQ2_XXS_R4] = { F16, 4, 0 },
    [GG_DT_IQ3_XXS_R4] = { F16, 4, 0 },
    [GG_DT_IQ2_XS_R4] = { F16, 4, 0 },
    [GG_DT_IQ2_S_R4] = { F16, 4, 0 },
    [GG_DT_IQ3_S_R4] = { F16, 4, 0 },
    [GG_DT_Q8_KV_R8] = { F32, 8, 0 },
    [GG_DT_BF16_R16] = { BF16, 32, 0 },
    [GG_DT_IQ1_S_R4] = { F16, 4, 0 },
    [GG_DT_IQ1_M_R4] = { F16, 4, 0 },
    [GG_DT_Q8_K_R8] = { F16, 8, 0 },
    [GG_DT_Q8_K_R16] = { F16, 16, 0 },
};

static const uint8_t form_size[] = {
    [F16] = 2,  [BF16] = 2,  [F32] = 4,  [F64] = 8,
    [E8M0] = 1, [UE4M3] = 1, [IQ1M] = 8,
};

/* Is the number at p finite? */
static inline bool finite_at(enum form form, const uint8_t *p)
{
    switch (form) {
    case F16: return (gg_bytes_load16le(p) & 0x7c00) != 0x7c00;
    case BF16: return (gg_bytes_load16le(p) & 0x7f80) != 0x7f80;
    case F32: return (gg_bytes_load32le(p) & 0x7f800000u) != 0x7f800000u;
    case F64: return (gg_bytes_load64le(p) >> 52 & 0x7ff) != 0x7ff;
    case E8M0: /* 255 is NaN (OCP microscaling formats, 5.4.1) */
        return *p != 0xff;
    case UE4M3: /* all ones is NaN (OCP 8-bit floats, E4M3) */
        return (*p & 0x7f) != 0x7f;
    case IQ1M: /* an f16 whose four nibbles are the upper bits of four words,
                * lowest first: its exponent is in the last two */
        return (((gg_bytes_load16le(p + 4) >> 4 & 0x0f00) |
                 (gg_bytes_load16le(p + 6) & 0xf000)) &
                0x7c00) != 0x7c00;
    default: return true;
    }
}

/* Count the numbers in n units that are not finite. */
static inline uint64_t count_bad_scales(enum form form, const struct scales *s,
                                        const uint8_t *p, uint64_t n,
                                        size_t stride)
{
    uint64_t bad = 0;
    for (unsigned k = 0; k < s->n; k++) {
        const uint8_t *q = p + s->off + k * (size_t)form_size[form];
        for (uint64_t i = 0; i < n; i++)
            bad += !finite_at(form, q + i * stride);
    }
    return bad;
}

/* Count consecutive numbers that are not finite: all bits of mask, the
 * exponent, are 1. Runs have a constant length so that the compiler vectorizes
 * them. */
enum { RUN = 1024 };

static uint64_t count_16(const uint8_t *p, uint64_t n, uint16_t mask)
{
    uint64_t bad = 0;
    uint16_t v[RUN];
    gg_bytes_store16le(v, mask); /* mask in the file's byte order */
    mask = v[0];
    for (size_t step; n; n -= step, p += step * sizeof *v) {
        uint16_t sum = 0;
        step = (size_t)GG_MIN(n, (uint64_t)RUN);
        if (step < RUN)
            memset(v, 0, sizeof v);
        memcpy(v, p, step * sizeof *v);
        for (int i = 0; i < RUN; i++)
            sum = (uint16_t)(sum + ((v[i] & mask) == mask));
        bad += sum;
    }
    return bad;
}

static uint64_t count_32(const uint8_t *p, uint64_t n, uint32_t mask)
{
    uint64_t bad = 0;
    uint32_t v[RUN];
    gg_bytes_store32le(v, mask);
    mask = v[0];
    for (size_t step; n; n -= step, p += step * sizeof *v) {
        uint32_t sum = 0;
        step = (size_t)GG_MIN(n, (uint64_t)RUN);
        if (step < RUN)
            memset(v, 0, sizeof v);
        memcpy(v, p, step * sizeof *v);
        for (int i = 0; i < RUN; i++)
            sum += (v[i] & mask) == mask;
        bad += sum;
    }
    return bad;
}

static uint64_t count_form(const struct scales *s, const uint8_t *p,
                           uint64_t n, size_t stride)
{
    if (s->form == F16 && stride == 2)
        return count_16(p, n, 0x7c00);
    if (s->form == BF16 && stride == 2)
        return count_16(p, n, 0x7f80);
    if (s->form == F32 && stride == 4)
        return count_32(p, n, 0x7f800000u);
    if (s->form == F16)
        return count_bad_scales(F16, s, p, n, stride);
    return count_bad_scales(s->form, s, p, n, stride);
}

/* Index of the first unit of n with a number that is not finite. */
static uint64_t first_unit(const struct scales *s, const uint8_t *p,
                           uint64_t n, size_t stride)
{
    uint64_t i = 0;
    while (i < n &&
           count_bad_scales(s->form, s, p + i * stride, 1, stride) == 0)
        i++;
    return i;
}

/* Lower *v to `to', if that is smaller. Relaxed: it is read after the threads
 * have joined. */
static void lower_to(_Atomic uint64_t *v, uint64_t to)
{
    uint64_t old = atomic_load_explicit(v, memory_order_relaxed);
    while (to < old &&
           !atomic_compare_exchange_weak_explicit(
               v, &old, to, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Count the numbers that are not finite in n units of stride bytes at p.
 *
 * from    Index of the first unit in its tensor.
 * first   Lowered to the index of the first unit with such a number. */
static uint64_t look_at_scales(int type, const uint8_t *p, uint64_t n,
                               size_t stride, uint64_t from,
                               _Atomic uint64_t *first)
{
    const struct scales *s = &table[type];
    uint64_t bad = count_form(s, p, n, stride);
    if (bad)
        lower_to(first, from + first_unit(s, p, n, stride));
    return bad;
}

/* Count in blocks or row headers of a big-endian file, like
 * look_at_scales(). */
static uint64_t look_swapped(int type, const uint8_t *p, uint64_t n,
                             size_t stride, uint64_t from,
                             _Atomic uint64_t *first)
{
    size_t header = gg_dtype_by_index(type)->row_header;
    uint8_t buf[1 << 13];
    uint64_t bad = 0;
    for (uint64_t k; n; n -= k, p += k * stride, from += k) {
        k = header ? 1 : GG_MIN(n, (uint64_t)(sizeof buf / stride));
        size_t size = header ? header : (size_t)k * stride;
        memcpy(buf, p, size);
        gg_byte_order_swap(type, stride, 0, buf, size);
        bad += look_at_scales(type, buf, k, stride, from, first);
    }
    return bad;
}

/* ------------------------------------------------------------- threads --- */

enum { PIECE = 1 << 22 }; /* approximate bytes of a piece */

struct result {
    _Atomic uint64_t bad;
    _Atomic uint64_t first; /* index of the first bad unit of the tensor */
};

struct job {
    const struct gg_file_checker *c;
    struct result *result; /* result of each tensor */
    uint64_t *first_piece; /* first piece of each tensor; then their number */
    _Atomic uint64_t next; /* next piece to take */
    _Atomic uint64_t done; /* bytes done */
    atomic_bool stop;
    uint64_t total; /* bytes to do */
};

/* Numbers of a tensor that are checked; NULL: none. */
static const struct scales *scales_of(const struct gguf_file *f,
                                      const struct gguf_tensor_info *t)
{
    const int i = gg_dtype_index(t->dtype);
    if (i < 0 || !t->n_elements || t->size_inferred || table[i].form == NONE)
        return NULL;
    const unsigned rows = gg_interleave_rows(i);
    return rows > 1 && (f->big_endian || t->ne[1] % (int64_t)rows) ? NULL
                                                                   : &table[i];
}

/* Number of units of a tensor that scales_of() does not leave out. */
static uint64_t units_of(const struct gguf_tensor_info *t)
{
    const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
    return t->n_elements /
           (dt->row_header ? (uint64_t)t->ne[0] : dt->block_len) /
           gg_interleave_rows(gg_dtype_index(t->dtype));
}

static size_t unit_size(const struct gguf_tensor_info *t)
{
    return (size_t)(t->size / units_of(t));
}

static uint64_t piece_units(const struct gguf_tensor_info *t)
{
    return GG_MAX(1, PIECE / unit_size(t));
}

static void check_piece(struct job *j, size_t i, uint64_t piece)
{
    const struct gguf_file *f = j->c->file;
    const struct gguf_tensor_info *t = &f->tensor[i];
    int type = gg_dtype_index(t->dtype);
    size_t stride = unit_size(t);
    uint64_t from = piece * piece_units(t);
    uint64_t n = GG_MIN(piece_units(t), units_of(t) - from);
    const uint8_t *p = f->map.data + f->data_off + t->off + from * stride;
    struct result *r = &j->result[i];
    uint64_t bad = f->big_endian
                       ? look_swapped(type, p, n, stride, from, &r->first)
                       : look_at_scales(type, p, n, stride, from, &r->first);
    if (bad)
        atomic_fetch_add_explicit(&r->bad, bad, memory_order_relaxed);
    atomic_fetch_add_explicit(&j->done, n * stride, memory_order_relaxed);
}

/* Index of the tensor that a piece belongs to. */
static size_t tensor_of(const struct job *j, uint64_t piece)
{
    size_t lo = 0, hi = j->c->file->n_tensors;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (j->first_piece[mid] <= piece)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void check_chunks(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    const struct gguf_check_params *p = &j->c->params;
    uint64_t n = j->first_piece[j->c->file->n_tensors];
    (void)nth;
    for (;;) {
        uint64_t piece =
            atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (piece >= n || atomic_load_explicit(&j->stop, memory_order_relaxed))
            return;
        size_t i = tensor_of(j, piece);
        check_piece(j, i, piece - j->first_piece[i]);
        if (ith == 0 && p->progress.fn &&
            p->progress.fn(
                p->progress.user,
                atomic_load_explicit(&j->done, memory_order_relaxed),
                j->total))
            atomic_store_explicit(&j->stop, true, memory_order_relaxed);
    }
}

static void plan_chunks(struct job *j)
{
    const struct gguf_file *f = j->c->file;
    uint64_t pieces = 0;
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct gguf_tensor_info *t = &f->tensor[i];
        atomic_init(&j->result[i].bad, 0);
        atomic_init(&j->result[i].first, UINT64_MAX);
        j->first_piece[i] = pieces;
        if (!scales_of(f, t))
            continue;
        pieces += (units_of(t) + piece_units(t) - 1) / piece_units(t);
        j->total += t->size;
    }
    j->first_piece[f->n_tensors] = pieces;
}

static enum gguf_status report_faults(const struct job *j,
                                      struct gguf_error *err)
{
    const struct gguf_file *f = j->c->file;
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct gguf_tensor_info *t = &f->tensor[i];
        uint64_t bad =
            atomic_load_explicit(&j->result[i].bad, memory_order_relaxed);
        if (bad == 0)
            continue;
        const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
        uint64_t unit =
            atomic_load_explicit(&j->result[i].first, memory_order_relaxed);
        uint64_t at = f->data_off + t->off + unit * unit_size(t);
        const bool group = gg_interleave_rows(gg_dtype_index(t->dtype)) > 1;
        const bool is_float = table[gg_dtype_index(t->dtype)].form == BF16 ||
                              dt->family == GGUF_FAMILY_FLOAT;
        struct gg_str_esc e;
        GG_TRY(gg_file_report_finding(
            j->c, is_float ? GG_CHECK_VALUES : GG_CHECK_SCALES, t->name, at,
            err,
            "tensor '%s': %" PRIu64 " %s %s not finite, first in %s%s %" PRIu64
            " at byte %" PRIu64,
            gg_str_esc(&e, t->name), bad,
            is_float         ? "values"
            : dt->row_header ? "row scales"
                             : "block scales",
            bad == 1 ? "is" : "are", group ? "group of " : "",
            is_float         ? group ? "elements" : "element"
            : dt->row_header ? group ? "rows" : "row"
            : group          ? "blocks"
                             : "block",
            unit, at));
    }
    return GGUF_OK;
}

enum gguf_status gg_file_check_payload(const struct gg_file_checker *c,
                                       struct gguf_error *err)
{
    const struct gguf_file *f = c->file;
    const struct gguf_allocator *a = c->params.allocator;
    if (f->n_tensors == 0)
        return GGUF_OK;
    GG_TRY(gg_file_require_memory(f, err));
    struct job j = { .c = c };
    enum gguf_status st = GGUF_OK;
    j.result = gg_mem_alloc_zero(a, f->n_tensors, sizeof *j.result);
    j.first_piece = gg_mem_alloc_zero(a, (uint64_t)f->n_tensors + 1,
                                      sizeof *j.first_piece);
    if (!j.result || !j.first_piece) {
        st = gg_error_set_nomem(err, (f->n_tensors + 1) * sizeof *j.result);
        goto out;
    }
    plan_chunks(&j);
    gguf_pool_run(c->params.pool,
                  (struct gguf_pool_callback){ check_chunks, &j });
    st = atomic_load(&j.stop)
             ? gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "the check was stopped")
             : report_faults(&j, err);
out:
    gg_mem_free(a, j.first_piece);
    gg_mem_free(a, j.result);
    return st;
}
