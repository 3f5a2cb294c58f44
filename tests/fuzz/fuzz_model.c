/* SPDX-License-Identifier: MIT */
/* fuzz_model.c - a set of shards as a model: opened, evaluated
 *
 * The input has the form of shards_open(). A set and the file that it merges
 * to are one model: both open, or both are refused for the same reason, and
 * they compute the same bits. A model without errors and with known types
 * opens.
 */
#include "config.h"
#include "gguf/cpu.h"
#include "gguf/recognize.h"
#include "gguf/session.h"
#include "gguf/verify.h"
#include "gguf/writer.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { N_TOKENS = 3, MAX_VOCAB = 1000, MAX_EMBD = 256, MAX_LAYERS = 8 };

static void check_warning(void *user, const char *message)
{
    (void)user;
    for (const char *p = message; *p; p++)
        MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* Count findings that may keep a model from opening: errors, and unusual
 * types. */
static bool count_faults(void *user, const struct gguf_finding *f)
{
    unsigned *n = user;
    MUST(f->message[0]);
    *n += f->severity == GGUF_SEVERITY_ERROR || strstr(f->code, "-type");
    return 0;
}

/* Logits after a few tokens: *n numbers; NULL: refused. */
static float *evaluate_model(const struct gguf_model *m, size_t *n)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_session *s = NULL;
    struct gguf_cpu_params cpu = GGUF_CPU_PARAMS_INIT;
    struct gguf_model_info info;
    struct gguf_error err;
    gguf_token id[N_TOKENS];
    const float *logits;
    float *out = NULL;
    info = *gguf_model_info(m);
    if (info.n_vocab > MAX_VOCAB || info.n_embd > MAX_EMBD ||
        info.n_layer > MAX_LAYERS)
        return NULL; /* would take long */
    for (unsigned i = 0; i < N_TOKENS; i++)
        id[i] = (gguf_token)(i % info.n_vocab);
    struct gguf_batch batch = { .struct_size = sizeof batch,
                                .n = N_TOKENS,
                                .token = id };
    p.n_ctx = 2 * N_TOKENS;
    cpu.n_threads = 1;
    MUST(gguf_cpu_backend_create(&p.backend, &cpu, NULL) == GGUF_OK);
    gguf_error_clear(&err);
    enum gguf_status st = gguf_session_create(&s, m, &p, &err);
    if (st == GGUF_OK)
        st = gguf_session_decode(s, &batch, &err);
    if (st == GGUF_OK)
        st = gguf_session_logits(s, 0, 1, &logits, &err);
    MUST(st == GGUF_OK || (err.status == st && err.message[0]));
    if (st == GGUF_OK) {
        *n = info.n_vocab;
        out = malloc(*n * sizeof *out);
        MUST(out);
        memcpy(out, logits, *n * sizeof *out);
    }
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
    return out;
}

/* Compare two models that must be equal. */
static void compare_models(const struct gguf_model *a,
                           const struct gguf_model *b)
{
    struct gguf_model_info x, y;
    size_t n = 0, m = 0;
    x = *gguf_model_info(a);
    y = *gguf_model_info(b);
    MUST(x.n_layer == y.n_layer && x.n_embd == y.n_embd &&
         x.n_vocab == y.n_vocab && x.n_params == y.n_params &&
         x.weight_size == y.weight_size);
    MUST(gguf_model_check_finite(a, NULL, NULL) ==
         gguf_model_check_finite(b, NULL, NULL));
    float *p = evaluate_model(a, &n), *q = evaluate_model(b, &m);
    MUST(!p == !q && n == m && (!p || !memcmp(p, q, n * sizeof *p)));
    free(p);
    free(q);
}

/* Merge the set into one file; NULL: it is not split, or its alignment cannot
 * be written. */
static struct gguf_file *merge_set(const struct gguf_file *s)
{
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *f;
    const char *path = scratch_path("one.gguf");
    job.no_sync = 1;
    if (!gguf_file_is_split(s) ||
        gguf_file_alignment(gguf_file_shard(s, 0)) > GGUF_WRITER_MAX_ALIGNMENT)
        return NULL;
    MUST(gguf_split_merge(s, path, &job, NULL) == GGUF_OK);
    MUST(gguf_file_open(&f, path, NULL, NULL) == GGUF_OK);
    return f;
}

/* Is the set a model? Adapters and the like are verified as such; a file
 * without an architecture in part only. */
