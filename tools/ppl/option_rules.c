/* SPDX-License-Identifier: MIT */
/* option_rules.c - what options mean together, after each was read
 *
 * What one option takes, and which exclude each other, are rows of
 * options.c. Here are the values that follow from several, and texts with
 * a form of their own; what is wrong ends the program as a wrong usage.
 */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/opt.h"
#include "tools/common/range.h"
#include "tools/common/ranks.h"

#include <inttypes.h>
#include <string.h>

/* --cache-type is of what has no type of its own. */
static void choose_cache_types(struct ppl_options *o)
{
    if (o->key_dtype == PPL_NOT_GIVEN)
        o->key_dtype = o->cache_dtype;
    if (o->value_dtype == PPL_NOT_GIVEN)
        o->value_dtype = o->cache_dtype;
}

/* Programs tell by its name what a file is. */
static void check_ending(const char *option, const char *path,
                         const char *ending)
{
    const size_t n = path ? strlen(path) : 0, k = strlen(ending);
    if (path && (n <= k || strcmp(path + n - k, ending) != 0))
        opt_usage("%s: '%s' does not end in %s", option, path, ending);
}

static void check_places(const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *eq = strrchr(l->arg[i], '=');
        if (!eq || eq == l->arg[i] || !eq[1])
            opt_usage("--override-tensor: '%s' is not PATTERN=BUFFER",
                      l->arg[i]);
    }
}

/* Of --control-vector-layer-range. */
static void parse_range(struct ppl_options *o)
{
    uint64_t first, last;
    char text[24];
    const char *range = o->control_range;
    const char *comma = range ? strchr(range, ',') : NULL;
    if (!range)
        return;
    if (comma && comma - range < (ptrdiff_t)sizeof text) {
        memcpy(text, range, (size_t)(comma - range));
        text[comma - range] = '\0';
        if (opt_parse_u64(text, &first) && opt_parse_u64(comma + 1, &last) &&
            first >= 1 && first <= last && last <= UINT32_MAX) {
            o->control_first = (uint32_t)first;
            o->control_last = (uint32_t)last;
            return;
        }
    }
    opt_usage("--control-vector-layer-range: '%s' is not FIRST,LAST, two "
              "layers from 1 on",
              range);
}

/* What the models are compared with, if with anything. */
static void choose_base(struct ppl_options *o)
{
    if (o->merge_parts)
        return;
    o->model = o->models.arg[0];
    if (o->kl_base)
        *(o->kl ? &o->base : &o->save_base) = o->kl_base;
    if (o->mpi && o->save_base)
        opt_usage("'--mpi' and '--kl-divergence-base' without --kl-divergence "
                  "exclude each other");
    if (o->layers &&
        !o->base) /* a string of its own: by it the two are told apart */
        o->base = o->self = msg_must(strdup(o->model));
    o->base_is_saved = o->base && gguf_baseline_is(o->base);
    if ((o->layers || o->bisect) && (o->base_is_saved || o->models.n > 1))
        opt_usage("--%s compares one model with another, not %s",
                  o->layers ? "layers" : "bisect",
                  o->base_is_saved ? "with logits" : "several");
    if (o->models.n > 1 && !o->base)
        opt_usage("%zu models: --base says what they are compared with",
                  o->models.n);
    if (!o->text_args.n && !o->tokens && !o->base_is_saved &&
        !ppl_only_prints(o))
        opt_usage("--file is missing: only a file of logits has its text");
    if (!o->n_ctx && !o->base_is_saved)
        o->n_ctx = 512;
}

/* A mask has a number for each token of the context and each that is computed
 * at once: of long contexts fewer are, so that it stays below 32 MiB. */
void ppl_choose_ubatch(struct ppl_options *o)
{
    enum { MOST = 512, LEAST = 64 };
    const uint32_t n = o->n_ctx ? (UINT32_C(32) << 20) / 4 / o->n_ctx : 0;
    if (!o->n_ubatch && o->n_ctx)
        o->n_ubatch = n > MOST ? MOST : n < LEAST ? LEAST : n / LEAST * LEAST;
}

/* How far windows are from each other, and how long. */
static void choose_stride(struct ppl_options *o)
{
    if (!o->stride && !o->hf)
        return;
    if (o->base_is_saved || o->save_base)
        opt_usage("%s: a file of logits is of chunks side by side",
                  o->hf ? "--hf" : "--ppl-stride");
    if (!o->stride)
        o->stride = o->n_ctx > 512 ? 512 : o->n_ctx / 2;
    uint32_t most = o->n_ctx;
    if (o->compat) {
        o->n_ctx = gguf_scan_strided_ctx(o->n_ctx, o->stride);
        most = o->n_ctx - 1;
    }
    if (o->stride > most)
        opt_usage("--ppl-stride %" PRIu32 " is more than windows of %" PRIu32
                  " tokens have: -c makes them longer",
                  o->stride, o->n_ctx);
}

/* Each rank reads the text. */
static void check_stdin(const struct ppl_options *o)
{
    for (size_t i = 0; o->mpi && i < o->text_args.n; i++)
        if (!strcmp(o->text_args.arg[i], "-"))
            opt_usage("--mpi: standard input is that of one rank, and each "
                      "reads the text: give a file");
}

void ppl_settle_options(struct ppl_options *o)
{
    check_stdin(o);
    choose_base(o);
    choose_stride(o);
    ppl_choose_ubatch(o);
    check_places(&o->places);
    check_ending("--plot", o->plot, ".svg");
    check_ending("--html", o->html, ".html");
    if (o->chunks && !range_parse(o->chunks, &o->first_chunk, &o->n_chunks))
        opt_usage("--chunks: '%s' is not a number of chunks, or A..B",
                  o->chunks);
    const char *comma = o->compare ? strchr(o->compare, ',') : NULL;
    if (o->compare &&
        (!comma || comma == o->compare || !comma[1] || strchr(comma + 1, ',')))
        opt_usage("--compare-backends: '%s' is not two names, A,B",
                  o->compare);
    if (o->compare && !o->n_chunks)
        o->n_chunks = 1;
    if (o->n_threads_batch)
        o->n_threads = o->n_threads_batch;
    if (!o->n_threads)
        o->n_threads = gguf_cpu_count();
    choose_cache_types(o);
    scaled_parse(&o->loras, "--lora", &o->lora_texts);
    scaled_parse(&o->controls, "--control-vector", &o->control_texts);
    parse_range(o);
}

void ppl_settle_rank(struct ppl_options *o)
{
    if (!ranks_is_helper()) /* others see it of rank 0 */
        return;
    o->quiet = o->no_digest = true;
    o->part = o->each = o->plot = o->html = NULL;
}
