/* SPDX-License-Identifier: MIT */
/* calibration_text.c - the texts of --calibrate: read, tokenize, choose */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/msg.h"
#include "tools/common/nearest_arch.h"
#include "tools/common/remote.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"

#include <gguf/digest.h>
#include <gguf/text.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Largest text in bytes, unpacked: that of gguf-imatrix. */
#define MAX_TEXT (UINT64_C(1) << 30)

/* ---- the model ---- */

static void warn_model(void *user, const char *message)
{
    const struct options *o = user;
    if (!o->quiet)
        msg_warn(o->in, "%s", message);
}

static bool report_model(const struct calibration *c,
                         const struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(c->file, "general.architecture");
    struct gguf_str name;
    char esc[128];
    if (err->status != GGUF_E_ARCH ||
        gguf_kv_get_str(kv, &name, NULL) != GGUF_OK)
        return msg_fail(c->o->in, err);
    gguf_text_escape(esc, sizeof esc, name);
    msg_error(c->o->in,
              "architecture '%s' cannot be evaluated, which --calibrate does; "
              "leave the option out",
              esc);
    if (!c->o->quiet)
        nearest_arch_print(c->file, c->o->in);
    return false;
}

static bool open_model(struct calibration *c)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    if (remote_is_url(c->o->in))
        return msg_error(c->o->in, "--calibrate needs all weights several "
                                   "times: download the file first");
    fp.limits = &c->o->limits;
    mp.warn = (struct gguf_warn_callback){ warn_model, c->o };
    mp.as = c->o->calib_as;
    if (gguf_file_open(&c->file, c->o->in, &fp, &err) != GGUF_OK)
        return msg_fail(c->o->in, &err);
    if (gguf_model_create(&c->model, c->file, &mp, &err) != GGUF_OK)
        return report_model(c, &err);
    const struct gguf_model_info *info = gguf_model_info(c->model);
    if (info->encodes_first)
        return msg_error(c->o->in,
                         "the model encodes one text and decodes another: "
                         "--calibrate cannot evaluate that; leave it out");
    if (info->n_ctx_train >= CALIBRATION_LEAST && info->n_ctx_train < c->n_ctx)
        c->n_ctx = info->n_ctx_train;
    return true;
}

/* ---- the texts ---- */

/* Append the tokens of text i. */
static bool read_text(struct calibration *c, size_t i)
{
    struct calibration_text *t = &c->texts[i];
    struct gguf_error err;
    char *text;
    size_t size;
    t->begin = t->end = c->tokens.n;
    if (!textfile_read(t->path, MAX_TEXT, &text, &size))
        return false;
    bool good = textfile_check(t->path, text, size);
    if (good && !c->o->quiet)
        textfile_warn(t->path, text, size);
    if (good && !size)
        good = msg_error(t->path, "the text is empty");
    /* like llama.cpp, drop the newline that editors add at the end */
    if (good && text[size - 1] == '\n')
        size--;
    if (good)
        good = gguf_vocab_tokenize(gguf_model_vocab(c->model), text, size,
                                   GGUF_TOKENIZE_ADD_SPECIAL, &c->tokens,
                                   &err) == GGUF_OK ||
               msg_fail(t->path, &err);
    free(text);
    t->end = c->tokens.n;
    t->n_tokens = t->end - t->begin;
    return good;
}

/* ---- the choice ---- */

static size_t chunks_of(const struct calibration *c,
                        const struct calibration_text *t)
{
    return t->n_tokens / c->n_ctx;
}

/* Set n_used of each text, in chunks. */
static void share_chunks(struct calibration *c, uint64_t n_chunks)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < c->n_texts && n_chunks; i++) {
            struct calibration_text *t = &c->texts[i];
            if (t->n_used < chunks_of(c, t)) {
                t->n_used++;
                n_chunks--;
                more = true;
            }
        }
    }
}

void calibration_choose_tokens(struct calibration *c, uint64_t n_chunks)
{
    const size_t n_ctx = c->n_ctx;
    size_t n = 0;
    bool some = false;
    for (size_t i = 0; i < c->n_texts; i++)
        some |= chunks_of(c, &c->texts[i]) > 0;
    if (!some) {
        const uint64_t most = n_chunks * n_ctx;
        c->tokens.n = c->tokens.n < most ? c->tokens.n : (size_t)most;
        for (size_t i = 0; i < c->n_texts; i++) {
            struct calibration_text *t = &c->texts[i];
            const size_t end = t->end < c->tokens.n ? t->end : c->tokens.n;
            t->n_used = end > t->begin ? end - t->begin : 0;
        }
        return;
    }
    share_chunks(c, n_chunks);
    for (size_t i = 0; i < c->n_texts; i++) {
        struct calibration_text *t = &c->texts[i];
        for (size_t k = 0; k < t->n_used; k++, n += n_ctx)
            memmove(c->tokens.id + n,
                    c->tokens.id + t->begin +
                        k * chunks_of(c, t) / t->n_used * n_ctx,
                    n_ctx * sizeof *c->tokens.id);
        t->n_used *= n_ctx;
    }
    c->tokens.n = n;
}