static bool is_model(const struct gguf_file *s)
{
    const struct gguf_file *f = gguf_file_shard(s, 0);
    return gguf_file_kv_find(f, "general.architecture") &&
           !gguf_file_kv_find(f, "general.type");
}

static bool take_part(void *user, const struct gguf_inferred *p)
{
    (void)user;
    MUST(p->name && p->label && (p->text ? !p->value : p->value > 0));
    return false;
}

static bool take_difference(void *user, const struct gguf_arch_difference *d)
{
    unsigned *n_stops = user;
    MUST(d->message[0]);
    *n_stops += d->prevents;
    return false;
}

/* A file of an unknown architecture: if a known one fits, evaluation as that
 * one fails for rules of the architecture only. */
static void read_unknown(const struct gguf_file *s)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    struct gguf_model *model;
    struct gguf_error err;
    const char *arch[2];
    size_t n, n_differences;
    unsigned n_stops = 0;
    MUST(gguf_file_infer_parts(
             s, (struct gguf_inferred_callback){ take_part, NULL }, NULL) ==
         GGUF_OK);
    if (gguf_arch_find_nearest(s, arch, 2, &n, &n_differences, NULL) !=
        GGUF_OK)
        return;
    MUST(n > 0);
    MUST(gguf_arch_compare(s, arch[0],
                           (struct gguf_arch_difference_callback){
                               take_difference, &n_stops },
                           NULL) == GGUF_OK);
    MUST(n_differences || !n_stops);
    p.as = arch[0];
    const enum gguf_status st = gguf_model_create(&model, s, &p, &err);
    MUST(st == GGUF_OK || err.message[0]);
    gguf_model_destroy(model);
}

static void read_model(const struct gguf_file *s)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    struct gguf_model *whole = NULL, *model;
    struct gguf_file *f = merge_set(s);
    struct gguf_error err, why;
    unsigned n_faults = 0;
    p.warn.fn = check_warning;
    gguf_error_clear(&err);
    enum gguf_status st = gguf_model_create(&model, s, &p, &err);
    MUST(st == GGUF_OK ? model != NULL
                       : !model && err.status == st && err.message[0]);
    MUST(gguf_file_verify(
             s, NULL,
             (struct gguf_finding_callback){ count_faults, &n_faults },
             NULL) == GGUF_OK);
    MUST(st == GGUF_OK || n_faults || st == GGUF_E_ARCH ||
         st == GGUF_E_UNSUPPORTED || !is_model(s));
    if (f) {
        MUST(gguf_model_create(&whole, f, &p, &why) == st);
        if (st == GGUF_OK)
            compare_models(model, whole);
        gguf_model_destroy(whole);
    }
    gguf_model_destroy(model);
    gguf_file_close(f);
    if (st == GGUF_E_ARCH)
        read_unknown(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes how = { data, size };
    struct gguf_file *s = shards_open(&how);
    if (s)
        read_model(s);
    gguf_file_close(s);
    scratch_clean();
    return 0;
}

/* ---- seeds ---- */

/* Seeds: a file in shards of max_tensors tensors. */
static void seed_shards(const struct fix *file, const char *how,
                        uint64_t max_tensors)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *s;
    struct gguf_split_plan *plan;
    char name[64];
    size_t size;
    p.max_tensors = max_tensors;
    job.no_sync = 1;
    scratch_write(scratch_path("whole.gguf"), file->data, file->size);
    MUST(gguf_file_open(&s, scratch_path("whole.gguf"), NULL, NULL) ==
             GGUF_OK &&
         gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_OK &&
         gguf_split_plan_write(plan, scratch_path("s"), &job, NULL) ==
             GGUF_OK);
    size_t n = gguf_split_plan_n_shards(plan);
    struct fix *seed = new_seed();
    fix_bytes(seed, how, strlen(how));
    for (size_t i = 0; i < n; i++) {
        MUST(gguf_split_name_format(name, sizeof name, "s", (unsigned)i + 1,
                                    (unsigned)n, NULL) == GGUF_OK);
        uint8_t *bytes = scratch_read(scratch_path(name), &size);
        fix_bytes(seed, bytes, size);
        free(bytes);
    }
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    scratch_clean();
}

void fuzz_make_seeds(void)
{
    for (size_t i = 0; fix_models[i].name; i++) {
        struct fix f;
        fix_init(&f);
        fix_models[i].make(&f);
        if (strcmp(fix_models[i].name, "model-shard") !=
            0) /* is one already */
            seed_shards(&f, i % 2 ? "0 " : "p ", i % 3 ? 9 : 20);
        fix_fini(&f);
    }
}
