/* gguf-convert.h - what the parts of gguf-convert share; types, importance
 * data, keys and what is printed about outputs are gguf-quantize's */
#ifndef TOOLS_GGUF_CONVERT_H
#define TOOLS_GGUF_CONVERT_H

#include "tools/gguf-quantize.h"

#include <gguf/convert.h>

struct convert_options {
    struct options q; /* q.in is the folder */
    struct gguf_convert_params params;
    struct opt_list ignore;
    struct gguf_convert *from;
    const char *folder; /* to be written, of q.in; or NULL */
    struct gguf_folder_params back;
};
#define CONVERT_OPTIONS_INIT                                                  \
    {                                                                         \
        .q = OPTIONS_INIT, .params = GGUF_CONVERT_PARAMS_INIT,                \
        .back = GGUF_FOLDER_PARAMS_INIT                                       \
    }

/* gguf-convert-opt.c: fill o, which was initialised; ends the program where
 * something is wrong, or where nothing but text was asked for. */
void parse_convert(struct convert_options *o, int argc, char **argv);
void convert_options_fini(struct convert_options *o);

/* gguf-convert-back.c: write o->folder. */
enum gguf_status write_folder(struct convert_options *o, struct progress *bar,
                              const char **about, struct gguf_error *err);

/* gguf-convert-print.c: what each tensor is made of, as a table or as one JSON
 * document. */
void print_made(const struct convert_options *o);
void print_made_json(const struct convert_options *o, double seconds);

#endif
