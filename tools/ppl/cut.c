/* SPDX-License-Identifier: MIT */
/* cut.c - how a text is cut, and figures that depend on it
 *
 * A way to cut is a row: its name in documents, what it says of itself.
 */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    bool last; /* each chunk scores as many, its last ones */
} cuts[] = {
    [GGUF_SCAN_CHUNKS] = { "chunks", true },
    [GGUF_SCAN_SLIDING] = { "sliding", false },
    [GGUF_SCAN_STRIDED] = { "strided", true },
};

static enum gguf_scan_cut cut_of(const struct ppl_options *o)
{
    return !o->stride  ? GGUF_SCAN_CHUNKS
           : o->compat ? GGUF_SCAN_STRIDED
                       : GGUF_SCAN_SLIDING;
}

const char *ppl_cut_name(const struct ppl_options *o)
{
    return cuts[cut_of(o)].name;
}

struct gguf_scan_params ppl_scan_params(const struct ppl_options *o)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = o->n_ctx;
    p.cut = cut_of(o);
    p.stride = o->stride;
    p.no_bos = o->hf || p.cut == GGUF_SCAN_STRIDED;
    return p;
}

struct gguf_scan_params ppl_run_params(const struct ppl_run *r, size_t first,
                                       size_t n)
{
    struct gguf_scan_params p = ppl_scan_params(r->o);
    p.first_chunk = first;
    p.max_chunks = n;
    p.text_end = r->several ? r->text_end : NULL;
    p.n_texts = r->n_texts;
    return p;
}

void ppl_print_cut(const struct ppl_run *r)
{
    const struct ppl_options *o = r->o;
    wrap_printf("%s %zu", o->stride ? "windows" : "chunks ", r->n_chunks);
    if (r->first_chunk)
        wrap_printf(" from %zu on", r->first_chunk);
    wrap_printf(" of %" PRIu32 " tokens, ", o->n_ctx);
    if (o->stride)
        wrap_printf("a stride of %" PRIu32 ", ", o->stride);
    wrap_printf("%" PRIu32 " together, ", r->n_seq);
    if (cuts[cut_of(o)].last)
        wrap_printf("the last %" PRIu64 " of each scored%s", r->n_scored_chunk,
                    o->stride ? " (compat)" : "");
    else
        wrap_printf("each token%s scored once",
                    o->stride < o->n_ctx ? "" : " but the first of each");
    wrap_printf("%s\n", r->add_bos ? ", BOS first" : "");
}

void ppl_json_cut(struct json *j, const struct ppl_options *o)
{
    json_u64(j, "stride", o->stride);
    json_bool(j, "hf", o->hf);
}

/* ---- bytes and words ---- */

void ppl_print_units(const struct ppl_run *r)
{
    const struct gguf_ppl *p = &r->total;
    double bits_error, byte_error, word_error;
    const double bits = gguf_ppl_bits(p, GGUF_PPL_BYTE, &bits_error);
    const double byte = gguf_ppl_per(p, GGUF_PPL_BYTE, &byte_error);
    const double word = gguf_ppl_per(p, GGUF_PPL_WORD, &word_error);
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
    json_f64(j, "bits_per_byte", gguf_ppl_bits(p, GGUF_PPL_BYTE, &error));
    json_f64(j, "bits_per_byte_error", error);
    json_f64(j, "byte_ppl", gguf_ppl_per(p, GGUF_PPL_BYTE, &error));
    json_f64(j, "byte_ppl_error", error);
    json_f64(j, "word_ppl", gguf_ppl_per(p, GGUF_PPL_WORD, &error));
    json_f64(j, "word_ppl_error", error);
}

/* ---- the usual program in Python ---- */

static bool begins_text(const struct ppl_run *r, size_t chunk)
{
    for (size_t i = 0; i < r->n_texts; i++)
        if (r->texts[i].first_chunk == chunk)
            return true;
    return false;
}

/* What it prints (Hugging Face, "Perplexity of fixed-length models"; checked
 * against the page of transformers, commit 052b1dc). Earlier versions: the mean
 * over windows of each window's mean. Later ones weight windows by their scored
 * tokens, but those that overlap the one before by one token less: the program
 * takes off one for the first token of a window, which nothing predicts, but
 * theirs are not among the scored ones anyway. */
static void as_page(const struct ppl_run *r, double *windows, double *weighted)
{
    double sum = 0, sum_weighted = 0, n = 0;
    for (size_t i = 0; i < r->n_done; i++) {
        const double tokens = (double)r->sums[i].n;
        const double mean = r->sums[i].sum / tokens;
        const bool less =
            !begins_text(r, r->first_chunk + i) && r->o->stride < r->o->n_ctx;
        const double weight = tokens - (less ? 1 : 0);
        sum += mean;
        sum_weighted += weight * mean;
        n += weight;
    }
    *windows = exp(sum / (double)r->n_done);
    *weighted = exp(sum_weighted / n);
}

void ppl_print_page(const struct ppl_run *r)
{
    double windows, weighted;
    if (!r->o->hf)
        return;
    as_page(r, &windows, &weighted);
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
    as_page(r, &windows, &weighted);
    json_f64(j, "page_ppl", weighted);
    json_f64(j, "page_ppl_windows", windows);
}
