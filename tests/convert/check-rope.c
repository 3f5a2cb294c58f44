/* SPDX-License-Identifier: MIT */
/* check-rope.c - RoPE scaling in config.json
 *
 * Each kind of rope_scaling of a small Llama, in both places that config.json
 * has for it. The frequencies of the file, divided by rope_freqs.weight, agree
 * with the definition in transformers (modeling_rope_utils.py).
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/stats.h"
#include "tests/convert/llama.h"
#include "tests/convert/roundtrip.h"
#include "tests/convert/notes.h"
#include "tests/ignore_status.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { PAIRS = 4 }; /* pairs of a head of 8 */

static char top[100], out[160];
static struct folder folder;
static struct gguf_error err;

/* Convert a folder with these members in config.json; NULL: refused. */
static struct gguf_file *convert_folder(const char *more)
{
    struct gguf_file *f = NULL;
    folder_llama(&folder, scratch_path(top, "llama"), more);
    folder_weights(&folder, "F32", 1);
    gguf_error_clear(&err);
    return folder_convert(folder.dir, out, NULL, &err) == GGUF_OK &&
                   gguf_file_open(&f, out, NULL, &err) == GGUF_OK
               ? f
               : NULL;
}

static double number_of(const struct gguf_file *f, const char *key)
{
    double x = NAN;
    const struct gguf_kv *kv = gguf_file_kv_find(f, key);
    if (kv && gguf_kv_get_float(kv, &x, NULL) != GGUF_OK) {
        uint64_t u;
        x = gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK ? (double)u : NAN;
    }
    return x;
}

static bool is_type(const struct gguf_file *f, const char *type)
{
    struct gguf_str s;
    const struct gguf_kv *kv = gguf_file_kv_find(f, "llama.rope.scaling.type");
    if (!kv || gguf_kv_get_str(kv, &s, NULL) != GGUF_OK)
        return !type;
    return type && s.size == strlen(type) && !memcmp(s.data, type, s.size);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* Read the numbers of a tensor. Returns n. */
static uint64_t numbers_of(const struct gguf_file *f, const char *name,
                           float x[PAIRS])
{
    struct gguf_rows *rows = NULL;
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    uint64_t n = 0;
    if (t && t->n_elements <= PAIRS &&
        gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
        gguf_rows_decode(rows, f, t->index, 0, t->n_elements, x, NULL) ==
            GGUF_OK)
        n = t->n_elements;
    gguf_rows_destroy(rows);
    return n;
}

/* llama3: low frequencies are divided by the factor, high ones are kept, and
 * those between get a mean. */
static double llama3(int i, double base, double factor, double low,
                     double high, double old)
{
    const double f = pow(base, -2.0 * i / (2 * PAIRS));
    const double wave = 2 * acos(-1) / f;
    if (wave < old / high)
        return f;
    if (wave > old / low)
        return f / factor;
    const double smooth = (old / wave - low) / (high - low);
    return (1 - smooth) * f / factor + smooth * f;
}

static void check_llama3(const char *more)
{
    float x[PAIRS] = { 0 };
    struct gguf_file *f = convert_folder(more);
    bool good = f && is_type(f, NULL) &&
                numbers_of(f, "rope_freqs.weight", x) == PAIRS;
    for (int i = 0; good && i < PAIRS; i++)
        good = is_near(pow(10000, -2.0 * i / (2 * PAIRS)) / (double)x[i],
                       llama3(i, 10000, 8, 1, 4, 1024));
    ok(good, "llama3: %s %s", more, err.message);
    ok(x[0] == 1 && x[2] > 1 && x[2] < 8 && x[3] == 8,
       "llama3: all three kinds of waves are met");
    gguf_file_close(f);
}

static void check_longrope(void)
{
    float x[PAIRS] = { 0 }, y[PAIRS] = { 0 };
    struct gguf_file *f = convert_folder(
        ",\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":"
        "\"longrope\",\"long_factor\":[1,1.5,2,4],\"short_factor\":[1,1,1,"
        "1.25]}");
    ok(f && is_type(f, "longrope") &&
           numbers_of(f, "rope_factors_long.weight", x) == PAIRS &&
           numbers_of(f, "rope_factors_short.weight", y) == PAIRS &&
           x[1] == 1.5f && x[3] == 4 && y[0] == 1 && y[3] == 1.25f &&
           number_of(f, "llama.rope.scaling.original_context_length") == 16,
       "longrope: both lists, and the length before: %s", err.message);
    /* sequences are four times as long: sqrt(1 + ln 4 / ln 16) */
    ok(f && is_near(number_of(f, "llama.rope.scaling.attn_factor"), sqrt(1.5)),
       "longrope: the magnitude");
    gguf_file_close(f);
}

static void check_yarn(const char *more)
{
    struct gguf_file *f = convert_folder(more);
    ok(f && is_type(f, "yarn") &&
           number_of(f, "llama.rope.scaling.factor") == 4 &&
           number_of(f, "llama.rope.scaling.original_context_length") == 16 &&
           number_of(f, "llama.rope.scaling.yarn_beta_fast") == 24 &&
           number_of(f, "llama.rope.scaling.yarn_beta_slow") == 2 &&
           is_near(number_of(f, "llama.rope.scaling.yarn_attn_factor"),
                   0.75) &&
           !gguf_file_tensor_find(f, "rope_freqs.weight"),
       "yarn: %s %s", more, err.message);
    gguf_file_close(f);
}

static void check_plain(const char *more, const char *type, double factor)
{
    struct gguf_file *f = convert_folder(more);
    const double x = f ? number_of(f, "llama.rope.scaling.factor") : 0;
    ok(f && is_type(f, type) && (isnan(factor) ? isnan(x) : x == factor) &&
           !gguf_file_tensor_find(f, "rope_freqs.weight"),
       "%s: %s", more, err.message);
    gguf_file_close(f);
}

static void check_refused(const char *more, enum gguf_status st,
                          const char *why)
{
    struct gguf_file *f = convert_folder(more);
    ok(!f && err.status == st && strstr(err.message, why), "refused: %s",
       err.message);
    gguf_file_close(f);
}

/* Check the key and the note (NULL: none) for contradictory RoPE parameters.
 * The rule is transformers 5.0's (convert_rope_params_to_dict,
 * standardize_rope_params). */
static void check_choice(const char *config, const char *key, double want,
                         const char *said)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c = NULL;
    static struct notes notes;
    double x = NAN;
    memset(&notes, 0, sizeof notes);
    p.note = (struct gguf_convert_note_callback){ notes_keep, &notes };
    folder_text(&folder, "config.json", config);
    gguf_error_clear(&err);
    ok(gguf_convert_open(&c, folder.dir, &p, &err) == GGUF_OK, "%s %s", config,
       err.message);
    const struct gguf_kv *kv =
        c ? gguf_meta_find(gguf_convert_meta(c), key) : NULL;
    if (kv)
        ignore_status(gguf_kv_get_float(kv, &x, NULL));
    ok(isnan(want) ? !kv : x == want, "%s is %g: %g", key, want, x);
    ok(said ? strstr(notes.text, said) != NULL : !*notes.text, "said: %s",
       notes.text);
    gguf_convert_close(c);
}

