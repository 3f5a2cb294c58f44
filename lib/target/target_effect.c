/* SPDX-License-Identifier: MIT */
/* target_effect.c - predict the divergence that an error of a tensor causes
 *
 * imatrix.h has the formula. A token embedding in the place of a missing output
 * matrix has the effects of both. */
#include "config.h"
#include "target/target_int.h"
#include "base/bytes.h"
#include "base/str.h"

static const char embedding[] = "token_embd.weight";
static const char output[] = "output.weight";

/* Find the sensitivity of a name. Returns false if it is missing. */
static bool find_sensitivity(const struct gguf_quant *q, struct gguf_str name,
                             struct gguf_imatrix_sensitivity *s)
{
    size_t i;
    *s = (struct gguf_imatrix_sensitivity)GGUF_IMATRIX_SENSITIVITY_INIT;
    return q->p.imatrix &&
           gguf_imatrix_find_sensitivity(q->p.imatrix, name, &i) &&
           gguf_imatrix_sensitivity(q->p.imatrix, i, s, NULL) == GGUF_OK;
}

static void add_sensitivity(struct gg_target_effect *e,
                            const struct gguf_imatrix_sensitivity *s)
{
    e->known = true;
    if (s->input > 0) {
        e->product = s->value;
        e->input = s->input;
    } else {
        e->table = s->value;
    }
}

struct gg_target_effect gg_target_find_effect(const struct gguf_quant *q,
                                              const struct gg_job_tensor *t)
{
    const struct gguf_str name = t->src->name;
    struct gg_target_effect e = { .known = false };
    struct gguf_imatrix_sensitivity s;
    if (find_sensitivity(q, name, &s))
        add_sensitivity(&e, &s);
    if (e.known && gg_str_eqz(name, embedding) && !gg_job_find(q, output) &&
        find_sensitivity(q, gg_str_z(output), &s))
        add_sensitivity(&e, &s);
    return e;
}

static float count_at(const struct gg_imatrix_entry *e, uint64_t m)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(e->counts + 4 * m));
}

/* Share of the inputs of a tensor that matrix m receives. */
static double share_of(const struct gguf_quant *q,
                       const struct gg_job_tensor *t, uint64_t m)
{
    const struct gg_imatrix_entry *e = gg_job_imatrix(q, t);
    const uint64_t n_mats = gg_job_n_mats(t);
    double sum = 0;
    if (n_mats == 1)
        return 1;
    for (uint64_t k = 0; e && k < e->n_mats; k++)
        sum += (double)count_at(e, k);
    return e && e->n_mats == n_mats && sum > 0 ? (double)count_at(e, m) / sum
                                               : 1 / (double)n_mats;
}

double gg_target_predict_rows(const struct gguf_quant *q,
                              const struct gg_target_tensor *tt, uint64_t m,
                              double err2, double weighted)
{
    const struct gg_target_effect *e = &tt->effect;
    const struct gguf_quant_tensor *t = &tt->t->pub;
    const double rows = (double)(t->n_elements / (uint64_t)t->ne[0]);
    const double power = gg_job_imatrix(q, tt->t) ? weighted : err2 * e->input;
    double d = err2 * e->table / rows / 2;
    if (e->product > 0)
        d += share_of(q, tt->t, m) * power * e->product / 2;
    return d;
}