/* Set o->improve_digest to a digest of the tokens, their chunks, the
 * effort and the steps. */
static bool digest_tokens(struct calibration *c)
{
    const size_t n = c->tokens.n;
    struct gguf_digest d;
    struct gguf_error err;
    uint8_t *b = msg_must(malloc(4 * (n + 3)));
    for (size_t i = 0; i < n + 3; i++) {
        const uint32_t v = i == 0   ? c->n_ctx
                           : i == 1 ? c->effort
                           : i == 2 ? c->o->tune_steps
                                    : (uint32_t)c->tokens.id[i - 3];
        for (size_t k = 0; k < 4; k++)
            b[4 * i + k] = (uint8_t)(v >> (8 * k));
    }
    const enum gguf_status st =
        gguf_digest_bytes(&d, GGUF_DIGEST_SHA256, b, 4 * (n + 3), &err);
    free(b);
    if (st != GGUF_OK)
        return msg_fail(NULL, &err);
    memcpy(c->o->improve_digest, d.bytes, sizeof c->o->improve_digest);
    return true;
}

static void warn_short_texts(const struct calibration *c)
{
    for (size_t i = 0; i < c->n_texts && !c->o->quiet; i++)
        if (!c->texts[i].n_used)
            msg_warn(c->texts[i].path,
                     "%zu token%s, fewer than a chunk of %" PRIu32
                     ": the text is not used",
                     c->texts[i].n_tokens, text_s(c->texts[i].n_tokens),
                     c->n_ctx);
}

static int compare_tokens(const void *a, const void *b)
{
    const gguf_token x = *(const gguf_token *)a, y = *(const gguf_token *)b;
    return x < y ? -1 : x > y;
}

static size_t count_different(const struct calibration *c)
{
    const size_t n = c->tokens.n;
    size_t n_different = 0;
    gguf_token *id = msg_must(malloc((n + 1) * sizeof *id));
    if (n)
        memcpy(id, c->tokens.id, n * sizeof *id);
    qsort(id, n, sizeof *id, compare_tokens);
    for (size_t i = 0; i < n; i++)
        n_different += !i || id[i] != id[i - 1];
    free(id);
    return n_different;
}

/* Set c->nothing if the texts cannot stand for others: held-out chunks of the
 * same few words would not show it. */
static void judge_texts(struct calibration *c)
{
    const size_t n = c->tokens.n, n_different = count_different(c);
    c->nothing =
        n < CALIBRATION_LEAST || n_different < CALIBRATION_LEAST_DIFFERENT;
    if (n < CALIBRATION_LEAST)
        msg_warn(c->texts[0].path,
                 "%zu token%s, expected at least %d: nothing is calibrated", n,
                 text_s(n), CALIBRATION_LEAST);
    else if (c->nothing)
        msg_warn(c->texts[0].path,
                 "%zu different token%s, expected at least %d: nothing is "
                 "calibrated",
                 n_different, text_s(n_different),
                 CALIBRATION_LEAST_DIFFERENT);
}

static bool read_texts(struct calibration *c)
{
    for (size_t i = 0; i < c->n_texts; i++)
        if (!read_text(c, i))
            return false;
    const uint64_t n_chunks = c->n_wanted / c->n_ctx;
    if (n_chunks < c->n_texts)
        return msg_error(NULL,
                         "--calib-tokens: %" PRIu64 " tokens are %" PRIu64
                         " chunk%s of %" PRIu32
                         ", expected at least one for each of %zu texts",
                         c->n_wanted, n_chunks, text_s((size_t)n_chunks),
                         c->n_ctx, c->n_texts);
    calibration_choose_tokens(c, n_chunks);
    warn_short_texts(c);
    judge_texts(c);
    return digest_tokens(c);
}

bool calibration_open(struct options *o)
{
    const struct opt_list *l = &o->calib_texts;
    if (!l->n)
        return true;
    struct calibration *c = msg_must(calloc(1, sizeof *c));
    o->calibration = c;
    *c = (struct calibration){ .o = o,
                               .n_ctx = CALIBRATION_CTX,
                               .n_wanted = o->calib_tokens,
                               .effort = o->effort,
                               .n_texts = l->n,
                               .tokens = GGUF_TOKENS_INIT };
    c->texts = msg_must(calloc(l->n, sizeof *c->texts));
    for (size_t i = 0; i < l->n; i++)
        c->texts[i].path = l->arg[i];
    return open_model(c) && read_texts(c);
}

void calibration_close(struct options *o)
{
    struct calibration *c = o->calibration;
    if (!c)
        return;
    gguf_model_destroy(c->model);
    gguf_file_close(c->file);
    gguf_tokens_fini(&c->tokens);
    free(c->texts);
    free(c);
    o->calibration = NULL;
}

void calibration_record_inputs(const struct options *o, struct gguf_paths *p)
{
    for (size_t i = 0; i < o->calib_texts.n; i++)
        paths_read(p, o->calib_texts.arg[i], "--calibrate");
}