/* SIZES without a base. */
#define SMALL                                                                 \
    "\"intermediate_size\":48,\"num_hidden_layers\":2,"                       \
    "\"num_key_value_heads\":2,\"hidden_size\":32,\"num_attention_heads\":4," \
    "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6"
#define LLAMA(MORE) "{\"architectures\":[\"LlamaForCausalLM\"]," SMALL MORE "}"
#define INNER(INSIDE, OUTSIDE)                                                \
    "{\"architectures\":[\"LlavaForConditionalGeneration\"],"                 \
    "\"text_config\":{\"architectures\":[\"LlamaForCausalLM\"],"              \
    "\"model_type\":\"llama\"," SMALL INSIDE "}" OUTSIDE "}"
#define BASE   "llama.rope.freq_base"
#define FACTOR "llama.rope.scaling.factor"

static void check_choices(void)
{
    static const struct {
        const char *config, *key;
        double want;
        const char *said;
    } cases[] = {
        /* one base in an object, another one beside it */
        { LLAMA(
              ",\"rope_theta\":1e4,\"rope_parameters\":{\"rope_theta\":5e4}"),
          BASE, 5e4, "50000 is taken" },
        { LLAMA(
              ",\"rope_theta\":5e4,\"rope_parameters\":{\"rope_theta\":5e4}"),
          BASE, 5e4, NULL },
        { LLAMA(",\"rope_theta\":1e4,\"rope_scaling\":{\"rope_theta\":5e4,"
                "\"rope_type\":\"default\"}"),
          BASE, 5e4, "50000 is taken" },
        { LLAMA(",\"rope_theta\":\"5e4\""), BASE, 5e4, "is the text '5e4'" },
        /* rope_scaling beside rope_parameters */
        { LLAMA(",\"rope_theta\":2e4,\"rope_scaling\":{\"type\":\"linear\","
                "\"factor\":2},\"rope_parameters\":{\"rope_theta\":5e4}"),
          BASE, 2e4, "rope_scaling is taken" },
        { LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
                "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8}"),
          FACTOR, 2, "rope_scaling is taken" },
        { LLAMA(",\"rope_scaling\":{},\"rope_parameters\":{\"rope_type\":"
                "\"linear\",\"factor\":8}"),
          FACTOR, 8, NULL },
        { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},"
                "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8}"),
          FACTOR, 8, NULL },
        { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2},"
                "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5e4,"
                "\"rope_type\":\"linear\",\"factor\":8},\"sliding_attention\":"
                "{\"rope_type\":\"default\"}}"),
          FACTOR, 2, "rope_scaling is taken" },
        /* two names of the type, or no name */
        { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\",\"type\":"
                "\"yarn\",\"factor\":2}"),
          FACTOR, 2, "rope_type is taken" },
        { LLAMA(",\"rope_scaling\":{\"factor\":2}"), FACTOR, NAN,
          "factor has no rope_type" },
        { LLAMA(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"),
          FACTOR, NAN, "cannot express: ignored" },
        /* numbers in quotes */
        { LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"4.0\"}"),
          FACTOR, 4, "factor is the text '4.0'" },
        /* all frequencies are divided by the factor */
        { LLAMA(",\"rope_parameters\":{\"rope_type\":\"proportional\","
                "\"factor\":2}"),
          FACTOR, 2, NULL },
        /* a language model inside another model */
        { INNER(",\"rope_theta\":5e4",
                ",\"rope_parameters\":{\"rope_theta\":1e4}"),
          BASE, 5e4, "50000 is taken" },
        { INNER(",\"rope_parameters\":{\"rope_theta\":5e4}",
                ",\"rope_theta\":1e4"),
          BASE, 5e4, "50000 is taken" },
    };
    struct gguf_file *f = convert_folder("");
    gguf_file_close(f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_choice(cases[i].config, cases[i].key, cases[i].want,
                     cases[i].said);
}

