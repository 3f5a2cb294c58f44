/* SPDX-License-Identifier: MIT */
/* convert.h - what the parts of gguf-convert share; types, importance
 * data, keys and what is printed about outputs are gguf-quantize's */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "tools/quantize/quantize.h"

#include <gguf/convert.h>
#include <gguf/eval.h>

/* What outputs are evaluated on before they are kept. */
struct verify {
    const char *text; /* a file; NULL: they are not */
    uint64_t max_text;
    char *data; /* of the text */
    size_t size;
    struct gguf_tokens tokens;
    uint64_t n_chunks; /* as asked for, then as many as the text has */
    uint32_t n_ctx;    /* tokens of a chunk; 0: chosen, from the model's */
    double max;        /* greatest perplexity; 0: the vocabulary's size */
    double factor;     /* greatest, of the first output's; 0: any */
    bool max_given;
    struct gguf_ppl sums[MAX_TARGETS];
    bool failed, refused; /* the run ended here; by a figure */
};

struct convert_options {
    struct options q; /* q.in is the folder */
    struct gguf_convert_params params;
    struct opt_list ignore;
    struct gguf_convert *from;
    const char *folder; /* to be written, of q.in; or NULL */
    struct gguf_folder_params back;
    struct verify verify;
};
#define CONVERT_OPTIONS_INIT                                                  \
    {                                                                         \
        .q = OPTIONS_INIT, .params = GGUF_CONVERT_PARAMS_INIT,                \
        .back = GGUF_FOLDER_PARAMS_INIT, .verify = {                          \
            .n_chunks = 4,                                                    \
            .max_text = UINT64_C(1) << 30                                     \
        }                                                                     \
    }

/* options.c: fill o, which was initialised; ends the program where
 * something is wrong, or where nothing but text was asked for. */
void parse_convert(struct convert_options *o, int argc, char **argv);
void convert_options_fini(struct convert_options *o);

/* back.c: write o->folder. */
enum gguf_status write_folder(struct convert_options *o, struct progress *bar,
                              const char **about, struct gguf_error *err);

/* verify.c: read the text, before the folder; false: a message was
 * printed. Once jobs are planned: can the text be evaluated with such a model?
 * A gguf_quant_check_fn, user is the options. "perplexity 8.21 +/- 0.3 on ...".
 */
bool verify_read(struct convert_options *o);
enum gguf_status verify_begin(struct convert_options *o, const char **about,
                              struct gguf_error *err);
enum gguf_status verify_check(void *user, size_t job,
                              const struct gguf_file *output,
                              struct gguf_error *err);
void verify_format(const struct verify *v, const struct gguf_ppl *sums,
                   char *out, size_t size);
void verify_fini(struct verify *v);

/* print.c: say what the folder was taken for; print what each
 * tensor is made of, as a table or as one JSON document. */
void print_kind(const struct convert_options *o);
void print_sources(const struct convert_options *o);
void print_convert_json(const struct convert_options *o, double seconds);

#endif
