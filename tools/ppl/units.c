/* SPDX-License-Identifier: MIT */
/* units.c - perplexity per byte and per word, and in Hugging Face's
 * convention */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void ppl_print_units(const struct ppl_run *r)
{
    const struct gguf_ppl *p = &r->total;
    double bits_error, byte_error, word_error;
    const double bits = gguf_ppl_bits_per_unit(p, GGUF_PPL_BYTE, &bits_error);
    const double byte = gguf_ppl_per_unit(p, GGUF_PPL_BYTE, &byte_error);
    const double word = gguf_ppl_per_unit(p, GGUF_PPL_WORD, &word_error);
    wrap_printf("bytes   %" PRIu64
                " scored: %.5f +/- %.5f bits per byte, PPL %.5f +/- %.5f\n",
                p->n_bytes, bits, bits_error, byte, byte_error);
    wrap_printf("words   %" PRIu64 " scored: PPL %.4f +/- %.4f per word\n",
                p->n_words, word, word_error);
}

void ppl_json_units(struct json *j, const struct gguf_ppl *p)
{
    double error;
    json_u64(j, "bytes_scored", p->n_bytes);
    json_u64(j, "words_scored", p->n_words);
    json_f64(j, "bits_per_byte",
             gguf_ppl_bits_per_unit(p, GGUF_PPL_BYTE, &error));
    json_f64(j, "bits_per_byte_error", error);
    json_f64(j, "byte_ppl", gguf_ppl_per_unit(p, GGUF_PPL_BYTE, &error));
    json_f64(j, "byte_ppl_error", error);
    json_f64(j, "word_ppl", gguf_ppl_per_unit(p, GGUF_PPL_WORD, &error));
    json_f64(j, "word_ppl_error", error);
}

/* ---- Hugging Face's guide ---- */

static bool begins_text(const struct ppl_run *r, size_t chunk)
{
    for (size_t i = 0; i < r->e.n_texts; i++)
        if (r->e.texts[i].first_chunk == chunk)
            return true;
    return false;
}

/* Compute the figures of the program in "Perplexity of fixed-length models"
 * (Hugging Face Transformers; checked against that page, commit 052b1dc).
 *
 * windows     Of its earlier versions: mean over windows of each window's mean.
 * weighted    Of its later versions: windows are weighted by their number of
 *             scored tokens, but windows that overlap the one before by one
 *             less. The program subtracts one for the first token of a window,
 *             which nothing predicts; in these windows that token is not scored
 *             anyway. */
static void compute_hf_figures(const struct ppl_run *r, double *windows,
                               double *weighted)
{
    double sum = 0, sum_weighted = 0, n = 0;
    for (size_t i = 0; i < r->n_done; i++) {
        const double tokens = (double)r->sums[i].n;
        const double mean = r->sums[i].sum / tokens;
        const bool less = !begins_text(r, r->e.first_chunk + i) &&
                          r->o->stride < r->o->ev.n_ctx;
        const double weight = tokens - (less ? 1 : 0);
        sum += mean;
        sum_weighted += weight * mean;
        n += weight;
    }
    *windows = exp(sum / (double)r->n_done);
    *weighted = exp(sum_weighted / n);
}

void ppl_print_hf_figures(const struct ppl_run *r)
{
    double windows, weighted;
    if (!r->o->hf)
        return;
    compute_hf_figures(r, &windows, &weighted);
    wrap_printf(
        "page    PPL %.4f as its program weights windows, %.4f as their "
        "mean\n",
        weighted, windows);
}

void ppl_json_windows(struct json *j, const struct ppl_run *r)
{
    double windows, weighted;
    json_open(j, "chunk_tokens", '(');
    for (size_t i = 0; i < r->n_done; i++)
        json_u64(j, NULL, r->sums[i].n);
    json_close(j);
    if (!r->o->hf)
        return;
    compute_hf_figures(r, &windows, &weighted);
    json_f64(j, "page_ppl", weighted);
    json_f64(j, "page_ppl_windows", windows);
}