#define LLAMA3                                                                \
    "\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"        \
    "\"original_max_position_embeddings\":1024}"
#define YARN                                                                   \
    "\"factor\":4.0,\"original_max_position_embeddings\":16,\"beta_fast\":24," \
    "\"beta_slow\":2,\"attention_factor\":0.75}"

int main(void)
{
    snprintf(top, sizeof top, "check-rope.%d.tmp", (int)getpid());
    snprintf(out, sizeof out, "%s/out.gguf", top);
    folder_begin(&folder, top);
    check_llama3(",\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3);
    check_llama3(",\"rope_parameters\":{\"rope_theta\":10000.0,"
                 "\"rope_type\":\"llama3\"," LLAMA3);
    check_longrope();
    check_yarn(",\"rope_scaling\":{\"type\":\"yarn\"," YARN);
    check_yarn(",\"rope_parameters\":{\"rope_type\":\"yarn\"," YARN);
    check_plain(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}",
                "linear", 2.5);
    check_plain(",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8}",
                "linear", 8);
    /* dynamic scaling begins beyond the trained length */
    check_plain(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}",
                NULL, NAN);
    check_plain(",\"rope_scaling\":{\"rope_type\":\"default\"}", NULL, NAN);
    check_plain(",\"rope_scaling\":null", NULL, NAN);
    check_refused(",\"rope_scaling\":{\"type\":\"spiral\",\"factor\":2.0}",
                  GGUF_E_UNSUPPORTED, "'spiral' is not supported");
    check_refused(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
                  "\"low_freq_factor\":4,\"high_freq_factor\":4}",
                  GGUF_E_HPARAM, "impossible numbers");
    check_refused(",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":["
                  "1,\"x\",1,1]}",
                  GGUF_E_HPARAM, "not of numbers");
    check_refused(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"x\"}",
                  GGUF_E_HPARAM, "rope_scaling.factor is the text 'x'");
    check_refused(",\"rope_scaling\":{\"type\":\"linear\"}", GGUF_E_HPARAM,
                  "has no factor above 0");
    check_refused(",\"rope_scaling\":{\"type\":3,\"factor\":2}", GGUF_E_HPARAM,
                  "rope_scaling.type is not a text");
    check_refused(",\"rope_scaling\":2.0", GGUF_E_HPARAM,
                  "rope_scaling is not an object");
    check_choices();
    scratch_clean(folder.dir);
    rmdir(folder.dir);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
