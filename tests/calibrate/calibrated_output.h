/* SPDX-License-Identifier: MIT */
/* calibrated_output.h - quantize a model in memory, with a calibration */
#ifndef TESTS_CALIBRATE_CALIBRATED_OUTPUT_H
#define TESTS_CALIBRATE_CALIBRATED_OUTPUT_H

#include "base/compiler.h"
#include "gguf/calibrate.h"
#include "gguf/model.h"
#include "tests/calibrate/quantize_through.h"
#include "tests/failalloc.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/lora.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

/* SOME_TOKENS: for tests of many models */
enum { N_TOKENS = 640, SOME_TOKENS = 320, N_CTX = 64 };

/* A quantization with a calibration. */
struct setting {
    const char *type, *out; /* recipe, path */
    unsigned n_threads, effort;
    uint64_t max_memory;
    const char *spill;
    size_t n_tokens;
    uint32_t n_ctx;
    const size_t *text_end; /* ends of texts */
    size_t n_texts, max_tokens;
    const struct gguf_imatrix *imatrix;
    const struct gguf_quant_lora *lora;
    const struct gguf_allocator *allocator;
    bool plain, resume, keep_nonfinite;
    uint64_t stop_at; /* report of progress at which it is cancelled */

    struct gguf_calibrate_result result;
    uint64_t n_calls, last;
    bool bad_progress;
    size_t n_tensors, n_new, n_worse;
    bool has_embedding; /* the table of embeddings is new */
    char note[128];
    char bad[64]; /* result.bad, which belongs to the job */
};

/* A model in memory, and the tokens of its text. */
struct original {
    struct run r;
    void *data;
    size_t size;
    gguf_token token[N_TOKENS];
};

static const struct original *current;
static char path_a[256], path_b[256]; /* outputs */

static bool open_original(struct original *o, const struct skeleton *m)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    uint64_t x = 88172645463325252u;
    p.n_ctx = N_CTX;
    o->data = gen_file(&m->g, GGUF_DTYPE_F32, &o->size);
    if (!run_open(&o->r, o->data, o->size, 1, &p))
        return false;
    for (size_t i = 0; i < N_TOKENS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        o->token[i] = (gguf_token)(x % gguf_model_info(o->r.model)->n_vocab);
    }
    return true;
}

static void close_original(struct original *o)
{
    run_close(&o->r);
    free(o->data);
}

static bool see_progress(void *user, uint64_t done, uint64_t total)
{
    struct setting *s = user;
    s->bad_progress |= done < s->last || done > total;
    s->last = done;
    return ++s->n_calls == s->stop_at;
}

static bool see_tensor(void *user, const struct gguf_calibrate_tensor *t)
{
    struct setting *s = user;
    s->n_tensors++;
    s->n_new += t->use == GGUF_CALIBRATE_FEEDBACK;
    if (!strcmp(t->name, "token_embd.weight"))
        s->has_embedding = t->use == GGUF_CALIBRATE_FEEDBACK;
    s->n_worse += t->error_after > t->error_before;
    if (t->use == GGUF_CALIBRATE_PLAIN && t->note)
        snprintf(s->note, sizeof s->note, "%s", t->note);
    return false;
}

static enum gguf_status calibrate_output(void *user, size_t job,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    struct setting *s = user;
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    (void)job;
    s->result = (struct gguf_calibrate_result)GGUF_CALIBRATE_RESULT_INIT;
    p.pool = current->r.pool;
    p.tokens = current->token;
    p.n_tokens = s->n_tokens;
    p.n_ctx = s->n_ctx ? s->n_ctx : N_CTX;
    p.effort = s->effort;
    p.max_memory = s->max_memory;
    p.spill_path = s->spill;
    p.allocator = s->allocator;
    p.text_end = s->text_end;
    p.n_texts = s->n_texts;
    p.max_tokens = s->max_tokens;
    p.progress = (struct gguf_progress_callback){ see_progress, s };
    p.on_tensor = (struct gguf_calibrate_tensor_callback){ see_tensor, s };
    if (s->n_threads == 0)
        p.pool = NULL;
    const enum gguf_status st =
        gguf_calibrate_run(h, current->r.model, &p, &s->result, err);
    snprintf(s->bad, sizeof s->bad, "%s", s->result.bad ? s->result.bad : "");
    return st;
}

static enum gguf_status quantize_model(const struct original *o,
                                       struct setting *s,
                                       struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_improve_callback improve = { calibrate_output, s };
    current = o;
    p.imatrix = s->imatrix;
    p.loras = s->lora;
    p.n_loras = s->lora ? 1 : 0;
    if (s->keep_nonfinite)
        p.nonfinite = GGUF_NONFINITE_KEEP;
    if (s->plain)
        improve.fn = NULL;
    return quantize_through(o->r.file, s->type, s->out, p, s->resume, improve,
                            err);
}

#endif
